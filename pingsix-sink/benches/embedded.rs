//! Latency of a client: a list of a large scope, and a change to many watches.
//!
//! The measurements go over loopback and include decoding by the client.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

#[path = "../tests/support/wire.rs"]
mod wire;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures::future::join_all;
use pingsix_sink::contract::documents::{desired, document, scope};
use pingsix_sink::embedded::Pace;
use pingsix_sink::{Desired, DocumentSet, EmbeddedEtcd, Revision, Sink, plan};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use wire::{Served, Watcher, under, watch_under};

const KEYS: usize = 10_000;

fn large(changed: usize) -> Desired {
    routes(KEYS, changed)
}

/// So many routes, of which the first has a value of its own.
fn routes(count: usize, changed: usize) -> Desired {
    let documents = (0..count).map(|id| {
        let salt = if id == 0 { changed } else { 0 };
        let value =
            format!(r#"{{"uri":"/service-{id}/*","upstream_id":"shop-{}","priority":{salt}}}"#, id % 100);
        document(&format!("routes/{id:06}"), value)
    });
    Desired::new(scope("/p/web"), DocumentSet::new(documents).unwrap())
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn list(criterion: &mut Criterion) {
    let runtime = runtime();
    let served = runtime.block_on(async {
        let served = Served::start(EmbeddedEtcd::builder()).await;
        served.etcd.publish(&large(0)).await.unwrap();
        served.etcd.open();
        served
    });
    let client = runtime.block_on(served.kv());
    let bytes = served.etcd.size_of(&scope("/p/web")).unwrap().bytes;
    let mut group = criterion.benchmark_group("list");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function(BenchmarkId::from_parameter(KEYS), |bencher| {
        bencher.iter(|| {
            let mut client = client.clone();
            runtime.block_on(async move { client.range(under("/p/web/")).await.unwrap().into_inner().count })
        });
    });
    group.finish();
    runtime.block_on(served.stop());
}

fn fan_out(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("change_to_all_watches");
    for watches in [1, 10, 100] {
        let (served, mut watchers) = runtime.block_on(async {
            let served = Served::start(EmbeddedEtcd::builder().pace(Pace::NONE)).await;
            served.etcd.publish(&desired("/p/web", &[("routes/a", "0")])).await.unwrap();
            served.etcd.open();
            let mut watchers = Vec::new();
            for _ in 0..watches {
                let mut watcher = served.watch().await;
                watcher.create(watch_under("/p/web/", 0)).await;
                watchers.push(watcher);
            }
            (served, watchers)
        });
        let mut change = 0;
        group.bench_function(BenchmarkId::from_parameter(watches), |bencher| {
            bencher.iter_custom(|rounds| {
                runtime.block_on(async {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        change += 1;
                        let desired = desired("/p/web", &[("routes/a", &format!("value {change}"))]);
                        let started = Instant::now();
                        served.etcd.publish(&desired).await.unwrap();
                        join_all(watchers.iter_mut().map(wire::Watcher::next)).await;
                        spent += started.elapsed();
                    }
                    spent
                })
            });
        });
        drop(watchers);
        runtime.block_on(served.stop());
    }
    group.finish();
}

/// A hundred changes as fast as possible, until a client has read the last. The client needs some time for each
/// response in proportion to its size, as PingSIX does; the time is a tenth of PingSIX's.
fn burst(criterion: &mut Criterion) {
    const CHANGES: usize = 100;
    const TIME_PER_DOCUMENT: Duration = Duration::from_nanos(2_500);
    let runtime = runtime();
    let mut group = criterion.benchmark_group("burst_of_100_changes");
    group.sample_size(10);
    for documents in [1_000, 5_000] {
        let pace = Pace::per_document(TIME_PER_DOCUMENT);
        let reading = TIME_PER_DOCUMENT * u32::try_from(documents).unwrap();
        let states: Vec<Desired> = (0..CHANGES).map(|changed| routes(documents, changed)).collect();
        let (served, mut watcher) = runtime.block_on(async {
            let served = Served::start(EmbeddedEtcd::builder().pace(pace)).await;
            served.etcd.publish(&states[0]).await.unwrap();
            served.etcd.open();
            let mut watcher = served.watch().await;
            watcher.create(watch_under("/p/web/", 0)).await;
            (served, watcher)
        });
        group.bench_function(BenchmarkId::new("told_together", documents), |bencher| {
            bencher.iter_custom(|rounds| {
                runtime.block_on(async {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        let etcd = served.etcd.clone();
                        let states = states.clone();
                        let started = Instant::now();
                        let publishing = tokio::spawn(async move {
                            let mut last = Revision::MIN;
                            for state in states.iter().skip(1).chain([&states[0]]) {
                                last = etcd.publish(state).await.unwrap().revision;
                            }
                            last.get()
                        });
                        let seen = read_slowly(&mut watcher, reading, publishing).await;
                        assert!(seen > 0);
                        spent += started.elapsed();
                    }
                    spent
                })
            });
        });
        drop(watcher);
        runtime.block_on(served.stop());
    }
    group.finish();
}

