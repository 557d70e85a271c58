//! How clients take what they are told, as the served protocol shows it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/documents.rs"]
mod documents;
#[path = "support/wire.rs"]
mod wire;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use documents::{desired, scope};
use futures::future::join_all;
use pingsix_sink::embedded::Reception;
use pingsix_sink::proto::etcdserverpb::kv_client::KvClient;
use pingsix_sink::{EmbeddedEtcd, Revision, Sink};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{interval, sleep, timeout};
use tonic::transport::Channel;
use wire::{PATIENCE, Served, Watcher, under, watch_under};

/// What PingSIX waits after a list that it cannot use.
const PAUSE: Duration = Duration::from_millis(3_020);

async fn served() -> Served {
    // Pings that do not let a test wait.
    let builder = EmbeddedEtcd::builder().keepalive(Duration::from_millis(200), Duration::from_mins(1));
    let served = Served::start(builder).await;
    served.etcd.publish(&desired("/p/web", &[("routes/a", "1")])).await.unwrap();
    served.etcd.open();
    served
}

async fn list(channel: &Channel) -> i64 {
    let mut client = KvClient::new(channel.clone());
    client.range(under("/p/web/")).await.unwrap().into_inner().header.unwrap().revision
}

fn reception(etcd: &EmbeddedEtcd) -> Reception {
    etcd.reception_of(&scope("/p/web"))
}

/// Waits until the clients are known to take it in some way.
async fn received(etcd: &EmbeddedEtcd, is_it: impl Fn(Reception) -> bool) {
    let mut changes = etcd.receptions_changed();
    let waiting = async {
        while !is_it(reception(etcd)) {
            changes.changed().await.unwrap();
        }
    };
    assert!(timeout(PATIENCE, waiting).await.is_ok(), "{:?}", reception(etcd));
}

/// A way to the server that can be blocked: what is written to it is taken by a system, and read by nobody.
struct Way {
    address: SocketAddr,
    is_open: watch::Sender<bool>,
}

impl Way {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let is_open = watch::Sender::new(true);
        let mut gate = is_open.subscribe();
        tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = TcpStream::connect(server).await.unwrap();
            let (mut up, mut down) = ([0; 4_096], [0; 4_096]);
            loop {
                if gate.wait_for(|is_open| *is_open).await.is_err() {
                    return;
                }
                let passed = tokio::select! {
                    _ = gate.changed() => continue,
                    read = client.read(&mut up) => match read {
                        Ok(count) if count > 0 => server.write_all(&up[..count]).await,
                        _ => return,
                    },
                    read = server.read(&mut down) => match read {
                        Ok(count) if count > 0 => client.write_all(&down[..count]).await,
                        _ => return,
                    },
                };
                if passed.is_err() {
                    return;
                }
            }
        });
        Self { address, is_open }
    }

    async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address)).unwrap().connect().await.unwrap()
    }
}

#[tokio::test]
async fn a_client_that_is_given_something_and_does_not_read_it_has_proven_nothing() {
    let served = served().await;
    let way = Way::to(served.address).await;
    let channel = way.channel().await;
    let listed = list(&channel).await;
    let mut watcher = Watcher::open(channel).await.unwrap();
    watcher.create(watch_under("/p/web/", listed + 1)).await;
    let first = Revision::new(listed);
    received(&served.etcd, |reception| reception.accepted == first && reception.proven == first).await;

    way.is_open.send_replace(false);
    let published = served.etcd.publish(&desired("/p/web", &[("routes/a", "2")])).await.unwrap().revision;
    received(&served.etcd, |reception| reception.accepted == Some(published)).await;
    let blocked = Instant::now();
    while blocked.elapsed() < Duration::from_secs(3) {
        assert_eq!(reception(&served.etcd).proven, first, "it is only silent");
        sleep(Duration::from_millis(50)).await;
    }

    way.is_open.send_replace(true);
    received(&served.etcd, |reception| reception.proven == Some(published)).await;
    watcher.next().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_polls_refuses_nothing_and_who_waits_as_pingsix_does_refuses() {
    let served = served().await;
    let pollers = [(300, false), (1_000, false), (2_000, true), (5_000, true)];
    let polls = pollers.map(async |(millis, by_the_clock)| {
        let channel = served.channel().await;
        let mut ticks = interval(Duration::from_millis(millis));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(16) {
            if by_the_clock {
                ticks.tick().await;
            } else {
                sleep(Duration::from_millis(millis)).await;
            }
            list(&channel).await;
            assert_eq!(reception(&served.etcd).refused, None, "{millis}");
        }
    });
    join_all(polls).await;

    let channel = served.channel().await;
    let listed = list(&channel).await;
    for _ in 0..3 {
        assert_eq!(reception(&served.etcd).refused, None);
        sleep(PAUSE).await;
        list(&channel).await;
    }
    assert_eq!(reception(&served.etcd).refused, Revision::new(listed));
    // One that is content is who counts.
    let mut watcher = served.watch().await;
    watcher.create(watch_under("/p/web/", listed + 1)).await;
    assert_eq!(reception(&served.etcd).refused, None);
}

#[tokio::test]
async fn a_client_of_two_servers_that_is_sent_away_by_the_other_refuses_nothing() {
    let (one, other) = (served().await, served().await);
    let (list_at, watch_at) = (one.channel().await, other.channel().await);
    // It has watched at the first.
    let listed = list(&list_at).await;
    let mut watcher = Watcher::open(list_at.clone()).await.unwrap();
    watcher.create(watch_under("/p/web/", listed + 1)).await;
    drop(watcher);
    received(&one.etcd, |reception| reception.accepted.is_none()).await;
    for _ in 0..8 {
        let listed = list(&list_at).await;
        assert_eq!(reception(&one.etcd).refused, None);
        let mut watcher = Watcher::open(watch_at.clone()).await.unwrap();
        watcher.create(watch_under("/p/web/", listed + 1)).await;
        // As slow as a server is that cannot reach what replicas share.
        sleep(Duration::from_secs(1)).await;
    }

    // Nor does one that is sent away by the server that it has listed, however it waits.
    let channel = one.channel().await;
    for _ in 0..4 {
        list(&channel).await;
        let mut watcher = Watcher::open(channel.clone()).await.unwrap();
        let elsewhere = watcher.create(watch_under("/p/web/", 7)).await;
        assert!(elsewhere.created);
        drop(watcher);
        sleep(PAUSE).await;
        assert_eq!(reception(&one.etcd).refused, None);
    }
}

#[tokio::test]
async fn a_client_that_lets_go_and_lists_again_has_refused_what_it_listed() {
    let served = served().await;
    let channel = served.channel().await;
    let listed = list(&channel).await;
    let mut watcher = Watcher::open(channel.clone()).await.unwrap();
    watcher.create(watch_under("/p/web/", listed + 1)).await;
    received(&served.etcd, |reception| reception.accepted == Revision::new(listed)).await;
    assert_eq!(reception(&served.etcd).clients, 1);
    let published =
        served.etcd.publish(&desired("/p/web", &[("routes/a", "poison")])).await.unwrap().revision;
    watcher.next().await;
    // It lets go, and lists: once, and once more.
    drop(watcher);
    received(&served.etcd, |reception| reception.accepted.is_none()).await;
    sleep(Duration::from_millis(1_020)).await;
    assert_eq!(list(&channel).await, published.get());
    sleep(PAUSE).await;
    assert_eq!(reception(&served.etcd).refused, None);
    list(&channel).await;
    assert_eq!(reception(&served.etcd).refused, Some(published));
    assert_eq!(served.etcd.reception_of(&scope("/p/api")).refused, None);
}
