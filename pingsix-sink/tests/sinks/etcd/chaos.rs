//! Combined failures: an etcd that dies and stalls, and a sink that restarts in the middle of a publication.

use std::collections::BTreeMap;
use std::time::Duration;

use pingsix_sink::{Desired, EtcdSink, Sink as _};
use pingsix_test_programs::Signal;
use pingsix_test_programs::proto::mvccpb::event::EventType;

use super::etcd_test::{EtcdTest, WAIT_TIMEOUT, publish_until_done};
use crate::wire::{Watcher, channel, watch_under};
use pingsix_sink::contract::documents::scope;
use pingsix_sink::contract::graph::{assert_closed, graph};

const ROUNDS: u64 = 24;

#[tokio::test]
async fn no_reader_sees_a_dangling_reference_or_a_revision_that_goes_back() {
    let Some(mut etcd_test) = EtcdTest::start().await else { return };
    let mut random = fastrand::Rng::with_seed(7);
    let open = |address: String| {
        // Small transactions have more points of interruption.
        EtcdSink::builder([address]).timeout(Duration::from_millis(500)).max_txn_ops(5).build().unwrap()
    };
    let mut sink = open(etcd_test.etcd.address().to_string());
    let mut last = None;
    for round in 0..ROUNDS {
        let state = graph(100 + round);
        let interrupted = tokio::time::timeout(Duration::from_millis(random.u64(..40)), sink.publish(&state));
        match random.u8(..4) {
            0 => {
                drop(interrupted.await);
                etcd_test.etcd.kill().await;
                etcd_test.etcd.start_again().await;
            }
            1 => {
                etcd_test.etcd.signal(Signal::Pause);
                drop(interrupted.await);
                tokio::time::sleep(Duration::from_millis(random.u64(..700))).await;
                etcd_test.etcd.signal(Signal::Continue);
            }
            2 => {
                drop(interrupted.await);
                sink = open(etcd_test.etcd.address().to_string());
            }
            _ => drop(interrupted.await),
        }
        // The next state is often desired before this one is reached.
        if random.bool() {
            let published = publish_until_done(&sink, &state).await;
            assert!(last <= Some(published.revision));
            last = Some(published.revision);
        }
    }
    let end = graph(1_000);
    publish_until_done(&sink, &end).await;
    let values: Vec<String> = etcd_test.contents(end.scope()).await.into_values().collect();
    let wanted: Vec<&[u8]> = end.documents().iter().map(|document| &*document.value).collect();
    assert!(values.iter().map(String::as_bytes).eq(wanted));
    let gone = publish_until_done(&sink, &Desired::empty(scope("/p/web"))).await;

    let mut watcher =
        Watcher::open_with(channel(etcd_test.etcd.address()).await, Some(watch_under("/p/web/", 1)))
            .await
            .unwrap();
    let (mut state, mut revision, mut seen) = (BTreeMap::new(), 0, 0);
    let replaying = async {
        while revision < gone.revision.get() {
            for event in watcher.next().await.events {
                let kv = event.kv.unwrap();
                if kv.mod_revision != revision {
                    assert_closed(&state);
                    assert!(kv.mod_revision > revision);
                    seen += 1;
                }
                revision = kv.mod_revision;
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let Ok(key) = String::from_utf8(kv.key.to_vec()) else { panic!("a key that is no text") };
                if key.contains("/.") {
                    continue;
                }
                let key = key.trim_start_matches("/p/web/").to_owned();
                match EventType::try_from(event.r#type).unwrap() {
                    EventType::Put => state.insert(key, text(&kv.value)),
                    EventType::Delete => state.remove(&key),
                };
            }
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, replaying).await.expect("all is replayed");
    assert!(seen > 50, "{seen} states");
    assert!(state.is_empty());
}
