//! The members of a cluster, of which one is in use at a time.
//!
//! The load of one controller needs no balancing, and a balancer would continue to use a member that is down. So the
//! first endpoint is used until it fails, then the next one, in turn. A failed connection is made anew, with the
//! current certificate files.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tonic::transport::{Channel, Endpoint, Uri};

use super::error::EtcdError;
use crate::client_tls::ClientTls;
use crate::loopback::is_loopback;

/// etcd ends connections with pings more often than every five seconds, or with pings without a request. A watch is a
/// permanent request.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Endpoints {
    /// Never empty.
    uris: Vec<Uri>,
    tls: Option<ClientTls>,
    connect_timeout: Duration,
    current: Mutex<Current>,
}

#[derive(Debug, Default)]
struct Current {
    index: usize,
    channel: Option<Arc<Channel>>,
}

impl Endpoints {
    /// Parses the addresses: `host:port`, `http://host:port` or `https://host:port`, with TLS if `tls` is set.
    pub(super) fn new(
        addresses: &[String],
        tls: Option<ClientTls>,
        connect_timeout: Duration,
    ) -> Result<Self, EtcdError> {
        if addresses.is_empty() {
            return Err(EtcdError::Option {
                option: "the list of endpoints",
                value: "[]".to_owned(),
                problem: "it is empty".to_owned(),
            });
        }
        let uris = addresses.iter().map(|address| parse(address, tls.is_some())).collect::<Result<_, _>>()?;
        let endpoints = Self { uris, tls, connect_timeout, current: Mutex::default() };
        for uri in &endpoints.uris {
            endpoints.endpoint(uri)?;
        }
        Ok(endpoints)
    }

