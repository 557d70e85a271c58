//! Clients with compacted watches that list again at the same time.

use futures::future::join_all;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use tonic::transport::Channel;

use crate::process;
use crate::ratio::median;
use crate::rounds;
use crate::routes::PREFIX;
use crate::server::{MAX_HISTORY, Pacing, Server};
use crate::wire::{Watcher, under, watch_under};

/// Number of clients.
const CLIENTS: usize = 20;

/// B15: the data that they receive afterwards without a change, and the memory of the server.
pub(crate) async fn relist(size: usize) {
    let mut ratios = Vec::new();
    let (mut events, mut steady, mut peak) = (0, 0, 0);
    for _ in 0..rounds() {
        let mut server = Server::start(size, Pacing::Default);
        let mut channels = Vec::new();
        for _ in 0..CLIENTS {
            channels.push(server.channel().await);
        }
        // Each client has listed before.
        let listed = join_all(channels.iter().cloned().map(list)).await;
        for number in 0..2 * MAX_HISTORY {
            server.change(number);
        }
        (steady, events) = (server.memory(), 0);
        process::reset_peak(server.pid());
        let again = channels
            .into_iter()
            .zip(listed)
            .map(|(channel, (_, listed))| resume_and_relist(channel, listed, size));
        events += join_all(again).await.into_iter().sum::<usize>();
        peak = process::peak_memory(server.pid());
        ratios.push(peak as f64 / steady as f64);
    }
    let extremes = ratios
        .iter()
        .fold((f64::MAX, f64::MIN), |(least, most), ratio| (least.min(*ratio), most.max(*ratio)));
    println!(
        "| B15 | {size} | {CLIENTS} clients list again after a compaction: events; peak RSS / steady | {events}; {:.1} / {:.1} MB | {:.2} ({:.2} to {:.2}) | 0; <= 1.3 |",
        peak as f64 / 1e6,
        steady as f64 / 1e6,
        median(&ratios),
        extremes.0,
        extremes.1,
    );
}

async fn list(channel: Channel) -> (usize, i64) {
    let mut kv = KvClient::new(channel).max_decoding_message_size(64 << 20);
    let listed = kv.range(under(&format!("{PREFIX}/"))).await.unwrap().into_inner();
    (listed.kvs.len(), listed.header.unwrap().revision)
}

/// Continues the watch, receives its cancellation, lists, and counts the following events.
async fn resume_and_relist(channel: Channel, listed: i64, size: usize) -> usize {
    let mut watcher = Watcher::open(channel.clone()).await.unwrap();
    watcher.create(watch_under(&format!("{PREFIX}/"), listed + 1)).await;
    let cancelled = watcher.next().await;
    assert!(cancelled.canceled && cancelled.compact_revision > listed, "{cancelled:?}");
    let (count, listed) = list(channel).await;
    assert_eq!(count, size);
    watcher.create(watch_under(&format!("{PREFIX}/"), listed + 1)).await;
    watcher.ask_progress().await;
    let mut events = 0;
    loop {
        let response = watcher.next().await;
        events += response.events.len();
        if response.watch_id == -1 {
            return events;
        }
    }
}
