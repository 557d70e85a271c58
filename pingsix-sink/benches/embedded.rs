//! What a client waits for: a list of a large scope, and a change on its way to many watches.
//!
//! Everything goes over loopback, decoding by the client included.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

#[path = "../tests/support/documents.rs"]
mod documents;
#[path = "../tests/support/wire.rs"]
mod wire;

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use documents::{desired, document, scope};
use futures::future::join_all;
use pingsix_sink::{Desired, DocumentSet, EmbeddedEtcd, Sink, plan};
use tokio::runtime::Runtime;
use wire::{Served, under, watch_under};

const KEYS: usize = 10_000;

fn large(changed: usize) -> Desired {
    let documents = (0..KEYS).map(|id| {
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
            let served = Served::start(EmbeddedEtcd::builder()).await;
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

criterion_group!(benches, list, fan_out, publish);
criterion_main!(benches);
