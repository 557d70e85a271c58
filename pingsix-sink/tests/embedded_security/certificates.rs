//! Clients with certificate URIs, and the end of their connections.

use crate::authority;
use crate::log;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::authority::{Authority, Pair, Prober};
use crate::wire::{Served, WAIT_TIMEOUT, Watcher, events, pairs, under, watch_under};
use parking_lot::Mutex;
use pingsix_sink::contract::documents::{desired, scope};
use pingsix_sink::embedded::revisions::Clock;
use pingsix_sink::embedded::{Access, Clients, EmbeddedError, ServerTls, Stats, feed_uri, feed_uri_of_owner};
use pingsix_sink::{Desired, EmbeddedEtcd, Sink};
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use rcgen::{DistinguishedName, DnType, ExtendedKeyUsagePurpose, SanType};
use tonic::Code;
use tonic::transport::Channel;

/// A client certificate with these URIs, without a common name.
fn issue(authority: &Authority, uris: &[&str]) -> Pair {
    issue_until(authority, uris, (2_090, 1, 1))
}

fn issue_until(authority: &Authority, uris: &[&str], (year, month, day): (i32, u8, u8)) -> Pair {
    authority.issue_with(7, |params| {
        params.distinguished_name = DistinguishedName::new();
        params.subject_alt_names = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
        params.not_after = rcgen::date_time_ymd(year, month, day);
    })
}

fn by_certificates() -> Access {
    Access::of(Clients::new()).certificate_uris()
}

/// A clock that tests set.
struct ManualClock(Mutex<SystemTime>);

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        *self.0.lock()
    }
}

struct TestServer {
    served: Served,
    servers: Authority,
    clock: Arc<ManualClock>,
}

impl TestServer {
    async fn start(clients: &Authority, access: Access) -> Self {
        log::keep();
        let servers = Authority::new("servers");
        let tls = server(&servers, &[clients]);
        let clock = Arc::new(ManualClock(Mutex::new(SystemTime::now())));
        let builder = EmbeddedEtcd::builder().tls(tls).access(access).clock(clock.clone());
        let served = Served::start(builder).await;
        for prefix in ["/p/web", "/p/web:80", "/p/webinar", "/p/api"] {
            served.etcd.publish(&desired(prefix, &[("routes/a", "1")])).await.unwrap();
        }
        served.etcd.open();
        Self { served, servers, clock }
    }

    async fn try_connect(&self, pair: &Pair) -> Option<Channel> {
        let tls = authority::client(&self.servers, Some(pair));
        authority::channel(self.served.address, tls).await.ok()
    }

    async fn connect(&self, pair: &Pair) -> Channel {
        self.try_connect(pair).await.unwrap()
    }

    async fn watch(&self, pair: &Pair, prefix: &str) -> Option<Watcher> {
        let mut watcher = Watcher::open(self.try_connect(pair).await?).await.ok()?;
        (!watcher.create(watch_under(prefix, 0)).await.canceled).then_some(watcher)
    }

