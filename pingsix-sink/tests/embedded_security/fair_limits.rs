//! One client that opens as many connections as possible, beside clients that open few.

use crate::authority;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use crate::authority::{Authority, Pair};
use crate::wire::{Served, WAIT_TIMEOUT, Watcher, events, watch_under};
use pingsix_sink::contract::documents::{desired, scope};
use pingsix_sink::embedded::{Access, Builder, Clients, Stats, feed_uri};
use pingsix_sink::{EmbeddedEtcd, Sink};
use rcgen::{DistinguishedName, SanType};
use tokio::net::TcpStream;
use tonic::Code;
use tonic::transport::Channel;

async fn served(builder: Builder) -> Served {
    let served = Served::start(builder).await;
    for prefix in ["/p/web", "/p/api"] {
        served.etcd.publish(&desired(prefix, &[("routes/a", "1")])).await.unwrap();
    }
    served.etcd.open();
    served
}

async fn until(served: &Served, condition_name: &str, reached: impl Fn(&Stats) -> bool) {
    let started = Instant::now();
    while !reached(&served.etcd.stats()) {
        assert!(started.elapsed() < WAIT_TIMEOUT, "{condition_name}: {:?}", served.etcd.stats());
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

/// A connection from an address of the loopback network.
async fn from(served: &Served, host: u8) -> Channel {
    let endpoint = Channel::from_shared(format!("http://{}", served.address)).unwrap();
    let address = IpAddr::from(Ipv4Addr::new(127, 0, 0, host));
    endpoint.local_address(Some(address)).connect().await.unwrap()
}

/// An open watch; `None` when the server closes the connection instead.
async fn watch(channel: Channel, prefix: &str) -> Option<Watcher> {
    let mut watcher = Watcher::open_with(channel, Some(watch_under(prefix, 0))).await.ok()?;
    let created = watcher.try_next().await.ok()??;
    (created.created && !created.canceled).then_some(watcher)
}

/// Waits for the end of the watch's stream.
async fn ends(watcher: &mut Watcher) -> bool {
    while let Ok(response) = watcher.try_next().await {
        if response.is_none() {
            return true;
        }
    }
    true
}

#[tokio::test]
async fn an_address_with_every_connection_makes_room_for_another_address() {
    let served = served(EmbeddedEtcd::builder().connection_limit(4)).await;
    let mut heavy = Vec::new();
    for _ in 0..4 {
        heavy.push(watch(from(&served, 1).await, "/p/web/").await.unwrap());
    }
    for attempt in 1..=3 {
        // Any number of further connections may be refused.
        TcpStream::connect(served.address).await.unwrap();
        until(&served, "refused", |stats| stats.connections_refused == attempt).await;
    }
    let mut other = watch(from(&served, 2).await, "/p/api/").await.unwrap();
    assert!(ends(&mut heavy.pop().unwrap()).await, "its newest is closed");
    for watcher in &mut heavy {
        watcher.settle().await;
    }
    // Of two clients with equally many, neither takes over one of the other's.
    let _second = watch(from(&served, 2).await, "/p/api/").await.unwrap();
    TcpStream::connect(served.address).await.unwrap();
    until(&served, "refused", |stats| stats.connections_refused == 4).await;
    assert_eq!(served.etcd.stats().connections_displaced, 2);
    other.settle().await;
}

/// A client certificate for these prefixes.
fn issue(authority: &Authority, serial: u64, prefix: &str) -> Pair {
    authority.issue_with(serial, |params| {
        params.distinguished_name = DistinguishedName::new();
        params.subject_alt_names = vec![SanType::URI(feed_uri(&scope(prefix)).as_str().try_into().unwrap())];
    })
}

#[tokio::test]
async fn a_certificate_with_every_connection_makes_room_for_another_certificate() {
    const CONNECTION_LIMIT: usize = 8;
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let tls = servers.issue(1).server().client_ca_pem(clients.pem());
    let access = Access::of(Clients::new()).certificate_uris();
    let builder = EmbeddedEtcd::builder().tls(tls).access(access).connection_limit(CONNECTION_LIMIT);
    let served = served(builder).await;
    let open = async |pair: &Pair, prefix: &str| {
        let tls = authority::client(&servers, Some(pair));
        watch(authority::channel(served.address, tls).await.ok()?, prefix).await
    };
    // A certificate and its successor are one client.
    let heavy = [issue(&clients, 2, "/p/web"), issue(&clients, 3, "/p/web")];
    let mut taken = Vec::new();
    for at in 0..CONNECTION_LIMIT {
        taken.push(open(&heavy[at % 2], "/p/web/").await.unwrap());
    }
    assert!(open(&heavy[0], "/p/web/").await.is_none() && open(&heavy[1], "/p/web/").await.is_none());

    let other = issue(&clients, 4, "/p/api");
    let mut readers = Vec::new();
    for _ in 0..CONNECTION_LIMIT / 2 {
        readers.push(open(&other, "/p/api/").await.expect("there is room for one that has less"));
        // Repeated attempts change nothing.
        assert!(open(&heavy[1], "/p/web/").await.is_none());
    }
    served.etcd.publish(&desired("/p/api", &[("routes/a", "2")])).await.unwrap();
    for reader in &mut readers {
        assert_eq!(events(&reader.next().await), ["PUT /p/api/routes/a=2"]);
    }
    for kept in &mut taken[..CONNECTION_LIMIT / 2] {
        kept.settle().await;
    }
    // A client without a certificate still receives its TLS error.
    let stranger = authority::Prober::new(&servers, None).connect(served.address).await;
    drop(stranger);
    until(&served, "the handshake fails", |stats| stats.handshakes_failed == 1).await;
}

#[tokio::test]
async fn a_client_with_every_watch_makes_room_for_another() {
    let served = served(EmbeddedEtcd::builder().watch_limit(8)).await;
    let mut heavy = Vec::new();
    for _ in 0..2 {
        let mut watcher = Watcher::open(from(&served, 1).await).await.unwrap();
        for _ in 0..4 {
            assert!(!watcher.create(watch_under("/p/web/", 0)).await.canceled);
        }
        heavy.push(watcher);
    }
    let refused = heavy[0].create(watch_under("/p/web/", 0)).await;
    assert_eq!((refused.canceled, &*refused.cancel_reason), (true, "too many watches"));
    assert_eq!(served.etcd.stats().watches_refused, 1);
    let mut other = watch(from(&served, 2).await, "/p/api/").await.unwrap();
    assert!(ends(&mut heavy.pop().unwrap()).await, "the connection of its newest watch is closed");
    heavy[0].settle().await;
    other.settle().await;
    until(&served, "its watches are gone", |stats| stats.watches == 5).await;
}

#[tokio::test]
async fn a_client_with_every_stream_makes_room_for_another() {
    let served = served(EmbeddedEtcd::builder().connection_limit(2)).await;
    let heavy = from(&served, 1).await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(Watcher::open(heavy.clone()).await.unwrap());
    }
    let refused = Watcher::open(heavy).await.err().unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let mut other = watch(from(&served, 2).await, "/p/api/").await.unwrap();
    assert!(ends(&mut streams.pop().unwrap()).await);
    other.settle().await;
}
