//! The end of watches.

use std::time::Duration;

use pingsix_translate::{Kind, ObjectKey};
use tokio::runtime::Handle;

use super::consumer::Consumer;
use crate::fixture::api_server::{ApiServer, Fate, Verb};
use crate::watch::WatchOptions;

/// The number of tasks a second after the end, when the workers of unused clients have ended.
async fn tasks_after(ended: impl Future<Output = ()>) -> usize {
    ended.await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn cancellation_leaves_no_task() {
    let server = ApiServer::default();
    server.serve(Kind::TcpRoute, &[]);
    server.fail(Kind::UdpRoute, Verb::List, Fate::Failed(500));
    server.fail(Kind::TlsRoute, Verb::List, Fate::Unanswered);
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.watches.set_references([ObjectKey::new(Kind::Secret, "shop", "tls")].into());
    consumer.during(Duration::from_secs(10)).await;
    consumer.stop.cancel();
    let left = tasks_after(async move {
        consumer.watches.ended().await.unwrap();
        consumer.during(Duration::from_secs(1)).await;
        assert!(consumer.inputs.recv().await.is_none(), "the consumer is told that it is over");
    })
    .await;
    assert_eq!(left, 0);
    assert_eq!(Kind::ALL.iter().map(|kind| server.open_watches(*kind)).sum::<usize>(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_consumer_nothing_is_watched() {
    let server = ApiServer::default();
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.complete().await;
    let Consumer { mut watches, inputs, .. } = consumer;
    drop(inputs);
    let left = tasks_after(async move { watches.ended().await.unwrap() }).await;
    assert_eq!(left, 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_handle_ends_everything() {
    let server = ApiServer::default();
    let consumer = Consumer::of(&server, WatchOptions::default());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(tasks_after(async move { drop(consumer) }).await, 0);
}