    /// Refuses plaintext to another machine, because the connection carries passwords and private keys.
    pub(super) fn refuse_plaintext_beyond_loopback(&self) -> Result<(), EtcdError> {
        let is_beyond = |uri: &&Uri| !uri.host().is_some_and(is_loopback);
        match self.uris.iter().find(is_beyond).and_then(Uri::authority) {
            Some(endpoint) if self.tls.is_none() => {
                Err(EtcdError::PlaintextBeyondLoopback { endpoint: endpoint.to_string() })
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.uris.len()
    }

    /// The current channel, which connects lazily.
    pub(super) fn channel(&self) -> Result<Arc<Channel>, EtcdError> {
        let mut current = self.current.lock();
        if let Some(channel) = &current.channel {
            return Ok(Arc::clone(channel));
        }
        let uri = self.uris.iter().cycle().nth(current.index).expect("there is an endpoint");
        let channel = Arc::new(self.endpoint(uri)?.connect_lazy());
        current.channel = Some(Arc::clone(&channel));
        Ok(channel)
    }

    /// Switches to the next endpoint, unless another caller has already left `failed`.
    pub(super) fn fail_over(&self, failed: &Arc<Channel>) {
        let mut current = self.current.lock();
        if current.channel.as_ref().is_some_and(|channel| Arc::ptr_eq(channel, failed)) {
            current.channel = None;
            current.index = (current.index + 1) % self.uris.len();
        }
    }

    /// The current endpoint, with the present files of the TLS options.
    pub(super) fn current(&self) -> Result<Endpoint, EtcdError> {
        let index = self.current.lock().index;
        self.endpoint(self.uris.iter().cycle().nth(index).expect("there is an endpoint"))
    }

    /// Switches to the next endpoint.
    pub(super) fn advance(&self) {
        let mut current = self.current.lock();
        current.channel = None;
        current.index = (current.index + 1) % self.uris.len();
    }

    fn endpoint(&self, uri: &Uri) -> Result<Endpoint, EtcdError> {
        let endpoint = Channel::builder(uri.clone())
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT);
        let Some(tls) = &self.tls else { return Ok(endpoint) };
        endpoint.tls_config(tls.load()?).map_err(|error| {
            let cause = std::error::Error::source(&error);
            tls.failure(&cause.map_or_else(|| error.to_string(), ToString::to_string))
        })
    }
}

fn parse(address: &str, tls: bool) -> Result<Uri, EtcdError> {
    let scheme = if tls { "https" } else { "http" };
    let failure = |value: &str, problem: &str| EtcdError::Option {
        option: "endpoint",
        value: value.to_owned(),
        problem: problem.to_owned(),
    };
    // A password in the wrong place must not be shown.
    if address.contains('@') {
        let (_, host) = address.rsplit_once('@').unwrap_or_default();
        return Err(failure(host, "user and password are options of their own"));
    }
    let full = if address.contains("://") { address.to_owned() } else { format!("{scheme}://{address}") };
    let uri: Uri = full.parse().map_err(|_| failure(address, "it is not host:port"))?;
    let problem = match uri.scheme_str() {
        Some("https") if !tls => "it asks for TLS, and no CA is given",
        Some("http") if tls => "it is plaintext, and TLS options are given",
        Some("http" | "https") if uri.host().is_none_or(str::is_empty) || uri.port_u16().is_none() => {
            "it needs a host and a port"
        }
        Some("http" | "https") if !matches!(uri.path(), "" | "/") || uri.query().is_some() => {
            "it may have no path and no query"
        }
        Some("http" | "https") => return Ok(uri),
        Some(_) | None => "it is neither http nor https",
    };
    Err(failure(address, problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SinkErrorSource as _;

    #[test]
    fn addresses_are_hosts_with_ports() {
        for (good, tls, uri) in [
            ("10.0.0.1:2379", false, "http://10.0.0.1:2379/"),
            ("etcd.shop:2379", true, "https://etcd.shop:2379/"),
            ("http://[::1]:2379", false, "http://[::1]:2379/"),
            ("https://etcd:2379/", true, "https://etcd:2379/"),
        ] {
            assert_eq!(parse(good, tls).unwrap().to_string(), uri);
        }
        for (bad, tls, problem) in [
            ("https://etcd:2379", false, "no CA is given"),
            ("http://etcd:2379", true, "TLS options are given"),
            ("etcd", false, "a host and a port"),
            ("http://etcd:2379/v3", false, "no path"),
            ("http://etcd:2379/?a=b", false, "no query"),
            ("ftp://etcd:2379", false, "neither http nor https"),
            ("http://root:secret@etcd:2379", false, "options of their own"),
            ("root:secret@etcd:2379", false, "options of their own"),
            ("", false, "host"),
        ] {
            let error = parse(bad, tls).unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_invalid_certificate_is_an_error_at_once() {
        let addresses = ["127.0.0.1:1".to_owned()];
        let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for ca in ["", "no PEM", damaged] {
            let error = Endpoints::new(&addresses, Some(ClientTls::ca_pem(ca)), Duration::from_secs(1));
            assert_eq!(error.unwrap_err().category(), "etcd_option", "{ca}");
        }
    }

    #[tokio::test]
    async fn an_error_of_a_file_is_retryable_and_an_error_of_options_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let issue = || rcgen::generate_simple_self_signed(["client".to_owned()]).unwrap();
        let (one, other) = (issue(), issue());
        let write = |name: &str, pem: String| std::fs::write(path(name), pem).unwrap();
        write("ca.pem", one.cert.pem());
        write("cert.pem", one.cert.pem());
        write("key.pem", one.signing_key.serialize_pem());
        let addresses = ["127.0.0.1:1".to_owned()];
        let tls = ClientTls::ca_file(path("ca.pem")).identity_files(path("cert.pem"), path("key.pem"));
        let endpoints = Endpoints::new(&addresses, Some(tls), Duration::from_secs(1)).unwrap();
        let fails = |what: &str| {
            let error = endpoints.channel().unwrap_err();
            assert_eq!((error.category(), error.is_retryable()), ("etcd_file", true), "{what}: {error}");
            assert!(error.to_string().contains(".pem"), "{what}: {error}");
        };
        std::fs::remove_file(path("ca.pem")).unwrap();
        fails("a file is gone");
        write("ca.pem", one.cert.pem());
        write("cert.pem", other.cert.pem()[..200].to_owned());
        fails("one is half written");
        write("cert.pem", other.cert.pem());
        fails("the key is still that of the certificate before");
        write("key.pem", other.signing_key.serialize_pem());
        endpoints.channel().unwrap();

        let mixed =
            ClientTls::ca_pem(one.cert.pem()).identity_pem(one.cert.pem(), other.signing_key.serialize_pem());
        let error = Endpoints::new(&addresses, Some(mixed), Duration::from_secs(1)).unwrap_err();
        assert_eq!((error.category(), error.is_retryable()), ("etcd_option", false), "{error}");
    }

    #[tokio::test]
    async fn a_failed_endpoint_is_left_once() {
        let addresses = ["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()];
        let endpoints = Endpoints::new(&addresses, None, Duration::from_secs(1)).unwrap();
        let first = endpoints.channel().unwrap();
        assert!(Arc::ptr_eq(&first, &endpoints.channel().unwrap()));
        endpoints.fail_over(&first);
        let second = endpoints.channel().unwrap();
        endpoints.fail_over(&first);
        assert!(Arc::ptr_eq(&second, &endpoints.channel().unwrap()), "two requests saw the same failure");
        endpoints.fail_over(&second);
        assert_eq!(endpoints.current.lock().index, 0);
    }
}
