//! Targets that a PingSIX reads from, through the program: an etcd, an Admin API, and its own server with clients that have
//! names. The real PingSIX is started where `PINGSIX_BIN` names it.

use std::net::SocketAddr;
use std::path::Path;

use pingsix_sink::admin::PUBLISHER_LABEL;
use pingsix_sink::{Desired, Document, DocumentSet, EtcdSink, Key, OrderHint, Owner, Scope, Sink as _};
use pingsix_test_cluster::Process;
use pingsix_test_programs::free_address;
use pingsix_test_programs::proto::etcdserverpb::RangeRequest;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::Status;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::cluster::{SHOP, Shop, until};
use crate::process::get;
use crate::sinks::{Etcd, PREFIX, controller, controller_with, programmed};

const CONFIRMED: &str = "Every known PingSIX instance has published the configuration.";

/// The key of the Admin API in the tests.
const ADMIN_KEY: &str = "canary-admin-key";

/// The real PingSIX, which reads the publications for the Gateway of the shop.
struct PingSix {
    process: Process,
    status: SocketAddr,
    admin: SocketAddr,
}

impl PingSix {
    /// `None` without etcd, which the test reports.
    async fn start(shop: &Shop, etcd: &Etcd) -> Option<Self> {
        let (binary, cluster) = (pingsix_test_programs::pingsix()?, &shop.cluster);
        let (traffic, status, admin) = (free_address(), free_address(), free_address());
        let folder = cluster.folder();
        let config = folder.join("pingsix.yaml");
        let written = format!(
            "
pingora: {{threads: 1, pid_file: {0}/pingsix.pid, upgrade_sock: {0}/pingsix.sock}}
pingsix:
  listeners: [{{address: {traffic}}}]
  etcd: {{host: ['http://{1}'], prefix: /pingsix/default/web}}
  status: {{address: {status}}}
  admin: {{address: {admin}, api_key: {ADMIN_KEY}}}
",
            folder.display(),
            etcd.address()
        );
        std::fs::write(&config, written).unwrap();
        let process = cluster.run("pingsix", vec![binary.into(), "-c".into(), config.into()]).await.unwrap();
        let pingsix = Self { process, status, admin };
        until("PingSIX answers", async || request(admin, "GET", "/", "").await.is_some()).await;
        Some(pingsix)
    }

    fn status_url(&self) -> String {
        format!("--status-url=default/web=http://{}", self.status)
    }

    /// The revision that it has published.
    async fn published(&self) -> i64 {
        let page = request(self.status, "GET", "/status/config", "").await;
        let page: Value = page.and_then(|(_, body)| serde_json::from_str(&body).ok()).unwrap_or_default();
        page["published_revision"].as_i64().unwrap_or_default()
    }
}

