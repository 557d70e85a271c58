use std::sync::{Arc, Mutex};
use std::time::Duration;

use pingsix_sink::etcd::Builder;
use pingsix_sink::{Desired, Document, DocumentSet, EmbeddedEtcd, Key, OrderHint, Owner, Scope, Sink as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;

use super::*;
use crate::metrics::Metrics;
use crate::stream::{ServeError, Subject};

const PREFIX: &str = "/pingsix-stream/shop/web";

fn scope() -> Scope {
    Scope::new(PREFIX).unwrap()
}

fn desired(documents: &[(&str, &str)]) -> Desired {
    let documents = documents.iter().map(|(key, value)| Document {
        key: Key::new(*key).unwrap(),
        value: value.to_string().into(),
        order: OrderHint(0),
        owner: Owner::new("test"),
    });
    Desired::new(scope(), DocumentSet::new(documents).unwrap())
}

/// A feed at an address, until it is dropped.
struct Served {
    etcd: EmbeddedEtcd,
    address: std::net::SocketAddr,
    task: JoinHandle<()>,
    stop: DropGuard,
}

impl Served {
    async fn start(address: &str, documents: &[(&str, &str)]) -> Self {
        let etcd = EmbeddedEtcd::builder().start().await.unwrap();
        etcd.publish(&desired(documents)).await.unwrap();
        etcd.open();
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let (serving, stopped) = (etcd.clone(), stop.clone());
        let task = tokio::spawn(async move { serving.serve(listener, stopped).await.unwrap() });
        Self { etcd, address, task, stop: stop.drop_guard() }
    }

    async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap();
    }
}

/// The keys and values of applied documents.
type Record = Vec<(String, String)>;

/// Records documents in place of the proxy.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Vec<(i64, Record)>>>, Arc<Mutex<Option<Applied>>>);

impl Apply for Fake {
    async fn apply(&self, documents: &Documents) -> Applied {
        let text = |value: &bytes::Bytes| String::from_utf8(value.to_vec()).unwrap();
        let pairs = documents.by_key.iter().map(|(key, value)| (key.clone(), text(value))).collect();
        self.0.lock().unwrap().push((documents.revision, pairs));
        let taken = documents.by_key.keys().filter(|key| key.ends_with("taken"));
        let failure =
            |_| ServeError { subject: Subject::Port(5432), message: "the port is taken".to_owned() };
        let (revision, errors) = (documents.revision, taken.map(failure).collect());
        let applied = Applied { revision, bound: Vec::new(), errors };
        // The port is free afterwards.
        *self.1.lock().unwrap() = Some(Applied { errors: Vec::new(), ..applied.clone() });
        applied
    }

    async fn state(&self) -> Applied {
        self.1.lock().unwrap().clone().unwrap()
    }
}