    async fn until(&self, condition_name: &str, condition: impl Fn(&Stats) -> bool) {
        let started = Instant::now();
        while !condition(&self.served.etcd.stats()) {
            assert!(started.elapsed() < WAIT_TIMEOUT, "{condition_name}: {:?}", self.served.etcd.stats());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn publish(&self, value: &str) {
        self.served.etcd.publish(&desired("/p/web", &[("routes/a", value)])).await.unwrap();
    }
}

/// TLS options of a server with these client CAs.
fn server(servers: &Authority, clients: &[&Authority]) -> ServerTls {
    let bundle: String = clients.iter().map(|authority| authority.pem()).collect();
    servers.issue(1).server().client_ca_pem(bundle).reread_interval(Duration::from_millis(5))
}

async fn list(channel: &Channel, prefix: &str) -> Result<Vec<String>, Code> {
    let answer = KvClient::new(channel.clone()).range(under(prefix)).await;
    answer.map(|answer| pairs(answer.get_ref())).map_err(|status| status.code())
}

/// Waits until the stream breaks, and not only its watch.
async fn wait_for_end_of_stream(watcher: &mut Watcher) {
    let ended = watcher.try_next().await;
    assert!(matches!(&ended, Err(status) if status.code() != Code::Unauthenticated), "{ended:?}");
}

#[tokio::test]
async fn a_certificate_opens_the_prefixes_that_its_uris_name_and_no_others() {
    let clients = Authority::new("clients");
    let server_under_test = TestServer::start(&clients, by_certificates()).await;
    let uris = [feed_uri(&scope("/p/web")), feed_uri(&scope("/p/api")), "spiffe://elsewhere/web".to_owned()];
    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
    let channel = server_under_test.connect(&issue(&clients, &uris)).await;
    for own in ["/p/web/", "/p/api/", "/p/web/routes/"] {
        let key = if own.ends_with("routes/") { "a" } else { "routes/a" };
        assert_eq!(list(&channel, own).await, Ok(vec![format!("{own}{key}=1")]));
    }
    for other in ["/p/web:80/", "/p/webinar/", "/p/", "/p/web", "/", "/p/we"] {
        assert_eq!(list(&channel, other).await, Err(Code::PermissionDenied), "{other}");
    }
    let mut watcher = Watcher::open(channel.clone()).await.unwrap();
    assert!(watcher.create(watch_under("/p/", 0)).await.canceled);
    assert!(!watcher.create(watch_under("/p/web/", 0)).await.canceled);
    server_under_test.publish("2").await;
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/a=2"]);
}

impl TestServer {
    /// Publishes a prefix for an owner.
    async fn publish_for(&self, owner: Option<&str>, value: &str) {
        let web = desired("/p/web", &[("routes/a", value)]).owned_by(owner.map(Into::into));
        self.served.etcd.publish(&web).await.unwrap();
    }
}

#[tokio::test]
async fn the_certificate_of_a_deleted_owner_reads_nothing_of_its_namesake() {
    let clients = Authority::new("clients");
    let server_under_test = TestServer::start(&clients, by_certificates()).await;
    let of = |owner: &str| issue(&clients, &[&feed_uri_of_owner(&scope("/p/web"), owner)]);
    let (first, second) = (of("uid-1"), of("uid-2"));
    server_under_test.publish_for(Some("uid-1"), "first").await;
    let channel = server_under_test.connect(&first).await;
    assert_eq!(list(&channel, "/p/web/").await, Ok(vec!["/p/web/routes/a=first".to_owned()]));
    let mut watcher = server_under_test.watch(&first, "/p/web/").await.unwrap();
    assert_eq!(list(&server_under_test.connect(&second).await, "/p/web/").await, Err(Code::PermissionDenied));

    // A deletion withdraws the documents, and data planes are notified.
    server_under_test.served.etcd.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["DELETE /p/web/routes/a"]);
    assert_eq!(list(&channel, "/p/web/").await, Ok(Vec::new()));

    server_under_test.publish_for(Some("uid-2"), "second").await;
    wait_for_end_of_stream(&mut watcher).await;
    for channel in [channel, server_under_test.connect(&first).await] {
        // The open connection may not have noticed its closure yet.
        let refused = list(&channel, "/p/web/").await.unwrap_err();
        assert!(matches!(refused, Code::PermissionDenied | Code::Unavailable | Code::Unknown), "{refused:?}");
    }
    assert_eq!(list(&server_under_test.connect(&first).await, "/p/web/").await, Err(Code::PermissionDenied));
    assert!(server_under_test.watch(&first, "/p/web/").await.is_none());
    let read = list(&server_under_test.connect(&second).await, "/p/web/").await;
    assert_eq!(read, Ok(vec!["/p/web/routes/a=second".to_owned()]));

    // A certificate without an owner grants nothing either.
    let without_owner = issue(&clients, &[&feed_uri(&scope("/p/web"))]);
    assert_eq!(
        list(&server_under_test.connect(&without_owner).await, "/p/web/").await,
        Err(Code::PermissionDenied)
    );
    let mut watcher = server_under_test.watch(&second, "/p/web/").await.unwrap();
    server_under_test.publish_for(None, "third").await;
    wait_for_end_of_stream(&mut watcher).await;
    assert_eq!(list(&server_under_test.connect(&second).await, "/p/web/").await, Err(Code::PermissionDenied));
    assert!(list(&server_under_test.connect(&without_owner).await, "/p/web/").await.is_ok());
}

/// Fast changes of owners with many concurrent readers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_reads_a_document_of_another_owner_during_a_transfer() {
    const OWNERS: [&str; 2] = ["uid-1", "uid-2"];
    let clients = Authority::new("clients");
    let server_under_test = Arc::new(TestServer::start(&clients, by_certificates()).await);
    server_under_test.publish_for(Some(OWNERS[0]), OWNERS[0]).await;
    let reading = OWNERS.map(|owner| {
        let (server_under_test, pair) =
            (Arc::clone(&server_under_test), issue(&clients, &[&feed_uri_of_owner(&scope("/p/web"), owner)]));
        tokio::spawn(async move {
            let mut read = 0;
            while read < 100 {
                let Some(channel) = server_under_test.try_connect(&pair).await else { continue };
                let create = Some(watch_under("/p/web/", 0));
                let Ok(mut watcher) = Watcher::open_with(channel.clone(), create).await else { continue };
                let Ok(Some(_)) = watcher.try_next().await else { continue };
                for _ in 0..3 {
                    if let Ok(pairs) = list(&channel, "/p/web/").await {
                        assert!(pairs.iter().all(|pair| pair.ends_with(owner)), "{owner} reads {pairs:?}");
                        read += 1;
                    }
                }
                if let Ok(Ok(Some(told))) =
                    tokio::time::timeout(Duration::from_millis(5), watcher.try_next()).await
                {
                    let told = events(&told);
                    assert!(told.iter().all(|event| event.ends_with(owner)), "{owner} is told {told:?}");
                }
            }
        })
    });
    for turn in 0_usize.. {
        if reading.iter().all(tokio::task::JoinHandle::is_finished) {
            break;
        }
        let owner = OWNERS[turn / 3 % 2];
        server_under_test.publish_for(Some(owner), &format!("{turn} of {owner}")).await;
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
    for reader in reading {
        reader.await.unwrap();
    }
}

#[tokio::test]
async fn a_malformed_uri_grants_nothing_and_is_logged() {
    let clients = Authority::new("clients");
    let server_under_test = TestServer::start(&clients, by_certificates()).await;
    let malformed = [
        "pingsix-feed:///p/web/",
        "pingsix-feed://p/web",
        "pingsix-feed:///p/x/../web",
        "pingsix-feed:///p%2Fweb",
        "pingsix-feed:///",
        "pingsix-feed:///p/web?canary",
        "PINGSIX-FEED:///p/web",
    ];
    for uri in malformed {
        let channel = server_under_test.connect(&issue(&clients, &[uri])).await;
        assert_eq!(list(&channel, "/p/web/").await, Err(Code::InvalidArgument), "{uri}");
        let output = log::warnings(&format!("{uri:?}"));
        assert!(output.len() == 1 && output[0].contains("grants no prefix"), "{uri}: {output:?}");
    }
    // A well-formed URI beside it counts.
    let channel = server_under_test.connect(&issue(&clients, &[malformed[0], "pingsix-feed:///p/api"])).await;
    assert!(list(&channel, "/p/api/").await.is_ok());
    assert_eq!(list(&channel, "/p/web/").await, Err(Code::PermissionDenied));
}

#[tokio::test]
async fn only_a_client_certificate_of_the_configured_authority_counts() {
    let clients = Authority::new("clients");
    let server_under_test = TestServer::start(&clients, by_certificates()).await;
    let uri = feed_uri(&scope("/p/web"));
    let of_another = issue(&Authority::new("clients"), &[&uri]);
    assert!(server_under_test.watch(&of_another, "/p/web/").await.is_none());
    let of_a_server = clients.issue_with(8, |params| {
        params.subject_alt_names = vec![SanType::URI(uri.as_str().try_into().unwrap())];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    assert!(server_under_test.watch(&of_a_server, "/p/web/").await.is_none());
    assert!(server_under_test.watch(&issue(&clients, &[&uri]), "/p/web/").await.is_some());
}

#[tokio::test]
async fn uris_count_only_where_they_are_asked_for_and_beside_common_names() {
    let clients = Authority::new("clients");
    let both = clients.issue_with(9, |params| {
        params.distinguished_name.push(DnType::CommonName, "edge");
        params.subject_alt_names = vec![SanType::URI("pingsix-feed:///p/web".try_into().unwrap())];
    });
    let known = Clients::new().certificate("edge", [scope("/p/api")]);

    let server_under_test = TestServer::start(&clients, Access::of(known.clone())).await;
    let channel = server_under_test.connect(&both).await;
    assert!(list(&channel, "/p/api/").await.is_ok());
    assert_eq!(list(&channel, "/p/web/").await, Err(Code::PermissionDenied));
    let channel = server_under_test.connect(&issue(&clients, &["pingsix-feed:///p/web"])).await;
    assert_eq!(list(&channel, "/p/web/").await, Err(Code::InvalidArgument));

    let server_under_test = TestServer::start(&clients, Access::of(known).certificate_uris()).await;
    let channel = server_under_test.connect(&both).await;
    for own in ["/p/api/", "/p/web/"] {
        assert!(list(&channel, own).await.is_ok(), "{own}");
    }
    assert_eq!(list(&channel, "/p/webinar/").await, Err(Code::PermissionDenied));
}

#[tokio::test]
async fn a_connection_ends_with_its_certificate_and_a_renewed_one_continues() {
    let clients = Authority::new("clients");
    let server_under_test = TestServer::start(&clients, by_certificates()).await;
    let uri = "pingsix-feed:///p/web";
    let old = issue_until(&clients, &[uri], (2_060, 1, 1));
    let new = issue_until(&clients, &[uri], (2_080, 1, 1));
    let mut watcher = server_under_test.watch(&old, "/p/web/").await.unwrap();
    let mut renewed = server_under_test.watch(&new, "/p/web/").await.unwrap();
    let channel = server_under_test.connect(&old).await;
    list(&channel, "/p/web/").await.unwrap();

    let year = Duration::from_hours(365 * 24);
    *server_under_test.clock.0.lock() = SystemTime::UNIX_EPOCH + 95 * year;
    server_under_test.until("two connections end", |stats| stats.connections_lapsed == 2).await;
    wait_for_end_of_stream(&mut watcher).await;
    assert!(list(&channel, "/p/web/").await.is_err());
    server_under_test.publish("2").await;
    assert_eq!(events(&renewed.next().await), ["PUT /p/web/routes/a=2"]);
    assert!(log::all().contains("connections closed"));
}

#[tokio::test]
async fn a_connection_ends_with_its_authority_and_goes_on_while_there_are_two() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let server_under_test = TestServer::start(&old, by_certificates()).await;
    let uri = "pingsix-feed:///p/web";
    let (of_old, of_new) = (issue(&old, &[uri]), issue(&new, &[uri]));
    let mut first = server_under_test.watch(&of_old, "/p/web/").await.unwrap();
    assert!(server_under_test.watch(&of_new, "/p/web/").await.is_none());

    server_under_test.served.etcd.replace_tls(server(&server_under_test.servers, &[&old, &new])).unwrap();
    let mut second = server_under_test.watch(&of_new, "/p/web/").await.unwrap();
    server_under_test.publish("2").await;
    for watcher in [&mut first, &mut second] {
        assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/a=2"]);
    }

    server_under_test.served.etcd.replace_tls(server(&server_under_test.servers, &[&new])).unwrap();
    wait_for_end_of_stream(&mut first).await;
    assert!(server_under_test.watch(&of_old, "/p/web/").await.is_none());
    server_under_test.publish("3").await;
    assert_eq!(events(&second.next().await), ["PUT /p/web/routes/a=3"]);
    assert_eq!(server_under_test.served.etcd.stats().connections_lapsed, 1);
    // The same certificate again is no rotation.
    let rotations = server_under_test.served.etcd.stats().tls_rotations;
    let again = server(&server_under_test.servers, &[&new]);
    server_under_test.served.etcd.replace_tls(again.clone()).unwrap();
    server_under_test.served.etcd.replace_tls(again).unwrap();
    assert_eq!(server_under_test.served.etcd.stats().tls_rotations, rotations + 1);
    server_under_test.publish("4").await;
    assert_eq!(events(&second.next().await), ["PUT /p/web/routes/a=4"]);
}

#[tokio::test]
async fn a_server_may_start_without_a_certificate_and_keeps_its_last_good_one() {
    log::keep();
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let builder = EmbeddedEtcd::builder().tls(ServerTls::deferred()).access(by_certificates());
    let served = Served::start(builder).await;
    served.etcd.open();
    let client = issue(&clients, &["pingsix-feed:///p/web"]);
    let prober = Prober::new(&servers, Some(&client));
    assert!(prober.connect(served.address).await.is_err());
    assert_eq!(served.etcd.stats().handshakes_failed, 1);

    let own = servers.issue(1);
    served.etcd.replace_tls(own.server().client_ca_pem(clients.pem())).unwrap();
    assert_eq!(prober.server_certificate(served.address).await, own.der());
    let (other, last) = (servers.issue(2), servers.issue(3));
    for nonsense in [
        ServerTls::from_pem(other.certificate.as_str(), own.key.as_str()).client_ca_pem(clients.pem()),
        other.server().client_ca_pem("nonsense"),
        ServerTls::from_pem("", other.key.as_str()),
    ] {
        let error = served.etcd.replace_tls(nonsense).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(EmbeddedError::Tls(_))), "{error}");
        assert_eq!(prober.server_certificate(served.address).await, own.der());
    }
    assert_eq!(served.etcd.stats().tls_rotations_refused, 3);
    // A refused certificate leaves no trace.
    served.etcd.replace_tls(last.server().client_ca_pem(clients.pem())).unwrap();
    assert_eq!(prober.server_certificate(served.address).await, last.der());

    let plaintext = EmbeddedEtcd::builder().start().await.unwrap();
    assert_eq!(plaintext.replace_tls(own.server()).unwrap_err().category(), "no_tls");
    let text = format!("{:?}{}", served.etcd, log::all());
    for pair in [&own, &other, &last, &client] {
        let secret = pair.key.lines().nth(1).unwrap();
        assert!(!text.contains(secret));
    }
}
