//! Authenticated clients read only their own prefixes.

use crate::authority;
use crate::log;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::authority::{Authority, Pair};
use crate::wire::{Served, WAIT_TIMEOUT, Watcher, events, pairs, under, watch_under};
use futures::stream;
use pingsix_sink::contract::documents::{desired, scope};
use pingsix_sink::embedded::{Access, Builder, Clients, Pace};
use pingsix_sink::{EmbeddedEtcd, Sink};
use pingsix_test_programs::proto::etcdserverpb::compare::TargetUnion;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::request_op::Request as Operation;
use pingsix_test_programs::proto::etcdserverpb::watch_client::WatchClient;
use pingsix_test_programs::proto::etcdserverpb::watch_request::RequestUnion;
use pingsix_test_programs::proto::etcdserverpb::{
    Compare, RequestOp, TxnRequest, WatchCancelRequest, WatchRequest,
};
use rcgen::{DistinguishedName, DnType};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

/// A server that admits clients by the common names of their certificates.
struct Secured {
    served: Served,
    servers: Authority,
    clients: Authority,
}

impl Secured {
    async fn start(builder: Builder, access: Option<Access>) -> Self {
        log::keep();
        let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
        let mut builder = builder.tls(servers.issue(1).server().client_ca_pem(clients.pem()));
        if let Some(access) = access {
            builder = builder.access(access);
        }
        let served = Served::start(builder).await;
        for prefix in ["/p/web", "/p/web:80", "/p/api"] {
            served.etcd.publish(&desired(prefix, &[("routes/a", "1")])).await.unwrap();
        }
        served.etcd.open();
        Self { served, servers, clients }
    }

    fn issue(&self, names: &[&str]) -> Pair {
        self.clients.issue_with(2, |params| {
            params.distinguished_name = DistinguishedName::new();
            for name in names {
                params.distinguished_name.push(DnType::CommonName, *name);
            }
        })
    }

    /// A connection of a client whose certificate has these common names.
    async fn connect(&self, names: &[&str]) -> Channel {
        self.endpoint(names).connect().await.unwrap()
    }

    fn endpoint(&self, names: &[&str]) -> Endpoint {
        let tls = authority::client(&self.servers, Some(&self.issue(names)));
        Channel::from_shared(format!("https://{}", self.served.address)).unwrap().tls_config(tls).unwrap()
    }
}

fn clients() -> Clients {
    Clients::new().certificate("web", [scope("/p/web"), scope("/p/web:80")])
}

async fn list(channel: &Channel, prefix: &str) -> Result<Vec<String>, Code> {
    let answer = KvClient::new(channel.clone()).range(under(prefix)).await;
    answer.map(|answer| pairs(answer.get_ref())).map_err(|status| status.code())
}

async fn watch(channel: &Channel, prefix: &str) -> Watcher {
    let mut watcher = Watcher::open(channel.clone()).await.unwrap();
    watcher.create(watch_under(prefix, 0)).await;
    watcher
}

#[tokio::test]
async fn a_client_reads_below_its_prefixes_and_nowhere_else() {
    let secured = Secured::start(EmbeddedEtcd::builder(), Some(Access::of(clients()))).await;
    let etcd = &secured.served.etcd;
    let channel = secured.connect(&["web"]).await;
    for own in ["/p/web/", "/p/web:80/"] {
        assert_eq!(list(&channel, own).await, Ok(vec![format!("{own}routes/a=1")]));
    }
    for other in ["/p/api/", "/p/", "/p/web", "/", "/q/"] {
        assert_eq!(list(&channel, other).await, Err(Code::PermissionDenied), "{other}");
    }

    // Neither a comparison nor an unused branch circumvents the check.
    let peeking = Compare {
        key: "/p/api/routes/a".into(),
        target_union: Some(TargetUnion::Version(1)),
        ..Compare::default()
    };
    let outside = RequestOp { request: Some(Operation::RequestRange(under("/p/api/"))) };
    for txn in [
        TxnRequest { compare: vec![peeking], ..TxnRequest::default() },
        TxnRequest { success: vec![outside.clone()], ..TxnRequest::default() },
        TxnRequest { failure: vec![outside], ..TxnRequest::default() },
    ] {
        let refused = KvClient::new(channel.clone()).txn(txn).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
    }

    let mut watcher = watch(&channel, "/p/web/").await;
    for other in ["/p/", "/p/api/", "/p/web"] {
        assert!(watcher.create(watch_under(other, 0)).await.canceled, "{other}");
    }
    etcd.publish(&desired("/p/web", &[("routes/a", "2")])).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/a=2"]);
    assert!(etcd.stats().denied >= 11, "{:?}", etcd.stats());
}