/// Status and body of an answer.
async fn request(to: SocketAddr, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(to).await.ok()?;
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: test\r\nX-API-KEY: {ADMIN_KEY}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Waits until the condition `Programmed` of the shop's Gateway has this status and a message with this text.
async fn is_programmed(shop: &Shop, status: &str, message: &str) {
    until(&format!("it is programmed: {status}: {message}"), async || {
        let gateway = shop.object("Gateway", "web").await;
        programmed(&gateway).is_some_and(|condition| {
            condition["status"] == status
                && condition["message"].as_str().unwrap_or_default().contains(message)
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_pingsix_on_an_external_etcd_confirms_the_revisions_of_that_etcd() {
    let Some(etcd) = Etcd::start().await else { return };
    let Some(shop) = Shop::start().await else { return };
    let Some(pingsix) = PingSix::start(&shop, &etcd).await else { return };
    // Writes to other keys raise the etcd's revision without a publication.
    for count in 0..50 {
        etcd.put("/elsewhere", &count.to_string()).await;
    }
    let arguments = [format!("--sink=etcd://{}", etcd.address()), pingsix.status_url()];
    let mut controller = controller(&shop, "only", &arguments);
    let metrics = controller.address_of("health");
    is_programmed(&shop, "True", CONFIRMED).await;
    let newest = async || etcd.list().await.values().map(|(_, modified, _)| *modified).max().unwrap();
    let first = newest().await;
    assert!(first > 50 && pingsix.published().await >= first, "{first}");
    let line = format!("pingsix_gateway_published_revision{{sink=\"etcd\"}} {first}\n");
    let page = get(metrics, "/metrics").1;
    assert!(page.contains(&line), "{line} is not in\n{page}");

    for count in 0..50 {
        etcd.put("/elsewhere", &count.to_string()).await;
    }
    shop.cluster.apply(&SHOP.replace("10.1.2.3", "10.1.2.4")).await.unwrap();
    until("the change is there", async || etcd.holds("10.1.2.4").await).await;
    let second = newest().await;
    assert!(second > first + 50);
    until("PingSIX has it", async || pingsix.published().await >= second).await;
    is_programmed(&shop, "True", CONFIRMED).await;

    // A stopped instance confirms nothing, and a restarted one has all documents.
    pingsix.process.kill().await.unwrap();
    shop.cluster.apply(&SHOP.replace("10.1.2.3", "10.1.2.5")).await.unwrap();
    is_programmed(&shop, "False", "cannot be read").await;
    pingsix.process.start().await.unwrap();
    is_programmed(&shop, "True", CONFIRMED).await;
    assert!(pingsix.published().await >= newest().await);

    // Changes by other writers are undone, whether PingSIX has read them or not.
    let upstream = etcd.list().await.into_iter().find(|(_, (.., value))| value.contains("10.1.2.5"));
    let (key, (.., value)) = upstream.unwrap();
    etcd.put(&key, "this is no document").await;
    until("it is put right", async || etcd.list().await[&key].2 == value).await;
    until("PingSIX has it", async || pingsix.published().await >= newest().await).await;
    is_programmed(&shop, "True", CONFIRMED).await;
    controller.signal("-TERM");
    assert_eq!(controller.ended(), Some(0), "{:?}", controller.logged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_changes_in_an_etcd_are_reverted() {
    let Some(etcd) = Etcd::start().await else { return };
    let Some(shop) = Shop::start().await else { return };
    let mut controller = controller(&shop, "only", &[format!("--sink=etcd://{}", etcd.address())]);
    until("the etcd has the shop", async || etcd.holds("10.1.2.3").await).await;
    let values = async || -> Vec<(String, String)> {
        etcd.list().await.into_iter().map(|(key, (.., value))| (key, value)).collect()
    };
    is_programmed(&shop, "True", "").await;
    let before = values().await;
    for (key, _) in &before {
        etcd.put(key, "spoilt").await;
    }
    until("what was spoilt is put right", async || values().await == before).await;
    for (key, _) in &before {
        etcd.delete(key).await;
    }
    until("what was deleted is there again", async || values().await == before).await;
    // Foreign keys stay.
    let foreign = format!("{PREFIX}upstreams/theirs");
    etcd.put(&foreign, "{}").await;
    etcd.put(&before[0].0, "spoilt").await;
    until("it is put right again", async || values().await.contains(&before[0])).await;
    assert_eq!(etcd.list().await[&foreign].2, "{}");
    controller.signal("-TERM");
    assert_eq!(controller.ended(), Some(0), "{:?}", controller.logged);
}

/// A Gateway beside that of the shop, with a route.
const OTHER: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other, namespace: default}
spec:
  gatewayClassName: pingsix
  listeners: [{name: plain, port: 80, protocol: HTTP, hostname: other.example}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: other, namespace: default}
spec:
  parentRefs: [{name: other}]
  rules: [{backendRefs: [{name: cart, port: 80}]}]
";

/// Publishes documents as another program.
async fn publish_as(etcd: &Etcd, scope: &str, publisher: Option<&str>) {
    let sink = EtcdSink::builder([etcd.address().to_string()]).without_watch().build().unwrap();
    if let Some(publisher) = publisher {
        sink.publish_as(publisher);
    }
    let document = Document {
        key: Key::new("upstreams/theirs").unwrap(),
        value: "{}".into(),
        order: OrderHint(0),
        owner: Owner::new("somebody else"),
    };
    let documents = DocumentSet::new([document]).unwrap();
    sink.publish(&Desired::new(Scope::new(scope).unwrap(), documents)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_of_a_gateway_deleted_without_a_controller_are_withdrawn() {
    let Some(etcd) = Etcd::start().await else { return };
    let Some(shop) = Shop::start().await else { return };
    shop.cluster.apply(OTHER).await.unwrap();
    let arguments = [format!("--sink=etcd://{}", etcd.address())];
    let mut first = controller(&shop, "first", &arguments);
    until("the etcd has the shop", async || etcd.holds("10.1.2.3").await).await;
    let of_other = async || etcd.list_below("/pingsix/default/other/").await;
    until("and the other", async || !of_other().await.is_empty()).await;
    // The first publication may be older than the mark.
    let publisher_of = async |prefix: &str| etcd.get(&format!("{prefix}.pingsix_sink_publisher")).await;
    until("the publisher has its mark", async || publisher_of(PREFIX).await.is_some()).await;
    let publisher = publisher_of(PREFIX).await.unwrap();
    assert!(publisher.starts_with("pingsix.io/gateway-controller@"), "{publisher}");
    // One of another cluster, and one without a publisher. Neither has a Gateway here.
    publish_as(&etcd, "/pingsix/default/theirs", Some("pingsix.io/gateway-controller@another-cluster")).await;
    publish_as(&etcd, "/pingsix/default/unknown", None).await;

    first.signal("-KILL");
    first.ended();
    shop.delete("Gateway", "web").await;
    let before = of_other().await;
    let mut second = controller(&shop, "second", &arguments);
    until("what is gone is withdrawn", async || etcd.list().await.is_empty()).await;
    until("nobody claims it", async || publisher_of(PREFIX).await.is_none()).await;
    second.signal("-TERM");
    assert_eq!(second.ended(), Some(0), "{:?}", second.logged);
    assert_eq!(of_other().await, before, "not even written again");
    for theirs in ["theirs", "unknown"] {
        let left = etcd.list_below(&format!("/pingsix/default/{theirs}/")).await;
        assert_eq!(left.len(), 1, "{theirs}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_admin_api_of_pingsix_takes_documents_and_leftovers_are_withdrawn() {
    let Some(etcd) = Etcd::start().await else { return };
    let Some(shop) = Shop::start().await else { return };
    let Some(pingsix) = PingSix::start(&shop, &etcd).await else { return };
    let theirs = request(
        pingsix.admin,
        "PUT",
        "/apisix/admin/upstreams/theirs",
        &json!({"nodes": {"127.0.0.1:9": 1}}).to_string(),
    )
    .await
    .unwrap();
    assert!(theirs.0 < 300, "{theirs:?}");
    let sink = format!("--sink=default/web=admin+http://{}", pingsix.admin);
    let arguments = [sink, pingsix.status_url()];
    let variables = [("PINGSIX_ADMIN_KEY", ADMIN_KEY)];
    let mut first = controller_with(&shop, "first", &arguments, &variables);
    let health = first.address_of("health");
    is_programmed(&shop, "True", CONFIRMED).await;
    let page = get(health, "/metrics").1;
    assert!(page.contains("pingsix_gateway_publications_total{sink=\"admin\"}"), "{page}");
    let ours = async || {
        let mut documents = etcd.list().await;
        documents.retain(|key, _| !key.ends_with("/upstreams/theirs"));
        documents
    };
    assert!(etcd.holds("10.1.2.3").await && ours().await.keys().any(|key| key.contains("/ssls/")));
    shop.cluster.apply(&SHOP.replace("10.1.2.3", "10.1.2.4")).await.unwrap();
    until("the change is there", async || etcd.holds("10.1.2.4").await && !etcd.holds("10.1.2.3").await)
        .await;
    is_programmed(&shop, "True", CONFIRMED).await;
    let marked = async || ours().await.values().all(|(.., value)| value.contains(PUBLISHER_LABEL));
    until("the publisher has its mark", marked).await;

    first.signal("-KILL");
    first.ended();
    assert!(!format!("{:?}", first.logged).contains(ADMIN_KEY));
    shop.delete("Gateway", "web").await;
    assert!(!ours().await.is_empty());
    let mut second = controller_with(&shop, "second", &arguments, &variables);
    until("what is gone is withdrawn", async || ours().await.is_empty()).await;
    assert_eq!(etcd.list().await.len(), 1, "theirs stays");
    second.signal("-TERM");
    assert_eq!(second.ended(), Some(0), "{:?}", second.logged);
}

/// An authority of certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate for the loopback address with a common name, and its key.
    fn issue(&self, common_name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// The number of keys below a prefix that the holder of a certificate with this common name reads.
    async fn read_as(&self, feed: SocketAddr, common_name: &str, prefix: &str) -> Result<usize, Status> {
        let (certificate, key) = self.issue(common_name);
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(self.0.pem()))
            .identity(Identity::from_pem(certificate, key));
        let endpoint = Endpoint::from_shared(format!("https://{feed}")).unwrap().tls_config(tls).unwrap();
        let channel = endpoint.connect().await.map_err(|_| Status::unavailable("no connection"))?;
        let request = RangeRequest {
            key: format!("{prefix}/").into(),
            range_end: format!("{prefix}0").into(),
            ..RangeRequest::default()
        };
        Ok(KvClient::new(channel).range(request).await?.into_inner().kvs.len())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_file_read_only_their_own_prefixes() {
    const WEB: &str = "/pingsix/default/web";
    const OTHER_PREFIX: &str = "/pingsix/default/other";
    let Some(shop) = Shop::start().await else { return };
    shop.cluster.apply(OTHER).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clients");
    let write = |file: &Path, text: &str| {
        // Atomically, as in a mounted Secret.
        let other = file.with_extension("new");
        std::fs::write(&other, text).unwrap();
        std::fs::rename(other, file).unwrap();
    };
    write(&file, &format!("web certificate {WEB}\n"));
    let authority = Authority::new();
    let (certificate, key) = authority.issue("feed");
    let pem = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let arguments = [
        "--debug-address=off".to_owned(),
        "--leader-elect=false".to_owned(),
        format!("--feed-clients-file={}", file.display()),
        format!("--feed-tls-cert={}", pem("tls.crt", &certificate)),
        format!("--feed-tls-key={}", pem("tls.key", &key)),
        format!("--feed-tls-client-ca={}", pem("ca.crt", &authority.0.pem())),
    ];
    let mut controller = shop.controller(&arguments.each_ref().map(String::as_str), &[]);
    let health = controller.address_of("health");
    let feed = controller.line(|line| line["message"] == "serving the etcd protocol");
    let feed: SocketAddr = feed["address"].as_str().unwrap().parse().unwrap();
    until("it is ready", async || get(health, "/readyz").0 == 200).await;

    assert!(authority.read_as(feed, "web", WEB).await.unwrap() > 2);
    for (who, prefix) in [("nobody", WEB), ("web", OTHER_PREFIX), ("web", "/pingsix")] {
        let refused = authority.read_as(feed, who, prefix).await;
        assert!(refused.is_err(), "{who:?} reads {prefix}: {refused:?}");
    }
    assert!(get(health, "/metrics").1.contains("pingsix_gateway_feed_denied_total "));

    // The file is read again with another client and a new one. An invalid file changes nothing.
    write(&file, &format!("another certificate {WEB}\nother certificate {OTHER_PREFIX}\n"));
    let another = async || authority.read_as(feed, "another", WEB).await.is_ok();
    until("the new client is admitted", another).await;
    assert!(authority.read_as(feed, "web", WEB).await.is_err(), "the former client");
    assert!(authority.read_as(feed, "other", OTHER_PREFIX).await.is_ok());
    write(&file, "web password canary-password /pingsix\n");
    controller.line(|line| line["level"] == "WARN" || line["level"] == "ERROR");
    assert!(another().await);
    controller.signal("-TERM");
    assert_eq!(controller.ended(), Some(0), "{:?}", controller.logged);
    assert!(!format!("{:?}", controller.logged).contains("canary"), "a password is in the log");
}
