//! Backends in place of a scenario's endpoints, also behind TLS.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use pingsix_translate::pingsix::{Config, Scheme, Upstream};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::authority::Authority;
use crate::echo::Echo;
use crate::nodes::with_upstreams;

/// The backends by replaced address, and the CA of their certificates.
pub(super) struct Backends {
    plain: BTreeMap<String, Echo>,
    /// The TLS endpoints of backends, by address and certified name.
    secure: BTreeMap<(String, String), SocketAddr>,
    authority: Authority,
    /// Ends what `secure` holds.
    shutdown: CancellationToken,
    _shutdown: DropGuard,
}

impl Backends {
    pub(super) fn new() -> Self {
        let authority = Authority::new("authority");
        let shutdown = CancellationToken::new();
        let guard = shutdown.clone().drop_guard();
        Self { plain: BTreeMap::new(), secure: BTreeMap::new(), authority, shutdown, _shutdown: guard }
    }

    /// The certificate that PingSIX is to trust.
    pub(super) fn authority(&self) -> String {
        self.authority.pem()
    }

    /// A configuration with backends on this machine; the responder's address stays.
    pub(super) async fn with_local_backends(&mut self, config: &Config, responder: SocketAddr) -> Config {
        with_upstreams(config, async |upstream| self.replace(upstream, responder).await).await
    }

    async fn replace(&mut self, upstream: &mut Upstream, responder: SocketAddr) {
        let is_secure = matches!(upstream.scheme, Scheme::Https | Scheme::Grpcs);
        let name = upstream.upstream_host.clone().filter(|_| is_secure);
        let mut nodes = BTreeMap::new();
        for (node, weight) in &upstream.nodes {
            let address = if *node == responder.to_string() {
                responder
            } else {
                let plain = self.plain(node).await;
                match &name {
                    Some(name) => self.secure(node, name, plain).await,
                    None => plain,
                }
            };
            nodes.insert(address.to_string(), *weight);
        }
        upstream.nodes = nodes;
    }

    /// The backend in the place of an address.
    pub(super) async fn plain(&mut self, node: &str) -> SocketAddr {
        if !self.plain.contains_key(node) {
            self.plain.insert(node.to_owned(), Echo::start(node).await);
        }
        self.plain[node].address
    }

    /// A TLS endpoint with a certificate for a name, before a backend without TLS.
    async fn secure(&mut self, node: &str, name: &str, plain: SocketAddr) -> SocketAddr {
        let key = (node.to_owned(), name.to_owned());
        if let Some(address) = self.secure.get(&key) {
            return *address;
        }
        let acceptor = self.authority.acceptor(name);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // The client's departure or its rejection of the certificate is no problem of the backend.
                    let Ok(mut outside) = acceptor.accept(stream).await else { return };
                    let Ok(mut inside) = TcpStream::connect(plain).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        };
        tokio::spawn(self.shutdown.clone().run_until_cancelled_owned(serving));
        self.secure.insert(key, address);
        address
    }
}
