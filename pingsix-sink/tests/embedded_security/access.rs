//! Authenticated clients read only their own prefixes.

use crate::authority;
use crate::log;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::authority::{Authority, Pair};
use crate::wire::{Served, WAIT_TIMEOUT, Watcher, events, pairs, under, watch_under, with_token};
use futures::stream;
use parking_lot::Mutex;
use pingsix_sink::contract::documents::{desired, scope};
use pingsix_sink::embedded::revisions::Clock;
use pingsix_sink::embedded::{Access, Builder, Clients, Pace};
use pingsix_sink::proto::etcdserverpb::auth_client::AuthClient;
use pingsix_sink::proto::etcdserverpb::compare::TargetUnion;
use pingsix_sink::proto::etcdserverpb::kv_client::KvClient;
use pingsix_sink::proto::etcdserverpb::lease_client::LeaseClient;
use pingsix_sink::proto::etcdserverpb::request_op::Request as Operation;
use pingsix_sink::proto::etcdserverpb::watch_client::WatchClient;
use pingsix_sink::proto::etcdserverpb::watch_request::RequestUnion;
use pingsix_sink::proto::etcdserverpb::{
    AuthStatusRequest, AuthenticateRequest, Compare, LeaseGrantRequest, RequestOp, TxnRequest,
    WatchCancelRequest, WatchRequest,
};
use pingsix_sink::{EmbeddedEtcd, Sink};
use rcgen::DnType;
use tonic::transport::Channel;
use tonic::{Code, Status};

const PASSWORD: &str = "correct-horse-battery";

fn clients(password: &str) -> Clients {
    Clients::new().user("web", password, [scope("/p/web"), scope("/p/web:80")])
}

async fn served(builder: Builder) -> Served {
    log::keep();
    let served = Served::start(builder).await;
    for prefix in ["/p/web", "/p/web:80", "/p/api"] {
        served.etcd.publish(&desired(prefix, &[("routes/a", "1")])).await.unwrap();
    }
    served.etcd.open();
    served
}

async fn log_in(channel: &Channel, name: &str, password: &str) -> Result<String, Status> {
    let request = AuthenticateRequest { name: name.into(), password: password.into() };
    Ok(AuthClient::new(channel.clone()).authenticate(request).await?.into_inner().token)
}

async fn list(channel: &Channel, token: Option<&str>, prefix: &str) -> Result<Vec<String>, Code> {
    let answer = KvClient::new(channel.clone()).range(with_token(token, under(prefix))).await;
    answer.map(|answer| pairs(answer.get_ref())).map_err(|status| status.code())
}

async fn watch(channel: &Channel, token: Option<&str>, prefix: &str) -> Watcher {
    let mut watcher = Watcher::open_as(channel.clone(), token, None).await.unwrap();
    watcher.create(watch_under(prefix, 0)).await;
    watcher
}

