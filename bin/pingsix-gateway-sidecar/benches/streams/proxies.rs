//! The proxies, each with one worker.

mod haproxy;
mod nginx;
mod sidecar;

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use pingsix_test_programs::free_port;
use tempfile::TempDir;

use crate::certificate::Certificate;
use crate::process::Process;
use crate::programs;

pub(crate) use nginx::names as nginx_names;
pub(crate) use sidecar::from_feed as sidecar_from_feed;

/// The server name of all clients. The tools that need a URL take it for an address, too.
pub(crate) const NAME: &str = "localhost";
/// The time in which a proxy starts.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Sidecar,
    Haproxy,
    Nginx,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Sidecar, Self::Haproxy, Self::Nginx];
}

/// The service of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Tcp,
    /// TCP with much data.
    Bulk,
    Udp,
    /// TLS to the backend of its server name.
    Passthrough,
    /// TLS that ends at the proxy.
    Terminate,
    /// The same before a server of HTTP/1.1 and HTTP/2.
    Https,
}

/// A running proxy.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) kind: Kind,
    pub(crate) port: u16,
    pub(crate) process: Process,
    _folder: TempDir,
}

impl Proxy {
    /// Starts a proxy that passes on to a backend. `None` if it is not installed, or has no such service.
    pub(crate) fn start(kind: Kind, service: Service, backend: SocketAddr) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut command = match kind {
            Kind::Sidecar => sidecar::command(folder.path(), service, port, backend),
            Kind::Haproxy if service == Service::Udp => return None,
            Kind::Haproxy => haproxy::command(
                &programs::find("haproxy", "haproxy")?,
                folder.path(),
                service,
                port,
                backend,
            ),
            Kind::Nginx => nginx::command(&programs::nginx()?, folder.path(), service, port, backend),
        };
        let proxy = Self { kind, port, process: Process::start(&mut command), _folder: folder };
        proxy.wait(service);
        Some(proxy)
    }

    /// All proxies with this service.
    pub(crate) fn all(service: Service, backend: SocketAddr) -> Vec<Self> {
        Kind::ALL.into_iter().filter_map(|kind| Self::start(kind, service, backend)).collect()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    fn wait(&self, service: Service) {
        let started = Instant::now();
        let serves = || match service {
            Service::Udp => answers(self.address()),
            Service::Tcp | Service::Bulk | Service::Passthrough | Service::Terminate | Service::Https => {
                TcpStream::connect(self.address()).is_ok()
            }
        };
        while !serves() {
            assert!(started.elapsed() < START_TIMEOUT, "{:?} does not serve", self.kind);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Whether a datagram is answered.
fn answers(address: SocketAddr) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    socket.connect(address).unwrap();
    socket.send(&[0; 64]).is_ok() && socket.recv(&mut [0; 64]).is_ok()
}

/// Writes the certificate of [`NAME`] with its key into a file.
fn write_certificate(folder: &Path) -> String {
    let Certificate { chain, key } = Certificate::new(&[NAME]);
    write(folder, "certificate.pem", &(chain + &key))
}

/// Writes a file, and returns its path.
fn write(folder: &Path, name: &str, content: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, content).unwrap();
    file.to_str().unwrap().to_owned()
}