#[tokio::test]
async fn an_unknown_key_is_logged_by_its_beginning_alone() {
    let secured = Secured::start(EmbeddedEtcd::builder(), None).await;
    let long = format!("/somewhere-else/{}the-end/", "x".repeat(3_000));
    assert_eq!(list(&secured.connect(&["web"]).await, &long).await, Err(Code::Unavailable));
    let warnings = log::warnings("/somewhere-else/xxx");
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].len() < 1_000, "{} bytes", warnings[0].len());
}

#[tokio::test]
async fn replaced_clients_count_at_once_also_for_watches_that_are_open() {
    let secured = Secured::start(EmbeddedEtcd::builder(), Some(Access::of(clients()))).await;
    let etcd = &secured.served.etcd;
    let channel = secured.connect(&["web"]).await;
    let mut web = watch(&channel, "/p/web/").await;
    let mut port = watch(&channel, "/p/web:80/").await;

    etcd.replace_clients(Clients::new().certificate("web", [scope("/p/web")]));
    let cancelled = port.next().await;
    assert!(cancelled.canceled && cancelled.cancel_reason.contains("permission denied"), "{cancelled:?}");
    assert_eq!(list(&channel, "/p/web:80/").await, Err(Code::PermissionDenied));
    web.settle().await;

    etcd.replace_clients(Clients::new().certificate("another", [scope("/p/web")]));
    assert!(web.next().await.canceled);
    assert_eq!(list(&channel, "/p/web/").await, Err(Code::PermissionDenied));
    assert_eq!(etcd.stats().watches, 0);
    list(&secured.connect(&["another"]).await, "/p/web/").await.unwrap();
}

/// A client with an endless stream of requests is checked no later than others.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_that_floods_its_stream_loses_its_watches_all_the_same() {
    const WATCHES: i64 = 500;
    let secured = Secured::start(EmbeddedEtcd::builder(), Some(Access::of(clients()))).await;
    // The server checks each watch after each request, so it never reaches the end of the requests.
    let creates = (0..WATCHES).map(|_| RequestUnion::CreateRequest(watch_under("/p/web/", 0)));
    let cancel = RequestUnion::CancelRequest(WatchCancelRequest { watch_id: WATCHES + 1 });
    let requests = creates.chain(std::iter::repeat(cancel));
    let requests = stream::iter(requests.map(|request| WatchRequest { request_union: Some(request) }));
    let mut client = WatchClient::new(secured.connect(&["web"]).await);
    let mut responses = client.watch(requests).await.unwrap().into_inner();
    for _ in 0..WATCHES {
        assert!(responses.message().await.unwrap().unwrap().created);
    }
    tokio::time::sleep(Duration::from_millis(200)).await;

    secured.served.etcd.replace_clients(Clients::new());
    let cancelled =
        tokio::time::timeout(WAIT_TIMEOUT, responses.message()).await.expect("it is checked in time");
    assert!(cancelled.unwrap().unwrap().canceled);
}

/// A client that reads late receives no response that it may no longer read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_responses_of_a_slow_client_are_dropped_with_its_access() {
    let builder = EmbeddedEtcd::builder().pace(Pace::NONE);
    let secured = Secured::start(builder, Some(Access::of(clients()))).await;
    let etcd = &secured.served.etcd;
    let narrow = secured.endpoint(&["web"]).initial_stream_window_size(65_535).connect().await.unwrap();
    let mut slow = watch(&narrow, "/p/web/").await;
    let publish = async |value: &str| {
        etcd.publish(&desired("/p/web", &[("routes/a", value)])).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    publish(&"x".repeat(500_000)).await;
    publish("waits").await;
    etcd.replace_clients(Clients::new());
    publish("not for everybody").await;

    assert_eq!(slow.next().await.events.len(), 1, "the response that was sent before");
    let next = slow.next().await;
    assert!(next.canceled && next.events.is_empty(), "{next:?}");
}

#[tokio::test]
async fn a_server_that_served_anybody_can_be_closed() {
    let secured = Secured::start(EmbeddedEtcd::builder(), None).await;
    let channel = secured.connect(&["stranger"]).await;
    let mut watcher = watch(&channel, "/p/").await;
    secured.served.etcd.replace_clients(clients());
    assert!(watcher.next().await.canceled);
    assert_eq!(list(&channel, "/p/web/").await, Err(Code::PermissionDenied));
    list(&secured.connect(&["web"]).await, "/p/web/").await.unwrap();
}

