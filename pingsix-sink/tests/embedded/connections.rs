//! Misbehaving clients: the server closes them in time, and other clients are not affected.

use std::time::{Duration, Instant};

use crate::wire::{Served, WAIT_TIMEOUT, Watcher, watch_under};
use pingsix_sink::contract::documents::desired;
use pingsix_sink::embedded::{Builder, Pace, Stats};
use pingsix_sink::{EmbeddedEtcd, Sink};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

async fn served(builder: Builder) -> Served {
    let served = Served::start(builder).await;
    served.etcd.publish(&desired("/p/web", &[("routes/a", "0")])).await.unwrap();
    served.etcd.open();
    served
}

/// Waits until the counters satisfy the condition.
async fn until(served: &Served, reached: impl Fn(&Stats) -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !reached(&served.etcd.stats()) {
        assert!(Instant::now() < deadline, "{:?}", served.etcd.stats());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Reads until the server closes.
async fn closed(mut connection: TcpStream) -> Duration {
    let started = Instant::now();
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(WAIT_TIMEOUT, connection.read_to_end(&mut bytes)).await;
    drop(read.expect("the server closes the connection"));
    started.elapsed()
}

#[tokio::test]
async fn a_connection_that_never_begins_to_speak_is_closed() {
    const TIMEOUT: Duration = Duration::from_millis(200);
    let served = served(EmbeddedEtcd::builder().preface_timeout(TIMEOUT)).await;
    let silent = TcpStream::connect(served.address).await.unwrap();
    let mut hesitant = TcpStream::connect(served.address).await.unwrap();
    hesitant.write_all(b"PRI * HTTP/2.0\r\n\r\nSM").await.unwrap();
    let (silent, hesitant) = tokio::join!(closed(silent), closed(hesitant));
    for taken in [silent, hesitant] {
        assert!(taken >= TIMEOUT / 2 && taken < WAIT_TIMEOUT / 2, "{taken:?}");
    }
    until(&served, |stats| stats.connections == 0).await;

    // A client that has sent its preface may be silent afterwards.
    let mut watcher = served.watch().await;
    watcher.create(watch_under("/p/web/", 0)).await;
    tokio::time::sleep(2 * TIMEOUT).await;
    watcher.settle().await;
}

#[tokio::test]
async fn one_connection_too_many_is_closed_and_those_before_it_stay() {
    let served = served(EmbeddedEtcd::builder().connection_limit(3)).await;
    let mut watchers = Vec::new();
    for _ in 0..3 {
        let mut watcher = served.watch().await;
        watcher.create(watch_under("/p/web/", 0)).await;
        watchers.push(watcher);
    }
    let refused = TcpStream::connect(served.address).await.unwrap();
    closed(refused).await;
    assert_eq!(served.etcd.stats().connections_refused, 1);
    for watcher in &mut watchers {
        watcher.settle().await;
    }
    watchers.pop();
    until(&served, |stats| stats.connections == 2).await;
    served.list("/p/web/").await.unwrap();
}

/// Publishes until `enough`, and returns the latency of each change for the readers.
async fn publish_and_read(
    served: &Served,
    readers: &mut [Watcher],
    enough: impl Fn(usize) -> bool,
) -> Vec<Duration> {
    let mut waits = Vec::new();
    let mut round = 0;
    while !enough(round) {
        round += 1;
        let value = format!("{round:08}{}", "x".repeat(50_000));
        let started = Instant::now();
        served.etcd.publish(&desired("/p/web", &[("routes/a", &value)])).await.unwrap();
        for reader in &mut *readers {
            let response = reader.next().await;
            assert_eq!(response.events[0].kv.as_ref().unwrap().value, value.as_bytes());
        }
        waits.push(started.elapsed());
    }
    waits
}

fn median(mut waits: Vec<Duration>) -> Duration {
    waits.sort_unstable();
    waits[waits.len() / 2]
}

/// A client that leaves its stream unread, and one that leaves its whole socket unread, beside ten that read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_clients_are_closed_and_others_are_not_affected() {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let builder = EmbeddedEtcd::builder().stall_timeout(TIMEOUT).pace(Pace::NONE);
    let served = served(builder.keepalive(Duration::from_hours(1), Duration::from_hours(1))).await;
    let mut readers = Vec::new();
    for _ in 0..10 {
        let mut reader = served.watch().await;
        reader.create(watch_under("/p/web/", 0)).await;
        readers.push(reader);
    }
    let alone = median(publish_and_read(&served, &mut readers, |round| round >= 40).await);

    let mut unread = served.watch().await;
    unread.create(watch_under("/p/web/", 0)).await;
    let (blocked, stop) = blocked_watch(&served).await;
    until(&served, |stats| stats.watches == 12).await;
    let started = Instant::now();
    let beside = publish_and_read(&served, &mut readers, |_| served.etcd.stats().streams_stalled == 2).await;
    assert!(started.elapsed() >= TIMEOUT && started.elapsed() < TIMEOUT * 4, "{:?}", started.elapsed());
    let beside = median(beside);
    assert!(beside < alone * 2 + Duration::from_millis(5), "{beside:?} beside them, {alone:?} alone");

    // Their connections are closed although they still do not read, so HTTP/2 keeps no data for them.
    until(&served, |stats| stats.watches == 10 && stats.connections == 10).await;
    let mut ended = false;
    while !ended {
        ended = !matches!(unread.try_next().await, Ok(Some(_)));
    }
    stop.abort();
    drop(blocked);
}

/// A watch over a proxy that stops reading from the server once the watch exists.
async fn blocked_watch(served: &Served) -> (Watcher, tokio::task::AbortHandle) {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, behind) = (proxy.local_addr().unwrap(), served.address);
    let created = std::sync::Arc::new(tokio::sync::Notify::new());
    let stops = std::sync::Arc::clone(&created);
    let task = tokio::spawn(async move {
        let (client, _) = proxy.accept().await.unwrap();
        let upstream = TcpStream::connect(behind).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = upstream.into_split();
        let upwards = tokio::io::copy(&mut from_client, &mut to_server);
        let downwards = async {
            tokio::select! {
                _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
                () = stops.notified() => {}
            }
            std::future::pending::<()>().await;
        };
        let (_, ()) = tokio::join!(upwards, downwards);
    });
    let endpoint = tonic::transport::Channel::from_shared(format!("http://{address}")).unwrap();
    // Large HTTP/2 windows, so that the socket blocks first.
    let endpoint = endpoint.initial_stream_window_size(1 << 30).initial_connection_window_size(1 << 30);
    let mut watcher = Watcher::open(endpoint.connect().await.unwrap()).await.unwrap();
    watcher.create(watch_under("/p/web/", 0)).await;
    created.notify_one();
    (watcher, task.abort_handle())
}
