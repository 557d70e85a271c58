//! Controllers that publish elsewhere than to their own server, on a real API server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::{DeleteRangeRequest, PutRequest, RangeRequest};
use serde_json::Value;
use tonic::transport::{Channel, Endpoint};

use crate::cluster::{Shop, until};
use crate::process::{Controller, get};

pub(crate) const PREFIX: &str = "/pingsix/default/web/";

/// The time limit of an answer from etcd; the test reports a timeout.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A real etcd with its content, which ends when it is dropped.
pub(crate) struct Etcd(pingsix_test_programs::Etcd);

impl Etcd {
    /// `None` without etcd, which the test reports.
    pub(crate) async fn start() -> Option<Self> {
        pingsix_test_programs::Etcd::start().await.map(Self)
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.0.address()
    }

    async fn client(&self) -> KvClient<Channel> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address())).unwrap();
        KvClient::new(
            endpoint.connect_timeout(ANSWER_TIMEOUT).timeout(ANSWER_TIMEOUT).connect().await.unwrap(),
        )
    }

    /// The documents of the Gateway.
    pub(crate) async fn list(&self) -> BTreeMap<String, Document> {
        self.list_below(PREFIX).await
    }

    pub(crate) async fn list_below(&self, prefix: &str) -> BTreeMap<String, Document> {
        let mut range_end = prefix.as_bytes().to_vec();
        *range_end.last_mut().unwrap() += 1;
        let request = RangeRequest {
            key: prefix.to_owned().into(),
            range_end: range_end.into(),
            ..RangeRequest::default()
        };
        let answer = self.client().await.range(request).await.unwrap().into_inner();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let documents = answer
            .kvs
            .iter()
            .map(|pair| (text(&pair.key), (pair.create_revision, pair.mod_revision, text(&pair.value))));
        documents.filter(|(key, _)| !key.contains("/.")).collect()
    }

    pub(crate) async fn holds(&self, text: &str) -> bool {
        self.list().await.values().any(|(.., document)| document.contains(text))
    }

    pub(crate) async fn get(&self, key: &str) -> Option<String> {
        let request = RangeRequest { key: key.to_owned().into(), ..RangeRequest::default() };
        let answer = self.client().await.range(request).await.unwrap().into_inner();
        answer.kvs.first().map(|pair| String::from_utf8_lossy(&pair.value).into_owned())
    }

    pub(crate) async fn put(&self, key: &str, value: &str) {
        let (key, value) = (key.to_owned().into(), value.to_owned().into());
        let request = PutRequest { key, value, ..PutRequest::default() };
        self.client().await.put(request).await.unwrap();
    }

    pub(crate) async fn delete(&self, key: &str) {
        let request = DeleteRangeRequest { key: key.to_owned().into(), ..DeleteRangeRequest::default() };
        self.client().await.delete_range(request).await.unwrap();
    }
}

/// The revisions that it came and was changed with, and the text.
type Document = (i64, i64, String);

pub(crate) fn controller(shop: &Shop, name: &str, arguments: &[String]) -> Controller {
    controller_with(shop, name, arguments, &[])
}

pub(crate) fn controller_with(
    shop: &Shop,
    name: &str,
    arguments: &[String],
    variables: &[(&str, &str)],
) -> Controller {
    let more = arguments.iter().map(String::as_str);
    let arguments = [
        "--debug-address=off",
        "--leader-lease=controller",
        "--leader-namespace=default",
        "--leader-duration=3s",
        "--leader-renew-deadline=2s",
        "--leader-retry=500ms",
    ];
    let arguments: Vec<&str> = arguments.into_iter().chain(more).collect();
    shop.controller(&arguments, &[&[("POD_NAME", name)], variables].concat())
}

/// All files below a directory.
fn written(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    // A temporary file may disappear.
    entries
        .map(
            |path| {
                if path.is_dir() { written(&path) } else { std::fs::read_to_string(path).unwrap_or_default() }
            },
        )
        .collect()
}

pub(crate) fn programmed(gateway: &Value) -> Option<&Value> {
    gateway["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Programmed")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_replica_takes_over_a_shared_etcd_and_withdraws_nothing() {
    let Some(etcd) = Etcd::start().await else { return };
    let Some(shop) = Shop::start().await else { return };
    let sink = format!("--sink=etcd://{}", etcd.address());
    let mut first = controller(&shop, "first", std::slice::from_ref(&sink));
    let health = first.address_of("health");
    until("the etcd has the shop", async || etcd.holds("10.1.2.3").await).await;
    until("it is programmed", async || {
        programmed(&shop.object("Gateway", "web").await)
            .is_some_and(|condition| condition["status"] == "True")
    })
    .await;
    assert!(get(health, "/metrics").1.contains("pingsix_gateway_publications_total{sink=\"etcd\"}"));
    assert!(!get(health, "/metrics").1.contains("pingsix_gateway_feed_open"), "nobody reads from its server");

    let mut second = controller(&shop, "second", &[sink]);
    let health = second.address_of("health");
    until("the second is ready", async || get(health, "/readyz").0 == 200).await;
    let metrics = get(health, "/metrics").1;
    assert!(
        metrics.contains("pingsix_gateway_leader 0") && !metrics.contains("publications_total{"),
        "{metrics}"
    );
    let before = etcd.list().await;
    assert!(before.len() > 2, "{before:#?}");

    first.signal("-KILL");
    first.ended();
    shop.cluster.apply(&crate::cluster::SHOP.replace("10.1.2.3", "10.1.2.4")).await.unwrap();
    until("the second publishes", async || etcd.holds("10.1.2.4").await).await;
    let after = etcd.list().await;
    for (key, (came, ..)) in &before {
        assert_eq!(after.get(key).map(|(came, ..)| came), Some(came), "{key} was withdrawn");
    }
    assert_eq!(before.len(), after.len());

    shop.delete("Gateway", "web").await;
    until("what is gone is withdrawn", async || etcd.list().await.is_empty()).await;
    second.signal("-TERM");
    assert_eq!(second.ended(), Some(0), "{:?}", second.logged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_sink_reports_that_a_restart_is_needed() {
    let Some(shop) = Shop::start().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let sink = format!("--sink=default/web=file:{}/", directory.path().display());
    let mut controller = controller(&shop, "only", &[sink]);
    let health = controller.address_of("health");
    until("it is ready", async || get(health, "/readyz").0 == 200).await;
    until("it is written", async || written(directory.path()).contains("10.1.2.3")).await;
    until("its status says so", async || {
        let gateway = shop.object("Gateway", "web").await;
        programmed(&gateway).is_some_and(|condition| {
            condition["status"] == "False" && condition["message"].to_string().contains("started again")
        })
    })
    .await;
    assert!(get(health, "/metrics").1.contains("pingsix_gateway_publications_total{sink=\"file\"}"));
}
