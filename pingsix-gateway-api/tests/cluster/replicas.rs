//! Several replicas that serve at once, and clients that move between them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use pingsix_gateway_api::controller::ControllerOptions;
use pingsix_gateway_api::leader::lease_name;
use pingsix_gateway_api::replicas::{Replicas, replicas_name, revisions_name};
use pingsix_sink::EmbeddedEtcd;
use pingsix_test_cluster::Process;
use pingsix_translate::{DEFAULT_CONTROLLER_NAME, DataPlaneKey, Kind, ObjectName};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use crate::leaders::{Proxy, options};
use crate::quarantine::PoisonedFeed;
use crate::test_env::pingsix::{self, Ports};
use crate::test_env::readers::{FeedObservers, Served, list};
use crate::test_env::shop::{self, GATEWAY, PLANE, ROUTE, SERVICE, redirect};
use crate::test_env::{Running, TestEnv};

/// A replica in this process, with the feed that it serves.
struct Replica {
    etcd: EmbeddedEtcd,
    served: Served,
    running: Running,
}

impl Replica {
    async fn start(client: Client, name: &str) -> Self {
        Self::with_responder(client, name, None).await
    }

    async fn with_responder(client: Client, name: &str, responder: Option<SocketAddr>) -> Self {
        let mut options = options(name);
        options.translation.responder = responder;
        Self::with(client, options, Running::replica).await
    }

    /// A replica whose feed is made from the server.
    async fn with(
        client: Client,
        options: ControllerOptions,
        run: impl FnOnce(Client, &EmbeddedEtcd, Replicas, ControllerOptions) -> Running,
    ) -> Self {
        let replicas = Replicas::new(client.clone(), options.lease.as_ref().unwrap());
        let etcd = EmbeddedEtcd::builder().reservations(replicas.reservations()).start().await.unwrap();
        let served = Served::start(&etcd, None).await;
        let mut running = run(client, &etcd, replicas, options);
        running.wait_until_ready().await;
        Self { etcd, served, running }
    }

    fn address(&self) -> SocketAddr {
        self.served.address
    }

    async fn stop(self) {
        self.running.stop().await;
        self.served.stop().await;
    }

    async fn kill(self) {
        self.running.kill().await;
        self.served.stop().await;
    }
}

/// A way to one of several servers. When it turns to another, its connections break.
struct LoadBalancer {
    address: SocketAddr,
    target: watch::Sender<SocketAddr>,
    task: JoinHandle<()>,
}

impl LoadBalancer {
    async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = watch::Sender::new(target);
        let mut turns = target.subscribe();
        let task = tokio::spawn(async move {
            let mut open = JoinSet::new();
            loop {
                tokio::select! {
                    turned = turns.changed() => {
                        open.abort_all();
                        if turned.is_err() {
                            return;
                        }
                    }
                    Ok((mut client, _)) = listener.accept() => {
                        let target = *turns.borrow();
                        open.spawn(async move {
                            if let Ok(mut server) = TcpStream::connect(target).await {
                                let _ = copy_bidirectional(&mut client, &mut server).await;
                            }
                        });
                    }
                }
            }
        });
        Self { address, target, task }
    }

    fn switch_to(&self, target: SocketAddr) {
        self.target.send_replace(target);
    }
}

impl Drop for LoadBalancer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A PingSIX that reads through a switch.
struct Reader {
    ports: Ports,
    process: Process,
}

impl Reader {
    async fn start(test_env: &TestEnv, binary: OsString, feed: SocketAddr) -> Self {
        let ports = Ports::new(&test_env.cluster, feed);
        let process = ports.run(&test_env.cluster, binary).await;
        Self { ports, process }
    }

    fn log(&self) -> impl AsRef<Path> {
        self.process.log()
    }

    async fn leads_to(&self, host: &str) {
        let leads = |head: &str| head.contains(&format!("location: http://{host}/shoes"));
        pingsix::until(self.ports.traffic, "cart.example", "/shoes", self.log().as_ref(), leads).await;
    }

