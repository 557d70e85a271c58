//! A hundred clients and a hundred changes a second, for `SOAK_SECONDS`: no event is lost or out of order, revisions
//! only grow, and the memory of the server, which has a process of its own, does not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../support/child_process.rs"]
mod child_process;
mod server;
#[path = "../support/wire.rs"]
mod wire;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::mvccpb::KeyValue;
use server::Server;
use tonic::transport::Channel;
use wire::{Watcher, under, watch_under};

const CLIENTS: usize = 100;
const CHANGES_PER_SECOND: u32 = 100;

/// Warm-up time. In a soak of more than twice this time, memory then grows by at most a hundredth.
const WARM_UP: Duration = Duration::from_mins(1);

/// Interval of memory samples.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A client that mirrors its watch until it has reached a revision.
struct Client {
    mirror: BTreeMap<Bytes, KeyValue>,
    seen: i64,
    watcher: Watcher,
    responses: usize,
}

impl Client {
    async fn start(channel: Channel) -> Self {
        let mut kv = KvClient::new(channel.clone());
        let listed = kv.range(under("/p/web/")).await.unwrap().into_inner();
        let seen = listed.header.unwrap().revision;
        let mut watcher = Watcher::open(channel).await.unwrap();
        watcher.create(watch_under("/p/web/", seen + 1)).await;
        let mirror = listed.kvs.iter().map(detached).map(|kv| (kv.key.clone(), kv)).collect();
        Self { mirror, seen, watcher, responses: 0 }
    }

    async fn read(&mut self) {
        let response = self.watcher.next().await;
        assert!(!response.canceled, "{response:?}");
        let revision = response.header.as_ref().unwrap().revision;
        let mut last = self.seen;
        for event in response.events {
            let kv = event.kv.unwrap();
            assert!(kv.mod_revision > self.seen && kv.mod_revision >= last && kv.mod_revision <= revision);
            last = kv.mod_revision;
            let kv = detached(&kv);
            if kv.create_revision == 0 {
                self.mirror.remove(&kv.key);
            } else {
                self.mirror.insert(kv.key.clone(), kv);
            }
        }
        self.seen = revision;
        self.responses += 1;
    }
}

/// A pair that does not keep its message in memory.
fn detached(kv: &KeyValue) -> KeyValue {
    KeyValue { key: Bytes::copy_from_slice(&kv.key), value: Bytes::copy_from_slice(&kv.value), ..*kv }
}

/// The mean of the samples in the tenth of the time after `begin`, or in the next tenth on a slow machine.
fn mean(sizes: &[(Duration, usize)], begin: Duration, duration: Duration) -> usize {
    let end = begin + duration / 10;
    let since = sizes.iter().filter(|(at, _)| *at >= begin).enumerate();
    let within: Vec<usize> =
        since.take_while(|(index, (at, _))| *index == 0 || *at < end).map(|(_, (_, size))| *size).collect();
    within.iter().sum::<usize>() / within.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_clients_follow_a_churn_and_memory_stays_flat() {
    let seconds = std::env::var("SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let duration = Duration::from_secs(seconds);
    let mut server = Server::start();
    let address = format!("http://{}", server.address);
    let connect = async || Channel::from_shared(address.clone()).unwrap().connect().await.unwrap();
    let (done, finished) = tokio::sync::watch::channel(None::<i64>);
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Client::start(connect().await).await;
        let mut finished = finished.clone();
        clients.push(tokio::spawn(async move {
            loop {
                let last = *finished.borrow_and_update();
                if last.is_some_and(|last| client.seen >= last) {
                    return client;
                }
                tokio::select! {
                    () = client.read() => {}
                    _ = finished.changed(), if last.is_none() => {}
                }
            }
        }));
    }

    let started = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / CHANGES_PER_SECOND);
    let (mut step, mut last, mut sizes) = (0, 0, Vec::new());
    while started.elapsed() < duration {
        ticks.tick().await;
        step += 1;
        let published = tokio::task::block_in_place(|| server.change(step));
        assert!(published > last);
        last = published;
        if sizes.last().is_none_or(|(at, _)| started.elapsed() > *at + POLL_INTERVAL) {
            sizes.push((started.elapsed(), server.memory()));
        }
    }
    sizes.push((started.elapsed(), server.memory()));
    let is_long = duration > 2 * WARM_UP;
    let warm = if is_long { WARM_UP } else { duration / 2 };
    let settled = mean(&sizes, warm, duration);
    let end = mean(&sizes, duration * 9 / 10, duration);
    done.send(Some(last)).unwrap();

    let listed = KvClient::new(connect().await).range(under("/p/web/")).await.unwrap().into_inner();
    let expected: BTreeMap<_, _> = listed.kvs.into_iter().map(|kv| (kv.key.clone(), kv)).collect();
    let mut responses = 0;
    for client in clients {
        let client = tokio::time::timeout(wire::WAIT_TIMEOUT, client).await.expect("all arrive").unwrap();
        assert_eq!(client.mirror, expected);
        responses += client.responses;
    }
    // The curve between the two compared moments.
    let curve: Vec<usize> =
        (0..10).map(|tenth| mean(&sizes, duration * tenth / 10, duration) / 1_024).collect();
    let (cut, counts) = server.counts();
    println!(
        "{step} changes in {duration:?}, {} responses for each of {CLIENTS} clients, {} KiB then {} KiB, \
         by tenths of the time {curve:?} KiB, {counts}",
        responses / CLIENTS,
        settled / 1_024,
        end / 1_024,
    );
    assert!(responses <= CLIENTS * step, "no more responses than changes");
    // In a few seconds more memory settles.
    let growth = if is_long { settled / 100 } else { settled / 10 + (4 << 20) };
    assert!(end <= settled + growth, "{settled} bytes grew to {end}");
    assert_eq!(cut, 0, "no watch is cut off");
}