#[tokio::test]
async fn without_a_certificate_a_server_with_access_serves_nothing() {
    let served = Served::start(EmbeddedEtcd::builder().access(Access::of(clients()))).await;
    served.etcd.publish(&desired("/p/web", &[("routes/a", "1")])).await.unwrap();
    served.etcd.open();
    let channel = served.channel().await;
    assert_eq!(list(&channel, "/p/web/").await, Err(Code::InvalidArgument));
    let mut watcher = Watcher::open(channel).await.unwrap();
    assert!(watcher.create(watch_under("/p/web/", 0)).await.canceled);
}

/// Replaces a file atomically.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, path).unwrap();
}

#[tokio::test]
async fn clients_of_a_file_are_read_again_and_a_faulty_file_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("clients");
    let missing = EmbeddedEtcd::builder().access(Access::from_file(&path)).start().await.unwrap_err();
    assert_eq!((missing.category(), missing.is_retryable()), ("clients", true));
    assert!(missing.to_string().contains(path.to_str().unwrap()), "{missing}");

    std::fs::write(&path, "web certificate /p/web\n").unwrap();
    let access = Access::from_file(&path).reread_interval(Duration::from_millis(5));
    let secured = Secured::start(EmbeddedEtcd::builder(), Some(access)).await;
    let channel = secured.connect(&["web"]).await;
    list(&channel, "/p/web/").await.unwrap();

    replace(&path, "web password replaced-but-not-a-certificate /p/web\n");
    let name = path.display().to_string();
    let warned = async {
        while log::warnings(&name).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, warned).await.unwrap();
    let warning = log::warnings(&name).remove(0);
    assert!(warning.contains("line 1") && !warning.contains("replaced-but"), "{warning}");
    list(&channel, "/p/web/").await.unwrap();

    replace(&path, "web certificate /p/api\n");
    let replaced = async {
        while list(&channel, "/p/web/").await != Err(Code::PermissionDenied) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, replaced).await.unwrap();
    list(&channel, "/p/api/").await.unwrap();
}

/// A file that is written while it is read: no client loses access because of the missing part.
#[tokio::test]
async fn a_file_that_is_half_written_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("half-written-clients");
    let whole = "web certificate /p/web /p/api\nother certificate /p/web:80\n";
    std::fs::write(&path, whole).unwrap();
    let access = Access::from_file(&path).reread_interval(Duration::from_millis(5));
    let secured = Secured::start(EmbeddedEtcd::builder(), Some(access)).await;
    let mut watcher = watch(&secured.connect(&["web"]).await, "/p/api/").await;
    let other = secured.connect(&["other"]).await;

    let name = path.display().to_string();
    let beginning = whole.find(" /p/api").unwrap();
    for (warned, (half, why)) in (1..).zip([
        (&whole[..beginning], "line 1: the line does not end"),
        ("", "names no client"),
        ("# web\n\n", "names no client"),
    ]) {
        replace(&path, half);
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while log::warnings(&name).len() < warned {
            assert!(Instant::now() < deadline, "{half:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let last = log::warnings(&name).pop().unwrap();
        assert!(last.contains(why), "{half:?}: {last}");
        replace(&path, whole);
        tokio::time::sleep(Duration::from_millis(50)).await;
        watcher.settle().await;
        list(&other, "/p/web:80/").await.unwrap();
    }
}

#[tokio::test]
async fn a_certificate_proves_its_one_common_name() {
    let known = Clients::new().certificate("edge", [scope("/p/web")]);
    let secured = Secured::start(EmbeddedEtcd::builder(), Some(Access::of(known))).await;
    let edge = secured.connect(&["edge"]).await;
    assert!(list(&edge, "/p/web/").await.is_ok());
    assert_eq!(list(&edge, "/p/api/").await, Err(Code::PermissionDenied));
    let mut watcher = watch(&edge, "/p/web/").await;
    watcher.settle().await;

    for (names, expected) in [
        (&["web"][..], Code::PermissionDenied),
        (&["other"], Code::PermissionDenied),
        (&[], Code::InvalidArgument),
    ] {
        let channel = secured.connect(names).await;
        assert_eq!(list(&channel, "/p/web/").await, Err(expected), "{names:?}");
        assert_eq!(list(&channel, "/p/api/").await, Err(expected), "{names:?}");
    }
}