/// Follows a feed, and records the documents that are applied.
struct Recorder {
    status: Arc<Status>,
    metrics: Metrics,
    applied: Fake,
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Recorder {
    fn start(feed: Feed) -> Self {
        let status = Arc::new(Status::new(Some(feed.source())));
        status.started();
        let metrics = Metrics::new("1");
        let (feed_metrics, stop) = (metrics.add(FeedMetrics::new), CancellationToken::new());
        let applied = Fake::default();
        let (shared, record, stopped) = (Arc::clone(&status), applied.clone(), stop.clone());
        let task = tokio::spawn(async move {
            follow(feed, &shared, &feed_metrics, &stopped, &record).await;
        });
        Self { status, metrics, applied, task, stop }
    }

    fn page(&self) -> Value {
        serde_json::to_value(self.status.page()).unwrap()
    }

    fn last(&self) -> Option<(i64, Record)> {
        self.applied.0.lock().unwrap().last().cloned()
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

async fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let waiting = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.expect(what);
}

fn record(documents: &[(&str, &str)]) -> Record {
    documents.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn etcd_feed(address: std::net::SocketAddr) -> Feed {
    Feed::Etcd(Box::new(Builder::new([address.to_string()]).reader(scope()).unwrap()))
}

#[tokio::test]
async fn the_documents_of_a_feed_are_applied_and_kept_while_it_is_away() {
    let served = Served::start("127.0.0.1:0", &[("stream_routes/a", "1")]).await;
    let address = served.address;
    let recorder = Recorder::start(etcd_feed(address));
    until("the list", || recorder.last().is_some_and(|last| last.1 == record(&[("stream_routes/a", "1")])))
        .await;
    let change = [("stream_routes/a", "2"), ("stream_routes/b", "1")];
    let published = served.etcd.publish(&desired(&change)).await.unwrap();
    let revision = published.revision.get();
    until("the change", || recorder.last() == Some((revision, record(&change)))).await;
    until("the page", || recorder.page()["published_revision"] == revision).await;
    assert_eq!(recorder.page()["observed_revision"], revision);

    served.stop().await;
    until("the fault", || recorder.page()["error_kind"] == "etcd_unavailable").await;
    let page = recorder.page();
    assert_eq!((&page["ready"], &page["published_revision"]), (&Value::Bool(true), &revision.into()));
    assert_eq!(recorder.last(), Some((revision, record(&change))), "nothing is taken away");
    let metrics = recorder.metrics.encode().unwrap();
    assert!(metrics.contains("pingsix_sidecar_feed_connected 0"), "{metrics}");
    assert!(
        metrics.contains("pingsix_sidecar_feed_failures_total{category=\"etcd_unavailable\"}"),
        "{metrics}"
    );

    let served = Served::start(&address.to_string(), &[("stream_routes/c", "1")]).await;
    until("the new list", || {
        recorder.last().is_some_and(|last| last.1 == record(&[("stream_routes/c", "1")]))
    })
    .await;
    until("the page", || recorder.page()["error_kind"].is_null()).await;
    recorder.end().await;
    served.stop().await;
}

#[tokio::test]
async fn errors_are_on_the_page_and_a_closed_listener_holds_the_revision_back() {
    let served = Served::start("127.0.0.1:0", &[("stream_routes/a", "1")]).await;
    let recorder = Recorder::start(etcd_feed(served.address));
    until("the list", || recorder.page()["published_revision"].is_i64()).await;
    let before = recorder.page()["published_revision"].clone();
    served.etcd.publish(&desired(&[("stream_routes/taken", "1")])).await.unwrap();
    until("the fault", || recorder.page()["faults"][0]["port"] == 5432).await;
    let page = recorder.page();
    assert_eq!((&page["published_revision"], &page["error_kind"]), (&before, &Value::Null));
    let metrics = recorder.metrics.encode().unwrap();
    assert!(metrics.contains("pingsix_sidecar_faults{kind=\"listener\"} 1"), "{metrics}");
    assert!(metrics.contains("pingsix_sidecar_feed_connected 1"), "{metrics}");
    until("the port", || recorder.page()["faults"] == json!([])).await;
    assert_ne!(recorder.page()["published_revision"], before);
    recorder.end().await;
}

#[tokio::test]
async fn a_file_that_becomes_unusable_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("streams.yaml");
    std::fs::write(&file, "stream_routes: [{id: a, server_port: 1}]\n").unwrap();
    let recorder = Recorder::start(Feed::File(FileReader::new(file.clone(), None).unwrap()));
    let first = record(&[("stream_routes/a", r#"{"server_port":1}"#)]);
    until("the file", || recorder.last() == Some((1, first.clone()))).await;
    std::fs::write(&file, "hunter2").unwrap();
    until("the fault", || recorder.page()["error_kind"] == "file_unusable").await;
    let page = recorder.page().to_string();
    assert!(!page.contains("hunter2") && !page.contains("candidate_invalid"), "{page}");
    assert_eq!(recorder.last(), Some((1, first)));
    std::fs::write(&file, "stream_routes: []\n").unwrap();
    until("the file", || recorder.last() == Some((2, vec![]))).await;
    recorder.end().await;
}