/// Reads to the last publication, with a pause for each response.
async fn read_slowly(
    watcher: &mut Watcher,
    reading: Duration,
    mut publishing: tokio::task::JoinHandle<i64>,
) -> i64 {
    let (mut last, mut seen) = (None, 0);
    while last != Some(seen) {
        tokio::select! {
            published = &mut publishing, if last.is_none() => last = Some(published.unwrap()),
            response = watcher.next() => {
                seen = response.header.unwrap().revision;
                tokio::time::sleep(reading).await;
            }
        }
    }
    seen
}

/// The processor time of a server for one change among 10,000 documents, by the number of watches.
fn cost_of_watches(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("cpu_of_a_change");
    group.sample_size(10);
    for watches in [1, 100] {
        let (server, publish, clock) = serve_in_a_thread();
        let mut watchers = runtime.block_on(async {
            let mut watchers = Vec::new();
            for _ in 0..watches {
                let endpoint = tonic::transport::Channel::from_shared(server.clone()).unwrap();
                let mut watcher = Watcher::open(endpoint.connect().await.unwrap()).await.unwrap();
                watcher.create(watch_under("/p/web/", 0)).await;
                watchers.push(watcher);
            }
            watchers
        });
        let mut change = 0;
        group.bench_function(BenchmarkId::from_parameter(watches), |bencher| {
            bencher.iter_custom(|rounds| {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    change += 1;
                    let state = large(change);
                    let before = processor_time(&clock);
                    runtime.block_on(async {
                        let (done, published) = oneshot::channel();
                        publish.send((state, done)).await.unwrap();
                        published.await.unwrap();
                        join_all(watchers.iter_mut().map(Watcher::next)).await;
                    });
                    spent += processor_time(&clock).saturating_sub(before);
                }
                spent
            });
        });
    }
    group.finish();
}

type Publications = mpsc::Sender<(Desired, oneshot::Sender<()>)>;

/// A server on a thread of its own: its address, the channel for publications, and the file with its processor time.
fn serve_in_a_thread() -> (String, Publications, PathBuf) {
    let (sender, mut publications) = mpsc::channel::<(Desired, oneshot::Sender<()>)>(1);
    let (started, start) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let served = Served::start(EmbeddedEtcd::builder().pace(Pace::NONE)).await;
            served.etcd.publish(&large(0)).await.unwrap();
            served.etcd.open();
            let thread = std::fs::read_link("/proc/thread-self").unwrap();
            let clock = PathBuf::from("/proc").join(thread).join("schedstat");
            started.send((format!("http://{}", served.address), clock)).unwrap();
            while let Some((desired, done)) = publications.recv().await {
                served.etcd.publish(&desired).await.unwrap();
                done.send(()).unwrap();
            }
        });
    });
    let (address, clock) = start.recv().unwrap();
    (address, sender, clock)
}

/// The processor time of a thread.
fn processor_time(clock: &PathBuf) -> Duration {
    let counts = std::fs::read_to_string(clock).unwrap();
    Duration::from_nanos(counts.split(' ').next().unwrap().parse().unwrap())
}

fn publish(criterion: &mut Criterion) {
    let (one, two) = (large(1), large(2));
    criterion.bench_function("plan/one_of_10000_changed", |bencher| {
        bencher.iter(|| plan(one.documents(), two.documents()).len());
    });
    let runtime = runtime();
    let etcd = runtime.block_on(async { EmbeddedEtcd::builder().start().await.unwrap() });
    let mut turn = false;
    criterion.bench_function("publish/one_of_10000_changed", |bencher| {
        bencher.iter(|| {
            turn = !turn;
            runtime.block_on(etcd.publish(if turn { &one } else { &two })).unwrap()
        });
    });
}

criterion_group!(benches, list, fan_out, burst, cost_of_watches, publish);
criterion_main!(benches);
