//! Looks up names of hosts, a bounded number at a time.
//!
//! The system's resolver blocks a thread while name servers delay their answer. The author of a name may control
//! these, and a blocking call cannot be cancelled. So a lookup holds its permit until the call has ended, even if its
//! caller has gone. That bounds the threads, and the resolver of the machine stays in use.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use pingsix_translate::is_backend_address;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tower_service::Service;

/// The number of concurrent lookups.
const MAX_CONCURRENT_LOOKUPS: usize = 8;

/// The addresses that a client may connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    All,
    /// Addresses of other machines: neither of this machine nor of its link, where clouds serve the credentials of a
    /// machine.
    OfOthers,
}

impl Addresses {
    fn includes(self, address: IpAddr) -> bool {
        self == Self::All || is_backend_address(address)
    }
}

/// The function that resolves a name.
type Resolve = fn(&str) -> io::Result<Vec<SocketAddr>>;

/// Looks up names, for a client.
#[derive(Clone, Debug)]
pub(super) struct Lookups {
    permits: Arc<Semaphore>,
    addresses: Addresses,
    resolve: Resolve,
}

impl Lookups {
    pub(super) fn new(addresses: Addresses) -> Self {
        let resolve: Resolve = |name| Ok((name, 0).to_socket_addrs()?.collect());
        Self { permits: Arc::new(Semaphore::new(MAX_CONCURRENT_LOOKUPS)), addresses, resolve }
    }

    async fn look_up(self, name: Name) -> io::Result<std::vec::IntoIter<SocketAddr>> {
        let permit = self.permits.acquire_owned().await.map_err(io::Error::other)?;
        let resolve = self.resolve;
        let found = spawn_blocking(move || {
            let found = resolve(name.as_str());
            drop(permit);
            found
        });
        let mut found = found.await.map_err(io::Error::other)??;
        found.retain(|address| self.addresses.includes(address.ip()));
        Ok(found.into_iter())
    }
}

impl Service<Name> for Lookups {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(self.clone().look_up(name))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread::sleep;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// Running lookups, and whether they may end.
    static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
    static MAY_END: AtomicBool = AtomicBool::new(false);

    #[expect(clippy::unnecessary_wraps, reason = "as the lookup of the system")]
    fn stuck(_: &str) -> io::Result<Vec<SocketAddr>> {
        UNDER_WAY.fetch_add(1, Ordering::SeqCst);
        while !MAY_END.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(1));
        }
        Ok(vec![([10, 0, 0, 1], 0).into()])
    }

    #[tokio::test]
    async fn names_without_an_answer_take_a_bounded_number_of_threads() {
        let lookups = Lookups { resolve: stuck, ..Lookups::new(Addresses::All) };
        let name = |index: usize| format!("name-{index}.test").parse::<Name>().unwrap();
        for index in 0..MAX_CONCURRENT_LOOKUPS * 4 {
            // The first caller gives up, and the next one asks.
            let asked = lookups.clone().call(name(index));
            assert!(timeout(Duration::from_millis(5), asked).await.is_err());
        }
        assert_eq!(UNDER_WAY.load(Ordering::SeqCst), MAX_CONCURRENT_LOOKUPS);
        MAY_END.store(true, Ordering::SeqCst);
        assert_eq!(lookups.clone().call(name(0)).await.unwrap().len(), 1);
    }

    #[test]
    fn a_name_leads_neither_to_this_machine_nor_to_its_link() {
        let near = [
            "127.0.0.1",
            "::1",
            "169.254.169.254",
            "fe80::1",
            "0.0.0.0",
            "::",
            "::ffff:127.0.0.1",
            "224.0.0.1",
        ];
        for address in near {
            let address: IpAddr = address.parse().unwrap();
            assert!(!Addresses::OfOthers.includes(address) && Addresses::All.includes(address), "{address}");
        }
        for address in ["10.0.0.1", "192.168.7.9", "fd00::1"] {
            assert!(Addresses::OfOthers.includes(address.parse().unwrap()), "{address}");
        }
    }
}