#[tokio::test]
async fn a_user_reads_below_its_prefixes_and_nowhere_else() {
    let served = served(EmbeddedEtcd::builder().access(Access::of(clients(PASSWORD)))).await;
    let channel = served.channel().await;
    let status = AuthClient::new(channel.clone()).auth_status(AuthStatusRequest {}).await.unwrap();
    assert!(status.get_ref().enabled);
    let token = log_in(&channel, "web", PASSWORD).await.unwrap();
    let token = Some(token.as_str());
    for own in ["/p/web/", "/p/web:80/"] {
        assert_eq!(list(&channel, token, own).await, Ok(vec![format!("{own}routes/a=1")]));
    }
    for other in ["/p/api/", "/p/", "/p/web", "/", "/q/"] {
        assert_eq!(list(&channel, token, other).await, Err(Code::PermissionDenied), "{other}");
    }
    assert_eq!(list(&channel, None, "/p/web/").await, Err(Code::InvalidArgument));
    assert_eq!(list(&channel, Some("76.1.00"), "/p/web/").await, Err(Code::Unauthenticated));

    // Neither a comparison nor an unused branch circumvents the check.
    let peeking = Compare {
        key: "/p/api/routes/a".into(),
        target_union: Some(TargetUnion::Version(1)),
        ..Compare::default()
    };
    let outside = RequestOp { request: Some(Operation::RequestRange(under("/p/api/"))) };
    let inner = TxnRequest { failure: vec![outside.clone()], ..TxnRequest::default() };
    for txn in [
        TxnRequest { compare: vec![peeking], ..TxnRequest::default() },
        TxnRequest { failure: vec![outside], ..TxnRequest::default() },
        TxnRequest {
            success: vec![RequestOp { request: Some(Operation::RequestTxn(inner)) }],
            ..TxnRequest::default()
        },
    ] {
        let refused = KvClient::new(channel.clone()).txn(with_token(token, txn)).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
    }
    let grant = LeaseGrantRequest { ttl: 60, id: 0 };
    let refused = LeaseClient::new(channel.clone()).lease_grant(grant).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    LeaseClient::new(channel.clone()).lease_grant(with_token(token, grant)).await.unwrap();

    let mut watcher = watch(&channel, token, "/p/web/").await;
    for other in ["/p/", "/p/api/", "/p/web"] {
        assert!(watcher.create(watch_under(other, 0)).await.canceled, "{other}");
    }
    served.etcd.publish(&desired("/p/web", &[("routes/a", "2")])).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/a=2"]);
    assert!(served.etcd.stats().denied > 10);
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_never_logged() {
    const GUESS: &str = "guessed-and-wrong";
    let served = served(EmbeddedEtcd::builder().access(Access::of(clients(PASSWORD)))).await;
    let channel = served.channel().await;
    for (name, password) in [("web", GUESS), (GUESS, GUESS), ("web", ""), ("", "")] {
        let refused = log_in(&channel, name, password).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert_eq!(refused.message(), "etcdserver: authentication failed, invalid user ID or password");
    }
    let token = log_in(&channel, "web", PASSWORD).await.unwrap();
    list(&channel, Some(&token), "/p/web/").await.unwrap();
    let text = format!("{:?} {:?}", served.etcd, log::all());
    for secret in [GUESS, PASSWORD, token.as_str()] {
        assert!(!text.contains(secret));
    }
    assert!(text.contains("wrong password"));
}

#[tokio::test]
async fn an_unknown_key_is_logged_by_its_beginning_alone() {
    let served = served(EmbeddedEtcd::builder()).await;
    let long = format!("/somewhere-else/{}the-end/", "x".repeat(3_000));
    assert_eq!(list(&served.channel().await, None, &long).await, Err(Code::Unavailable));
    let warnings = log::warnings("/somewhere-else/xxx");
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].len() < 1_000, "{} bytes", warnings[0].len());
}

/// A clock that tests set.
#[derive(Debug)]
struct FakeClock(Mutex<SystemTime>);

impl Clock for FakeClock {
    fn now(&self) -> SystemTime {
        *self.0.lock()
    }
}

#[tokio::test]
async fn a_token_is_good_on_every_server_and_expires_for_new_connections() {
    let clock = Arc::new(FakeClock(Mutex::new(SystemTime::now())));
    let access = Access::of(clients(PASSWORD)).token_lifetime(Duration::from_mins(1));
    let builder =
        || EmbeddedEtcd::builder().access(access.clone()).clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let (one, two) = (served(builder()).await, served(builder()).await);
    let channel = one.channel().await;
    let token = log_in(&channel, "web", PASSWORD).await.unwrap();
    for channel in [&channel, &one.channel().await, &two.channel().await] {
        list(channel, Some(&token), "/p/web/").await.unwrap();
    }
    *clock.0.lock() += Duration::from_mins(1);
    list(&channel, Some(&token), "/p/web/").await.unwrap();
    let mut watcher = watch(&channel, Some(&token), "/p/web/").await;
    watcher.settle().await;
    for served in [&one, &two] {
        let refused = list(&served.channel().await, Some(&token), "/p/web/").await;
        assert_eq!(refused, Err(Code::Unauthenticated));
    }
}

