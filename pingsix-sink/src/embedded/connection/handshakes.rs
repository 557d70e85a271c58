//! TLS handshakes of accepted connections.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, stream};
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Connection, listener_failed};
use crate::embedded::access::Certificate;
use crate::embedded::fair_limit::Network;
use crate::embedded::log_limiter::LogLimiter;
use crate::embedded::replica::Replica;
use crate::embedded::tls::LiveTls;

/// The connections of a listener whose handshake succeeded.
///
/// Handshakes run in tasks of their own, so a slow one delays neither the listener nor the others.
pub(in crate::embedded) fn accept_tls(
    tcp: impl Stream<Item = io::Result<(TcpStream, IpAddr)>> + Send + 'static,
    tls: Arc<LiveTls>,
    replica: Arc<Replica>,
) -> impl Stream<Item = Result<Connection<TlsStream<TcpStream>>, Infallible>> {
    let handshakes = Handshakes {
        tcp: tcp.boxed(),
        tls,
        replica,
        running: JoinSet::new(),
        oldest_first: VecDeque::new(),
        failures: Arc::default(),
    };
    stream::unfold(handshakes, async |mut handshakes| {
        let connection = handshakes.next().await?;
        Some((Ok(connection), handshakes))
    })
}

struct Handshakes {
    tcp: BoxStream<'static, io::Result<(TcpStream, IpAddr)>>,
    tls: Arc<LiveTls>,
    replica: Arc<Replica>,
    running: JoinSet<Option<CompletedHandshake>>,
    /// The running handshakes, and some that have ended.
    oldest_first: VecDeque<RunningHandshake>,
    failures: Arc<LogLimiter>,
}

/// A handshake with a client at this address.
struct RunningHandshake {
    network: Network,
    task: AbortHandle,
}

/// A completed handshake with the edition of its configuration.
struct CompletedHandshake {
    connection: TlsStream<TcpStream>,
    from: IpAddr,
    edition: u64,
}

impl Handshakes {
    /// The next connection with a completed handshake; `None` at the end of the listener.
    async fn next(&mut self) -> Option<Connection<TlsStream<TcpStream>>> {
        loop {
            tokio::select! {
                accepted = self.tcp.next() => match accepted? {
                    Ok((connection, from)) => self.start(connection, from),
                    Err(error) => listener_failed(&self.replica, &error).await,
                },
                Some(ended) = self.running.join_next() => {
                    // An error is an aborted handshake, which was counted at the abort.
                    if let Ok(Some(done)) = ended
                        && let Some(connection) = self.admit(done)
                    {
                        return Some(connection);
                    }
                }
            }
        }
    }

    /// Admits a connection whose client certificate, if any, the handshake has verified.
    fn admit(&self, done: CompletedHandshake) -> Option<Connection<TlsStream<TcpStream>>> {
        let CompletedHandshake { connection, from, edition } = done;
        let (_, session) = connection.get_ref();
        let certificate = session.peer_certificates().and_then(|chain| Certificate::of(chain, edition));
        if !self.replica.access.ends_with_certificates() {
            return Connection::admit(&self.replica, connection, from, certificate);
        }
        let complain = |uri: &str| {
            self.replica.counters.update(|stats| stats.denied += 1);
            if self.replica.log_limiter.should_log(&format!("a URI of a certificate: {uri}")) {
                tracing::warn!(?uri, "a URI of a client certificate is malformed and grants no prefix");
            }
        };
        let certificate = certificate.map(|certificate| certificate.with_uris(complain));
        let connection = Connection::admit(&self.replica, connection, from, certificate)?;
        self.tls.certificate_connections().enter(&connection.peer);
        Some(connection)
    }

    fn start(&mut self, connection: TcpStream, from: IpAddr) {
        let Some((config, edition)) = self.tls.config() else {
            self.replica.counters.update(|stats| stats.handshakes_failed += 1);
            if self.replica.log_limiter.should_log("no certificate yet") {
                tracing::warn!("connection refused: the server has no certificate yet");
            }
            return;
        };
        self.evict_oldest();
        let acceptor = TlsAcceptor::from(config);
        let limit = self.tls.options().handshake_timeout;
        let (replica, failures) = (Arc::clone(&self.replica), Arc::clone(&self.failures));
        let task = self.running.spawn(async move {
            let ended = tokio::time::timeout(limit, acceptor.accept(connection)).await;
            let error = match ended {
                Ok(Ok(connection)) => return Some(CompletedHandshake { connection, from, edition }),
                Ok(Err(error)) => error,
                Err(_) => io::Error::new(io::ErrorKind::TimedOut, "it took too long"),
            };
            replica.counters.update(|stats| stats.handshakes_failed += 1);
            // Port probes close the connection without a byte.
            if error.kind() != io::ErrorKind::UnexpectedEof && failures.should_log(&error.to_string()) {
                tracing::warn!(%from, %error, "a TLS handshake failed");
            } else {
                tracing::debug!(%from, %error, "a TLS handshake failed");
            }
            None
        });
        self.oldest_first.push_back(RunningHandshake { network: from.into(), task });
    }

    /// Makes room for one more handshake: at the limit, the oldest of the address with the most is aborted. A good
    /// handshake takes milliseconds.
    fn evict_oldest(&mut self) {
        let limit = self.tls.options().handshake_limit;
        if self.oldest_first.len() < limit {
            return;
        }
        self.oldest_first.retain(|handshake| !handshake.task.is_finished());
        while self.oldest_first.len() >= limit {
            let Some(ended) = oldest_of_most(&self.oldest_first).and_then(|at| self.oldest_first.remove(at))
            else {
                return;
            };
            ended.task.abort();
            self.replica.counters.update(|stats| stats.handshakes_failed += 1);
            if self.replica.log_limiter.should_log("too many handshakes") {
                let most = ended.network;
                tracing::warn!(limit, %most, "TLS handshake limit reached; the oldest of the address with the most are aborted");
            }
        }
    }
}

/// The position of the oldest handshake of the address with the most.
fn oldest_of_most(oldest_first: &VecDeque<RunningHandshake>) -> Option<usize> {
    let mut counts: BTreeMap<Network, usize> = BTreeMap::new();
    for running in oldest_first {
        *counts.entry(running.network).or_default() += 1;
    }
    let most = counts.values().max()?;
    oldest_first.iter().position(|running| counts.get(&running.network) == Some(most))
}
