//! The program itself, in whose process nothing is left to chance: killed in the middle of its work, and paused while it
//! leads.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use pingsix_gateway_api::leader::lease_name;
use pingsix_test_cluster::Process;
use pingsix_test_programs::{free_address, program};
use pingsix_translate::{DEFAULT_CONTROLLER_NAME, Kind};
use serde_json::Value;
use tokio::time::sleep;

use crate::test_env::readers::{FeedObservers, list};
use crate::test_env::shop::{self, GATEWAY, PLANE, ROUTE, SERVICE};
use crate::test_env::{TestEnv, eventually, eventually_async};

/// A process of the controller.
struct Replica {
    process: Process,
    feed: SocketAddr,
}

impl Replica {
    async fn start(test_env: &TestEnv, name: &'static str) -> Self {
        let cluster = &test_env.cluster;
        let (feed, health) = (free_address(), free_address());
        let kubeconfig = cluster.kubeconfig(cluster.administrator()).unwrap();
        let mut command = vec![OsString::from(program("pingsix-gateway-controller").await)];
        command.extend(
            [
                format!("--feed-address={feed}"),
                format!("--health-address={health}"),
                format!("--kube-config={}", kubeconfig.display()),
                "--debug-address=off".to_owned(),
                "--leader-namespace=default".to_owned(),
                "--leader-duration=4s".to_owned(),
                "--leader-renew-deadline=3s".to_owned(),
                "--leader-retry=500ms".to_owned(),
            ]
            .map(OsString::from),
        );
        Self { process: cluster.run(name, command).await.unwrap(), feed }
    }

    /// Whether its feed has documents with all of these texts.
    async fn serves(&self, texts: &[String]) -> bool {
        let Ok(found) = list(self.feed, PLANE).await else { return false };
        let found: Vec<_> = found.kvs.iter().map(|kv| String::from_utf8_lossy(&kv.value)).collect();
        texts.iter().all(|text| found.iter().any(|document| document.contains(text)))
    }

    async fn wait_for_documents(&self, texts: &[String]) {
        eventually_async(&format!("{texts:?}"), async || self.serves(texts).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_during_a_sync_withdraws_nothing_and_catches_up() {
    const ROUTES: usize = 30;
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let replica = Replica::start(&test_env, "replica").await;
    replica.wait_for_documents(&["cart.example".to_owned()]).await;
    let observers = FeedObservers::start(replica.feed, PLANE, "10.1.2.3:8080");
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    let programmed = test_env.object(Kind::Gateway, "default", "web").await["status"]["conditions"].clone();
    let hosts = |round: u64| (0..ROUTES).map(move |route| format!("r{route}-{round}.example"));
    for round in 0..6 {
        let routes: Vec<String> = (0..ROUTES)
            .zip(hosts(round))
            .map(|(route, host)| {
                shop::route(&format!("r{route}")).replace(&format!("r{route}.example"), &host)
            })
            .collect();
        let routes = routes.join("---");
        let change = test_env.apply(&routes);
        let kill = async {
            // Applying them takes longer than that.
            sleep(Duration::from_millis(40 * round)).await;
            let pid = replica.process.pid().await;
            replica.process.kill().await.unwrap();
            assert!(pid.is_some(), "it had ended before");
        };
        tokio::join!(change, kill);
        replica.process.start().await.unwrap();
        replica.wait_for_documents(&hosts(round).collect::<Vec<_>>()).await;
        let lists = observers.counts().0;
        let have_looked = || observers.counts().0 > lists + 3;
        eventually("what the readers see afterwards", have_looked).await;
        assert_eq!(observers.errors(), Vec::<String>::new(), "round {round}");
    }
    // The number of watch events depends on the number of combined changes.
    let (_, watches, events) = observers.counts();
    assert!(watches > 3 && events > 0, "{watches} watches, {events} changes");
    // One that was killed held the Lease, and the next one gets it.
    for route in 0..ROUTES {
        test_env
            .wait_for_condition(
                Kind::HttpRoute,
                "default",
                &format!("r{route}"),
                "/parents/0",
                "Accepted=True/Accepted",
            )
            .await;
    }
    // Conditions carry the time of their last transition.
    assert_eq!(test_env.object(Kind::Gateway, "default", "web").await["status"]["conditions"], programmed);
    drop(observers);
    replica.process.stop().await.unwrap();
}

/// The leading process, and the number of changes of leadership.
async fn lease(test_env: &TestEnv) -> (String, i32) {
    let leases: Api<Lease> = Api::namespaced(test_env.cluster.admin(), "default");
    let lease = leases.get_opt(&lease_name(DEFAULT_CONTROLLER_NAME)).await.unwrap();
    let spec = lease.and_then(|lease| lease.spec).unwrap_or_default();
    (spec.holder_identity.unwrap_or_default(), spec.lease_transitions.unwrap_or_default())
}

/// The statuses of all routes and Gateways, with the versions of the objects.
async fn statuses(test_env: &TestEnv) -> Vec<(Value, Value)> {
    let mut found = Vec::new();
    for (kind, name) in [(Kind::Gateway, "web"), (Kind::HttpRoute, "cart"), (Kind::HttpRoute, "late")] {
        let object = test_env.object(kind, "default", name).await;
        found.push((object["metadata"]["resourceVersion"].clone(), object["status"].clone()));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_paused_is_replaced_and_writes_nothing_when_it_goes_on() {
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let leader = Replica::start(&test_env, "leader").await;
    test_env.wait_for_route("Accepted=True/Accepted").await;
    let (first, _) = lease(&test_env).await;
    let standby = Replica::start(&test_env, "standby").await;
    standby.wait_for_documents(&["cart.example".to_owned()]).await;
    let [of_leader, of_standby] =
        [&leader, &standby].map(|replica| FeedObservers::start(replica.feed, PLANE, "10.1.2.3:8080"));
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    let before = test_env.object(Kind::HttpRoute, "default", "cart").await;

    leader.process.pause().await.unwrap();
    test_env.apply(&shop::route("late")).await;
    test_env
        .wait_for_condition(Kind::HttpRoute, "default", "late", "/parents/0", "Accepted=True/Accepted")
        .await;
    let (second, transitions) = lease(&test_env).await;
    assert_ne!(first, second);
    standby.wait_for_documents(&["late.example".to_owned()]).await;
    let written = statuses(&test_env).await;

    leader.process.resume().await.unwrap();
    leader.wait_for_documents(&["late.example".to_owned()]).await;
    // After the duration of a Lease, every retry has happened.
    sleep(Duration::from_secs(5)).await;
    assert_eq!(lease(&test_env).await, (second, transitions), "leadership goes back and forth");
    assert_eq!(statuses(&test_env).await, written, "a status was written again");
    assert_eq!(test_env.object(Kind::HttpRoute, "default", "cart").await, before, "a status has moved");
    for (whose, observers) in [("the leader's", of_leader), ("the other's", of_standby)] {
        assert_eq!(observers.errors(), Vec::<String>::new(), "of {whose} feed");
        assert!(observers.counts().0 > 20, "of {whose} feed: {:?}", observers.counts());
    }
}
