//! Errors of the API server, its store and the controller: the served documents stay, and the controller catches up
//! with missed changes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, PostParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use pingsix_gateway_api::controller::Feed;
use pingsix_sink::embedded::EmbeddedError;
use pingsix_sink::embedded::revisions::ReserveError;
use pingsix_sink::{Desired, EmbeddedEtcd, Published, Scope, Sink, SinkError};
use pingsix_test_cluster::{TestCluster, User};
use pingsix_translate::Kind;
use pingsix_translate::snapshot::Gateway;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::test_env::readers::{FeedObservers, Served};
use crate::test_env::shop::{self, GATEWAY, PLANE, ROUTE, SERVICE};
use crate::test_env::{Running, TestEnv, WAIT_TIMEOUT, eventually, fast_retries, roles};

/// An error of the API server.
#[derive(Clone, Copy, Debug)]
enum Outage {
    Killed,
    Paused,
    WithoutItsStore,
}

impl Outage {
    /// Starts and ends the outage.
    async fn run(self, cluster: &TestCluster) {
        match self {
            Self::Killed => {
                cluster.api_server().kill().await.unwrap();
                sleep(Duration::from_secs(1)).await;
                cluster.api_server().start().await.unwrap();
            }
            Self::Paused => {
                cluster.api_server().pause().await.unwrap();
                sleep(Duration::from_secs(20)).await;
                cluster.api_server().resume().await.unwrap();
            }
            Self::WithoutItsStore => {
                cluster.etcd().stop().await.unwrap();
                sleep(Duration::from_secs(3)).await;
                cluster.etcd().start().await.unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_is_killed_reaches_no_data_plane() {
    Box::pin(outages(&[Outage::Killed, Outage::Killed])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_stands_still_or_has_no_store_reaches_no_data_plane() {
    Box::pin(outages(&[Outage::Paused, Outage::WithoutItsStore])).await;
}

/// Through all outages the served documents and statuses stay; after each, the controller catches up.
async fn outages(outages: &[Outage]) {
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let running = test_env.ready(fast_retries()).await;
    test_env.wait_for_route("ResolvedRefs=True/ResolvedRefs").await;
    let served = Served::start(&test_env.etcd, None).await;
    let observers = FeedObservers::start(served.address, PLANE, "10.1.2.3:8080");
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    let before = test_env.object(Kind::HttpRoute, "default", "cart").await;

    for (round, outage) in outages.iter().enumerate() {
        outage.run(&test_env.cluster).await;
        let back = Instant::now();
        let name = format!("r{round}");
        // An API server may refuse right after its restart.
        while test_env.cluster.apply(&shop::route(&name)).await.is_err() {
            sleep(Duration::from_millis(100)).await;
        }
        let host = format!("{name}.example");
        let written = Instant::now();
        eventually(&format!("{host} after {outage:?}"), || test_env.mentions(PLANE, &host)).await;
        println!(
            "{outage:?}: written {:?} after its end, and served {:?} later",
            written - back,
            written.elapsed()
        );
        test_env
            .wait_for_condition(Kind::HttpRoute, "default", &name, "/parents/0", "Accepted=True/Accepted")
            .await;
        assert_eq!(observers.errors(), Vec::<String>::new(), "{outage:?}");
    }
    // The resource version is unchanged too: no write happened, not even back and forth.
    let after = test_env.object(Kind::HttpRoute, "default", "cart").await;
    assert_eq!(after, before, "a status has moved though nothing about its object had changed");
    let (lists, watches, events) = observers.counts();
    assert!(lists > 100 && watches == 1 && events >= 2, "{lists} lists, {watches} watches, {events} events");
    drop(observers);
    running.stop().await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_is_killed_at_any_moment_withdraws_nothing() {
    const ROUTES: usize = 60;
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let routes: Vec<String> = (0..ROUTES).map(|index| shop::route(&format!("r{index}"))).collect();
    test_env.apply(&routes.join("\n---\n")).await;
    let folder = tempfile::tempdir().unwrap();
    let mut address = None;
    let mut observers = None;
    for round in 0..8 {
        let etcd = feed_on_file(&folder.path().join("revisions")).await;
        let served = Served::start(&etcd, address).await;
        address = Some(served.address);
        let observers =
            observers.get_or_insert_with(|| FeedObservers::start(served.address, PLANE, "10.1.2.3:8080"));
        let mut running = Running::start(test_env.cluster.admin(), &etcd, fast_retries());
        if round % 2 == 0 {
            running.wait_until_ready().await;
            assert!(served_routes(&etcd) >= 1, "it is ready before it has published");
            let lists = observers.counts().0;
            eventually("some lists", || observers.counts().0 > lists + 3).await;
        } else {
            sleep(Duration::from_millis(15 * round)).await;
        }
        running.kill().await;
        served.stop().await;
        drop(etcd);
        assert_eq!(observers.errors(), Vec::<String>::new(), "round {round}");
    }
    assert!(observers.is_some_and(|observers| observers.counts().0 > 15));
}

/// A feed on a state file, after the connections of the previous one have ended. In a process of its own they would
/// end at once.
async fn feed_on_file(path: &Path) -> EmbeddedEtcd {
    timeout(WAIT_TIMEOUT, async {
        loop {
            let builder = EmbeddedEtcd::builder().state_file(path).drain_timeout(Duration::from_millis(10));
            match builder.start().await {
                Ok(etcd) => return etcd,
                Err(error) => match error.downcast_ref() {
                    Some(EmbeddedError::Revisions(ReserveError::InUse { .. })) => {
                        sleep(Duration::from_millis(20)).await;
                    }
                    _ => panic!("{error}"),
                },
            }
        }
    })
    .await
    .unwrap()
}

fn served_routes(etcd: &EmbeddedEtcd) -> usize {
    etcd.documents(&Scope::new(PLANE).unwrap()).map_or(0, |documents| documents.len())
}

/// A feed with injected failures.
struct FlakySink {
    etcd: EmbeddedEtcd,
    is_broken: AtomicBool,
}

impl Sink for FlakySink {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(SinkError::target(std::io::Error::other("the disk is full")));
        }
        self.etcd.publish(desired).await
    }
}

impl Feed for FlakySink {
    fn open(&self) {
        self.etcd.open();
    }

    fn readers_of(&self, scope: &Scope) -> Option<usize> {
        Some(self.etcd.readers_of(scope))
    }

    fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.etcd.readers_changed())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publication_that_fails_is_made_later_also_that_of_an_end() {
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let feed = Arc::new(FlakySink { etcd: test_env.etcd.clone(), is_broken: AtomicBool::new(true) });
    let mut running = Running::with_feed(feed.clone(), test_env.cluster.admin(), fast_retries());
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=False/Pending").await;
    assert!(!running.progress.borrow().is_ready(), "it is open though nothing was published");
    feed.is_broken.store(false, Ordering::Relaxed);
    running.wait_until_ready().await;
    assert!(test_env.mentions(PLANE, "10.1.2.3:8080"));

    feed.is_broken.store(true, Ordering::Relaxed);
    let gateways: Api<Gateway> = Api::namespaced(test_env.cluster.admin(), "default");
    gateways.delete("web", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(test_env.mentions(PLANE, "10.1.2.3:8080"), "it was withdrawn by a feed that fails");
    feed.is_broken.store(false, Ordering::Relaxed);
    eventually("the withdrawal", || test_env.documents(PLANE).is_empty()).await;
    running.stop().await;
}

/// As in a Pod whose token expires before its file has the next one. The API server accepts a token that is bound to
/// a Secret as long as the Secret exists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_token_takes_nothing_away_and_the_next_one_catches_up() {
    let Some(test_env) = TestEnv::start().await else { return };
    // The roles are not separate: one role has all permissions.
    for manifests in [GATEWAY, SERVICE, ROUTE, &shop::route("gone"), &roles::split_roles("", &fast_retries())]
    {
        test_env.apply(manifests).await;
    }
    let user = test_env.cluster.service_account("default", "controller").await.unwrap();
    test_env.cluster.bind_cluster_role(&user, roles::OTHER_RESOURCES_ROLE).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, bound_token(&test_env, "first").await).unwrap();
    let mut running =
        Running::start(client_of_file(&test_env, &user, &file).await, &test_env.etcd, fast_retries());
    running.wait_until_ready().await;
    test_env.wait_for_route("ResolvedRefs=True/ResolvedRefs").await;
    assert!(test_env.mentions(PLANE, "gone.example"));
    let served = Served::start(&test_env.etcd, None).await;
    let observers = FeedObservers::start(served.address, PLANE, "10.1.2.3:8080");
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    let before = test_env.object(Kind::HttpRoute, "default", "cart").await;

    let secrets: Api<Secret> = Api::namespaced(test_env.cluster.admin(), "default");
    secrets.delete("first", &DeleteParams::default()).await.unwrap();
    // Open watches are not authorised again: all of them have to be opened anew.
    Outage::Killed.run(&test_env.cluster).await;
    while test_env.cluster.apply(&shop::route("meanwhile")).await.is_err() {
        sleep(Duration::from_millis(100)).await;
    }
    test_env.objects(Kind::HttpRoute, "default").delete("gone", &DeleteParams::default()).await.unwrap();
    let refused = client_of_file(&test_env, &user, &file).await.apiserver_version().await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused:?}");
    sleep(Duration::from_secs(5)).await;
    assert!(!test_env.mentions(PLANE, "meanwhile.example"), "it is still listened to");
    assert!(test_env.mentions(PLANE, "gone.example") && test_env.mentions(PLANE, "cart.example"));
    assert!(running.progress.borrow().is_ready());

    std::fs::write(&file, bound_token(&test_env, "second").await).unwrap();
    eventually("what came meanwhile", || test_env.mentions(PLANE, "meanwhile.example")).await;
    eventually("what went meanwhile", || !test_env.mentions(PLANE, "gone.example")).await;
    test_env
        .wait_for_condition(Kind::HttpRoute, "default", "meanwhile", "/parents/0", "Accepted=True/Accepted")
        .await;
    assert_eq!(observers.errors(), Vec::<String>::new());
    let after = test_env.object(Kind::HttpRoute, "default", "cart").await;
    assert_eq!(after, before, "a status has moved though nothing about its object had changed");
    drop(observers);
    running.stop().await;
    served.stop().await;
}

/// A token of the controller's service account that is valid as long as a Secret of this name, which is created.
async fn bound_token(test_env: &TestEnv, secret: &str) -> String {
    let metadata = ObjectMeta { name: Some(secret.to_owned()), ..ObjectMeta::default() };
    let secrets: Api<Secret> = Api::namespaced(test_env.cluster.admin(), "default");
    let secret = Secret { metadata, ..Secret::default() };
    let secret = secrets.create(&PostParams::default(), &secret).await.unwrap();
    let bound = BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        name: secret.metadata.name,
        uid: secret.metadata.uid,
    };
    let spec = TokenRequestSpec { bound_object_ref: Some(bound), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let accounts: Api<ServiceAccount> = Api::namespaced(test_env.cluster.admin(), "default");
    let answer = accounts.create_token_request("controller", &PostParams::default(), &request).await.unwrap();
    answer.status.unwrap().token.unwrap()
}

/// A client that reads its token from a file, as one in a Pod does.
async fn client_of_file(test_env: &TestEnv, user: &User, token: &Path) -> Client {
    let path = test_env.cluster.kubeconfig(user).unwrap();
    let mut kubeconfig = Kubeconfig::read_from(path).unwrap();
    kubeconfig.auth_infos[0].auth_info =
        Some(AuthInfo { token_file: Some(token.display().to_string()), ..AuthInfo::default() });
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}