    /// The last publication of the replica before its readiness.
    async fn published(&self) -> Option<i64> {
        let page = pingsix::page(self.ports.status, "/status/config").await?;
        page["ready"].as_bool()?.then(|| page["published_revision"].as_i64())?
    }

    /// Waits until it has connected again and published a later revision than this, and is ready.
    async fn publishes_above(&self, revision: i64) -> i64 {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            match self.published().await {
                Some(published) if published > revision => return published,
                published => assert!(
                    Instant::now() < deadline,
                    "{published:?} is not above {revision}\n{}",
                    fs::read_to_string(self.log()).unwrap_or_default()
                ),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_pingsix_that_moves_takes_every_change() {
    const MOVES: usize = 20;
    let Some(binary) = pingsix::binary("a_real_pingsix_that_moves_takes_every_change") else { return };
    let Some(test_env) = TestEnv::start().await else { return };
    test_env.apply(GATEWAY).await;
    test_env.apply(&redirect("start.example")).await;
    let (responder, _responds) = pingsix::responder().await;
    let start = |name: &'static str| Replica::with_responder(test_env.cluster.admin(), name, Some(responder));
    let replicas = [start("one").await, start("two").await];
    let switch = LoadBalancer::to(replicas[0].address()).await;
    let reader = Reader::start(&test_env, binary, switch.address).await;
    reader.leads_to("start.example").await;
    let mut published = reader.publishes_above(0).await;
    for turn in 1..=MOVES {
        switch.switch_to(replicas[turn % 2].address());
        // While it moves, or when it has moved, or when it has moved and the API server was away.
        match turn % 3 {
            0 => {}
            1 => published = reader.publishes_above(published).await,
            _ => {
                test_env.cluster.api_server().pause().await.unwrap();
                published = reader.publishes_above(published).await;
                if turn % 2 == 0 {
                    switch.switch_to(replicas[(turn + 1) % 2].address());
                    published = reader.publishes_above(published).await;
                }
                test_env.cluster.api_server().resume().await.unwrap();
            }
        }
        let host = format!("turn-{turn}.example");
        test_env.apply(&redirect(&host)).await;
        reader.leads_to(&host).await;
        published = reader.publishes_above(published.saturating_sub(1)).await;
    }
    let stats = replicas.each_ref().map(|replica| replica.etcd.stats());
    assert!(stats.iter().all(|stats| stats.reservations > 0), "{stats:?}");
    assert!(stats.iter().any(|stats| stats.revisions_unreserved > 0), "it listed in no outage: {stats:?}");
    let [one, two] = replicas;
    reader.process.kill().await.unwrap();
    one.stop().await;
    two.stop().await;
}

/// The annotations of a Lease that replicas share.
async fn annotations(test_env: &TestEnv, name: impl Fn(&str) -> String) -> BTreeMap<String, String> {
    let leases: Api<Lease> = Api::namespaced(test_env.cluster.admin(), "default");
    let lease = leases.get_opt(&name(&lease_name(DEFAULT_CONTROLLER_NAME))).await.unwrap();
    lease.and_then(|lease| lease.metadata.annotations).unwrap_or_default()
}

/// A client that moves as PingSIX does: every list has to be above the one before.
#[derive(Default)]
struct FeedClient(i64);

impl FeedClient {
    /// Lists, and returns how long that took.
    async fn list(&mut self, replica: &Replica, host: &str) -> Duration {
        let started = Instant::now();
        let listed = timeout(Duration::from_secs(5), list(replica.address(), PLANE)).await.unwrap().unwrap();
        let revision = listed.header.unwrap().revision;
        assert!(revision > self.0, "{revision} after {}", self.0);
        self.0 = revision;
        let has_it = listed.kvs.iter().any(|kv| String::from_utf8_lossy(&kv.value).contains(host));
        assert!(has_it, "{host} is not listed");
        started.elapsed()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revisions_go_on_whatever_happens_to_replicas_and_the_api_server() {
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let proxy = Proxy::to(&test_env.cluster).await;
    let mut one = Replica::start(proxy.client(&test_env.cluster).await, "one").await;
    let mut two = Replica::start(test_env.cluster.admin(), "two").await;
    let mut client = FeedClient::default();
    let host = "cart.example";
    for _ in 0..5 {
        assert!(client.list(&one, host).await < Duration::from_secs(1));
        client.list(&two, host).await;
    }

    // One replica is cut off, then all are, then none.
    proxy.is_closed.send_replace(true);
    for _ in 0..2 {
        client.list(&one, host).await;
        client.list(&two, host).await;
    }
    assert!(one.etcd.stats().store_away && !two.etcd.stats().store_away);
    test_env.cluster.api_server().pause().await.unwrap();
    for _ in 0..3 {
        let took = client.list(&two, host).await;
        assert!(took < Duration::from_secs(3), "{took:?}");
        client.list(&one, host).await;
    }
    assert!(two.etcd.stats().store_away);
    test_env.cluster.api_server().resume().await.unwrap();
    proxy.is_closed.send_replace(false);
    for _ in 0..5 {
        client.list(&two, host).await;
        client.list(&one, host).await;
    }
    assert!(!one.etcd.stats().store_away && !two.etcd.stats().store_away);

    // The leader is killed, and both at once.
    one.kill().await;
    client.list(&two, host).await;
    one = Replica::start(test_env.cluster.admin(), "three").await;
    client.list(&one, host).await;
    tokio::join!(one.kill(), two.kill());
    (one, two) = tokio::join!(
        Replica::start(test_env.cluster.admin(), "four"),
        Replica::start(test_env.cluster.admin(), "five")
    );
    client.list(&two, host).await;
    client.list(&one, host).await;

    // A Lease that is removed takes nothing back.
    let leases: Api<Lease> = Api::namespaced(test_env.cluster.admin(), "default");
    let name = revisions_name(&lease_name(DEFAULT_CONTROLLER_NAME));
    leases.delete(&name, &kube::api::DeleteParams::default()).await.unwrap();
    client.list(&two, host).await;
    client.list(&one, host).await;
    let reserved = annotations(&test_env, revisions_name).await;
    assert!(reserved.values().any(|reserved| reserved.parse::<i64>().unwrap() >= client.0), "{reserved:?}");
    one.stop().await;
    two.stop().await;
}

/// Clients of which one watches a data plane until they are dropped.
fn watcher(address: SocketAddr) -> FeedObservers {
    FeedObservers::start(address, PLANE, "10.1.2.3:8080")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_all_replicas_count() {
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let one = Replica::start(test_env.cluster.admin(), "one").await;
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=False/Pending").await;
    let two = Replica::start(test_env.cluster.admin(), "two").await;
    // A while, in which both know each other.
    sleep(Duration::from_secs(3)).await;

    let started = Instant::now();
    // The connection of a client that is dropped stays for as long as its requests have no end; this breaks it.
    let way = LoadBalancer::to(two.address()).await;
    let reader = watcher(way.address);
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    drop((reader, way));
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=False/Pending").await;

    // Without a change, replicas write renewals only.
    let _reader = watcher(one.address());
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    assert_eq!(annotations(&test_env, replicas_name).await.len(), 2);
    two.stop().await;
    assert_eq!(annotations(&test_env, replicas_name).await.len(), 1, "it has taken its record away");
    test_env.apply(&shop::route("late")).await;
    test_env
        .wait_for_condition(Kind::HttpRoute, "default", "late", "/parents/0", "Accepted=True/Accepted")
        .await;
    one.stop().await;
    assert!(annotations(&test_env, replicas_name).await.is_empty());
}

/// A route that PingSIX refuses when it comes out of a poisoned feed.
const POISON: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: poison, namespace: default}
spec:
  parentRefs: [{name: web}]
  hostnames: [plugin.poison.example]
  rules: [{filters: [{type: RequestRedirect, requestRedirect: {hostname: elsewhere.example, statusCode: 302}}]}]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_refused_at_a_follower_are_reported_and_served_by_no_replica() {
    const TEST: &str = "documents_refused_at_a_follower_are_reported_and_served_by_no_replica";
    let Some(binary) = pingsix::binary(TEST) else { return };
    let Some(test_env) = TestEnv::start().await else { return };
    test_env.apply(GATEWAY).await;
    test_env.apply(&redirect("start.example")).await;
    let (responder, _responds) = pingsix::responder().await;
    // With several replicas, the reader's replica is known, and must know its status page.
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let switch = LoadBalancer::to(nowhere).await;
    let ports = Ports::new(&test_env.cluster, switch.address);
    let start = async |name: &str| {
        let mut options = options(name);
        options.translation.responder = Some(responder);
        let plane = DataPlaneKey::Gateway { gateway: ObjectName::new("default", "web"), port: None };
        let page = format!("http://127.0.0.1:{}/status/config", ports.status).parse().unwrap();
        options.status_pages.insert(plane, [page].into());
        let run = |client, etcd: &EmbeddedEtcd, replicas, options| {
            Running::replica_with_feed(
                Arc::new(PoisonedFeed { etcd: etcd.clone() }),
                client,
                replicas,
                options,
            )
        };
        Replica::with(test_env.cluster.admin(), options, run).await
    };
    let one = start("one").await;
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=False/Pending").await;
    let two = start("two").await;
    switch.switch_to(two.address());
    let process = ports.run(&test_env.cluster, binary).await;
    let reader = Reader { ports, process };
    reader.leads_to("start.example").await;
    // The follower's report tells the leader that this was accepted.
    let confirmed = "Every known PingSIX instance has published the configuration.";
    let is_confirmed = async |what: &str| {
        test_env
            .until(Kind::Gateway, "default", "web", what, |object| {
                object["status"]["conditions"].to_string().contains(confirmed)
            })
            .await;
    };
    is_confirmed("what its instance confirms to the follower").await;

    test_env.apply(POISON).await;
    test_env
        .wait_for_condition(Kind::HttpRoute, "default", "poison", "/parents/0", "Accepted=False/Quarantined")
        .await;
    let is_error = |head: &str| head.starts_with("http/1.1 500");
    let (traffic, log) = (reader.ports.traffic, reader.log().as_ref().to_path_buf());
    pingsix::until(traffic, "plugin.poison.example", "/", &log, is_error).await;
    test_env.apply(&redirect("later.example")).await;
    reader.leads_to("later.example").await;
    is_confirmed("the same, with a rule in quarantine").await;

    // At the leader it meets nothing that it would refuse, nor anything else.
    switch.switch_to(one.address());
    test_env.apply(&redirect("moved.example")).await;
    reader.leads_to("moved.example").await;
    pingsix::until(traffic, "plugin.poison.example", "/", &log, is_error).await;
    test_env
        .wait_for_condition(Kind::HttpRoute, "default", "poison", "/parents/0", "Accepted=False/Quarantined")
        .await;
    // The one that has found it ends, and its author mends it.
    two.stop().await;
    test_env
        .wait_for_condition(Kind::HttpRoute, "default", "poison", "/parents/0", "Accepted=False/Quarantined")
        .await;
    test_env.apply(&POISON.replace("plugin.poison.example", "mended.example")).await;
    let is_served = |head: &str| head.contains("location: http://elsewhere.example/");
    pingsix::until(traffic, "mended.example", "/", &log, is_served).await;
    test_env
        .wait_for_condition(Kind::HttpRoute, "default", "poison", "/parents/0", "Accepted=True/Accepted")
        .await;
    is_confirmed("what its instance confirms to the leader").await;
    reader.process.kill().await.unwrap();
    one.stop().await;
}