#[tokio::test]
async fn replaced_clients_count_at_once_also_for_watches_that_are_open() {
    let served = served(EmbeddedEtcd::builder().access(Access::of(clients(PASSWORD)))).await;
    let channel = served.channel().await;
    let token = log_in(&channel, "web", PASSWORD).await.unwrap();
    let mut web = watch(&channel, Some(&token), "/p/web/").await;
    let mut port = watch(&channel, Some(&token), "/p/web:80/").await;

    served.etcd.replace_clients(Clients::new().user("web", PASSWORD, [scope("/p/web")]));
    let cancelled = port.next().await;
    assert!(cancelled.canceled && cancelled.cancel_reason.contains("permission denied"), "{cancelled:?}");
    assert_eq!(list(&channel, Some(&token), "/p/web:80/").await, Err(Code::PermissionDenied));
    web.settle().await;

    served.etcd.replace_clients(clients("another"));
    assert!(web.next().await.canceled);
    assert_eq!(list(&channel, Some(&token), "/p/web/").await, Err(Code::Unauthenticated));
    assert_eq!(served.etcd.stats().watches, 0);
    log_in(&channel, "web", "another").await.unwrap();
}

/// A client with an endless stream of requests is checked no later than others.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_that_floods_its_stream_loses_its_watches_all_the_same() {
    const WATCHES: i64 = 500;
    let served = served(EmbeddedEtcd::builder().access(Access::of(clients(PASSWORD)))).await;
    let channel = served.channel().await;
    let token = log_in(&channel, "web", PASSWORD).await.unwrap();
    // The server checks each watch after each request, so it never reaches the end of the requests.
    let creates = (0..WATCHES).map(|_| RequestUnion::CreateRequest(watch_under("/p/web/", 0)));
    let cancel = RequestUnion::CancelRequest(WatchCancelRequest { watch_id: WATCHES + 1 });
    let requests = creates.chain(std::iter::repeat(cancel));
    let requests = stream::iter(requests.map(|request| WatchRequest { request_union: Some(request) }));
    let mut client = WatchClient::new(channel);
    let mut responses = client.watch(with_token(Some(&token), requests)).await.unwrap().into_inner();
    for _ in 0..WATCHES {
        assert!(responses.message().await.unwrap().unwrap().created);
    }
    tokio::time::sleep(Duration::from_millis(200)).await;

    served.etcd.replace_clients(Clients::new());
    let cancelled =
        tokio::time::timeout(WAIT_TIMEOUT, responses.message()).await.expect("it is checked in time");
    assert!(cancelled.unwrap().unwrap().canceled);
}

/// A client that reads late receives no response that it may no longer read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_responses_of_a_slow_client_are_dropped_with_its_access() {
    let latest = || EmbeddedEtcd::builder().pace(Pace::NONE);
    for builder in [latest(), latest().send_each_change()] {
        let served = served(builder.access(Access::of(clients(PASSWORD)))).await;
        let token = log_in(&served.channel().await, "web", PASSWORD).await.unwrap();
        let endpoint = Channel::from_shared(format!("http://{}", served.address)).unwrap();
        let narrow = endpoint.initial_stream_window_size(65_535).connect().await.unwrap();
        let mut slow = watch(&narrow, Some(&token), "/p/web/").await;
        let publish = async |value: &str| {
            served.etcd.publish(&desired("/p/web", &[("routes/a", value)])).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        publish(&"x".repeat(500_000)).await;
        publish("waits").await;
        served.etcd.replace_clients(Clients::new());
        publish("not for everybody").await;

        assert_eq!(slow.next().await.events.len(), 1, "what was sent before");
        let next = slow.next().await;
        assert!(next.canceled && next.events.is_empty(), "{next:?}");
    }
}

