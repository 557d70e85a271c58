//! The real PingSIX reads the output of the sink. Runs when `PINGSIX_BIN` names its binary.

use pingsix_sink::{Desired, Sink as _};

use super::etcd_test::{EtcdTest, publish_until_done, wait_for_drift};
use crate::data_plane::{PingSix, backend, state};
use pingsix_sink::contract::documents::scope;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_publishes_every_revision_that_the_sink_reports() {
    let Some(binary) = pingsix_test_programs::pingsix() else { return };
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let backends = [("one", backend("one").await), ("two", backend("two").await)];
    let sink = etcd_test.sink();
    let first = state(&backends, &[("a", "one"), ("b", "one")]);
    let published = sink.publish(&first).await.unwrap();
    let etcd = etcd_test.etcd.address();
    let pingsix = PingSix::start(&binary, directory.path(), etcd);
    pingsix.wait_published(published.revision.get()).await;
    assert_eq!(
        pingsix.get("/a").await,
        (200, "one".to_owned()),
        "PingSIX does not read the records beside the documents"
    );

    // Also after a restart of the sink, and for a deletion alone.
    let states = [
        state(&backends, &[("a", "two"), ("c", "one")]),
        state(&backends, &[("a", "two")]),
        state(&backends, &[("a", "one"), ("b", "two"), ("c", "two")]),
    ];
    for state in &states {
        let revision = sink.publish(state).await.unwrap().revision;
        assert_eq!(pingsix.wait_published(revision.get()).await, revision.get());
        let again = etcd_test.sink().publish(state).await.unwrap();
        assert_eq!(again.revision, revision);
    }

    // A foreign edit is served until it is repaired, and other routes are not affected.
    etcd_test.put("/p/web/routes/b", r#"{"uri":"/b","upstream_id":"one"}"#).await;
    wait_for_drift(&sink, &["/p/web"]).await;
    let repaired = publish_until_done(&sink, &states[2]).await;
    pingsix.wait_published(repaired.revision.get()).await;
    assert_eq!(pingsix.get("/b").await, (200, "two".to_owned()));

    // A large change arrives as several transactions, each of which is valid by itself.
    let paths: Vec<String> = (0..300).map(|n| format!("r{n}")).collect();
    let routes: Vec<(&str, &str)> =
        [("a", "one")].into_iter().chain(paths.iter().map(|path| (path.as_str(), "two"))).collect();
    let large = sink.publish(&state(&backends, &routes)).await.unwrap();
    pingsix.wait_published(large.revision.get()).await;
    assert_eq!(pingsix.get("/r299").await, (200, "two".to_owned()));
    let empty = sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    pingsix.wait_published(empty.revision.get()).await;
    assert_eq!(pingsix.get("/a").await.0, 404);
    pingsix.kill().await;
}
