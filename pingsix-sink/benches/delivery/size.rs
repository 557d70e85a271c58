//! What a client is told of a change: how many events, and how many bytes.

use pingsix_sink::{EmbeddedEtcd, Sink as _};
use prost::Message as _;

use crate::routes::{PREFIX, Routes};
use crate::wire::{Served, watch_under};

/// How often something is published that changes nothing.
const NOISE: usize = 200;

/// B6: exactly the keys that changed, with few bytes more than their values; nothing when nothing did.
pub(crate) async fn bytes_and_events(size: usize) {
    let mut routes = Routes::new(size);
    let served = Served::start(EmbeddedEtcd::builder()).await;
    served.etcd.publish(&routes.desired()).await.unwrap();
    served.etcd.open();
    let mut watcher = served.watch().await;
    watcher.create(watch_under(&format!("{PREFIX}/"), 0)).await;
    for keys in [1, 10, 100].into_iter().filter(|keys| *keys <= size) {
        let changed = routes.change_some((0..keys).map(|number| number * 3));
        let values: usize = changed.iter().map(|document| document.value.len()).sum();
        served.etcd.publish(&routes.desired()).await.unwrap();
        let response = watcher.next().await;
        let over = (response.encoded_len() - values) as f64 / changed.len() as f64;
        println!(
            "| B6 | {size} | events of {} keys that change; bytes beyond a value | {}; {over:.1} a key | | {}; <= 64 |",
            changed.len(),
            response.events.len(),
            changed.len()
        );
    }
    for _ in 0..NOISE {
        served.etcd.publish(&routes.made_again()).await.unwrap();
    }
    let before = served.etcd.stats().watch_events;
    watcher.settle().await;
    println!(
        "| B6 | {size} | events of {NOISE} publications of the same, made anew | {} | | 0 |",
        served.etcd.stats().watch_events - before
    );
}