#[tokio::test]
async fn a_server_that_served_anybody_can_be_closed() {
    let served = served(EmbeddedEtcd::builder()).await;
    let channel = served.channel().await;
    assert_eq!(log_in(&channel, "web", PASSWORD).await.unwrap_err().code(), Code::FailedPrecondition);
    let mut watcher = watch(&channel, None, "/p/").await;
    served.etcd.replace_clients(clients(PASSWORD));
    assert!(watcher.next().await.canceled);
    assert_eq!(list(&channel, None, "/p/web/").await, Err(Code::InvalidArgument));
    let token = log_in(&channel, "web", PASSWORD).await.unwrap();
    list(&served.channel().await, Some(&token), "/p/web/").await.unwrap();
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

    std::fs::write(&path, format!("web password {PASSWORD} /p/web\n")).unwrap();
    let access = Access::from_file(&path).reread_interval(Duration::from_millis(5));
    let served = served(EmbeddedEtcd::builder().access(access)).await;
    let channel = served.channel().await;
    let token = log_in(&channel, "web", PASSWORD).await.unwrap();
    list(&channel, Some(&token), "/p/web/").await.unwrap();

    replace(&path, "web password replaced-but-without-prefix\n");
    let name = path.display().to_string();
    let warned = async {
        while log::warnings(&name).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, warned).await.unwrap();
    let warning = log::warnings(&name).remove(0);
    assert!(warning.contains("line 1") && !warning.contains("replaced-but"), "{warning}");
    list(&channel, Some(&token), "/p/web/").await.unwrap();

    replace(&path, "web password second /p/api\n");
    let replaced = async {
        while list(&channel, Some(&token), "/p/web/").await != Err(Code::Unauthenticated) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, replaced).await.unwrap();
    let token = log_in(&channel, "web", "second").await.unwrap();
    list(&channel, Some(&token), "/p/api/").await.unwrap();
}

/// A file that is written while it is read: no client loses access because of the missing part.
#[tokio::test]
async fn a_file_that_is_half_written_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("half-written-clients");
    let whole = format!("web password {PASSWORD} /p/web /p/api\nother password {PASSWORD} /p/other\n");
    std::fs::write(&path, &whole).unwrap();
    let access = Access::from_file(&path).reread_interval(Duration::from_millis(5));
    let served = served(EmbeddedEtcd::builder().access(access)).await;
    let channel = served.channel().await;
    let token = log_in(&channel, "web", PASSWORD).await.unwrap();
    let mut watcher = watch(&channel, Some(&token), "/p/api/").await;

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
        replace(&path, &whole);
        tokio::time::sleep(Duration::from_millis(50)).await;
        watcher.settle().await;
        log_in(&channel, "other", PASSWORD).await.unwrap();
    }
}

#[tokio::test]
async fn a_certificate_proves_its_one_common_name() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let issue = |serial: u64, names: &[&str]| -> Pair {
        clients.issue_with(serial, |params| {
            params.distinguished_name = rcgen::DistinguishedName::new();
            for name in names {
                params.distinguished_name.push(DnType::CommonName, *name);
            }
        })
    };
    let known =
        Clients::new().certificate("edge", [scope("/p/web")]).user("web", PASSWORD, [scope("/p/api")]);
    let tls = servers.issue(1).server().client_ca_pem(clients.pem());
    let served = served(EmbeddedEtcd::builder().tls(tls).access(Access::of(known))).await;
    let connect = async |pair: &Pair| {
        authority::channel(served.address, authority::client(&servers, Some(pair))).await.unwrap()
    };

    let edge = connect(&issue(2, &["edge"])).await;
    assert!(list(&edge, None, "/p/web/").await.is_ok());
    assert_eq!(list(&edge, None, "/p/api/").await, Err(Code::PermissionDenied));
    let mut watcher = watch(&edge, None, "/p/web/").await;
    watcher.settle().await;
    // A token takes precedence over the certificate.
    let token = log_in(&edge, "web", PASSWORD).await.unwrap();
    assert!(list(&edge, Some(&token), "/p/api/").await.is_ok());
    assert_eq!(list(&edge, Some(&token), "/p/web/").await, Err(Code::PermissionDenied));

    for (serial, names, expected) in [
        (3, &["web"][..], Code::PermissionDenied),
        (4, &["other"], Code::PermissionDenied),
        (5, &[], Code::InvalidArgument),
    ] {
        let channel = connect(&issue(serial, names)).await;
        assert_eq!(list(&channel, None, "/p/web/").await, Err(expected), "{names:?}");
        assert_eq!(list(&channel, None, "/p/api/").await, Err(expected), "{names:?}");
    }
}
