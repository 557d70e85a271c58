//! Watches: behaviour that only a real API server shows. Roles for single objects, definitions that come and go with
//! their objects, validation, expired versions, and restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::Client;
use kube::api::DeleteParams;
use pingsix_gateway_api::watch::{Answer, Availability, Input, Presence, WatchOptions, Watches, presence};
use pingsix_gateway_api::world::World;
use pingsix_test_cluster::{Channel, TestCluster};
use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::{Kind, ObjectKey, PINGSIX_GROUP};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::test_env::WAIT_TIMEOUT;

/// May read everything but Secrets, of which it may read one.
const ROLES: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: watcher
rules:
  - apiGroups: [gateway.networking.k8s.io, networking.k8s.io, discovery.k8s.io]
    resources: ['*']
    verbs: [list, watch]
  - apiGroups: ['']
    resources: [services, namespaces, configmaps]
    verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: one-secret
  namespace: default
rules:
  - apiGroups: ['']
    resources: [secrets]
    resourceNames: [tls]
    verbs: [list, watch]
";

fn route(name: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata:
  name: {name}
spec:
  hostnames: [{name}.example]
"
    )
}

fn secret(value: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Secret
metadata:
  name: tls
stringData:
  tls.crt: {value}
"
    )
}

struct Consumer {
    watches: Watches,
    inputs: mpsc::Receiver<Input>,
    _stop: CancellationToken,
    world: World,
    availability: BTreeMap<Kind, Availability>,
    answers: BTreeMap<ObjectKey, Answer>,
}

impl Consumer {
    fn of(client: Client, options: WatchOptions) -> Self {
        let stop = CancellationToken::new();
        let (watches, inputs) = Watches::start(client, options, &stop);
        let (availability, answers) = (BTreeMap::new(), BTreeMap::new());
        Self { watches, inputs, _stop: stop, world: World::default(), availability, answers }
    }

    async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while !holds(self) {
            let Ok(input) = tokio::time::timeout_at(deadline.into(), self.inputs.recv()).await else {
                panic!("not in time: {what}; {:#?}", self.availability);
            };
            match input.expect("watches run") {
                Input::Event(event) => drop(self.world.apply(event)),
                Input::Gone(key) => drop(self.world.remove(&key)),
                Input::Released(key) => {
                    self.world.remove(&key);
                    self.answers.remove(&key);
                }
                Input::Answered { key, answer } => drop(self.answers.insert(key, answer)),
                Input::Availability { kind, availability } => {
                    self.availability.insert(kind, availability);
                }
            }
        }
    }

    async fn until_watching(&mut self) {
        self.until("every kind is watched", |consumer| {
            // Our own kinds are not installed here.
            let kinds = Kind::ALL.iter().filter(|kind| kind.group() != PINGSIX_GROUP);
            let mut kinds = kinds.filter(|kind| presence(**kind) != Presence::Referenced);
            kinds.all(|kind| consumer.availability.get(kind) == Some(&Availability::Watching))
        })
        .await;
    }

    fn has(&self, kind: Kind, name: &str) -> bool {
        self.world.contains(&ObjectKey::new(kind, "default", name))
    }

    fn secret(&self) -> Option<Vec<u8>> {
        let secret = self.world.get::<Secret>(&ObjectKey::new(Kind::Secret, "default", "tls").name)?;
        Some(secret.data.as_ref()?.get("tls.crt")?.0.clone())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_come_and_go_with_their_definitions() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let mut consumer = Consumer::of(cluster.admin(), WatchOptions::default());
    let grpc = Kind::GrpcRoute;
    consumer
        .until("absence is told", |consumer| {
            [Kind::Gateway, grpc].iter().all(|kind| {
                matches!(consumer.availability.get(kind), Some(Availability::Absent { message })
                if message.contains("gateway.networking.k8s.io"))
            }) && consumer.world.is_complete(grpc)
        })
        .await;
    assert!(!consumer.world.is_complete(Kind::Gateway));

    cluster.install(Channel::Standard).await.unwrap();
    consumer.watches.rediscover();
    consumer.until_watching().await;
    cluster.apply(&route("one")).await.unwrap();
    consumer.until("the route is seen", |consumer| consumer.has(grpc, "one")).await;

    let definitions = Api::<CustomResourceDefinition>::all(cluster.admin());
    definitions.delete("grpcroutes.gateway.networking.k8s.io", &DeleteParams::default()).await.unwrap();
    consumer
        .until("it is gone with its definition", |consumer| {
            !consumer.has(grpc, "one") && matches!(consumer.availability[&grpc], Availability::Absent { .. })
        })
        .await;
    assert!(consumer.world.is_complete(grpc));
    assert_eq!(consumer.availability[&Kind::HttpRoute], Availability::Watching);

    cluster.install(Channel::Standard).await.unwrap();
    cluster.apply(&route("two")).await.unwrap();
    consumer.until("it is back", |consumer| consumer.has(grpc, "two") && !consumer.has(grpc, "one")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_that_name_single_secrets_suffice() {
    let Some(cluster) = TestCluster::builder().user("watcher", &[]).start_or_skip().await else { return };
    cluster.apply(ROLES).await.unwrap();
    cluster.apply(&secret("one")).await.unwrap();
    let user = cluster.user("watcher").unwrap();
    let mut consumer = Consumer::of(cluster.client(user).unwrap(), WatchOptions::default());
    consumer
        .until("everything is forbidden", |consumer| {
            matches!(consumer.availability.get(&Kind::Gateway), Some(Availability::Forbidden { message })
            if message.contains("gateways.gateway.networking.k8s.io is forbidden"))
        })
        .await;
    cluster.bind_cluster_role(user, "watcher").await.unwrap();
    cluster.bind_role("default", user, "one-secret").await.unwrap();
    consumer.until_watching().await;

    let key = |name: &str| ObjectKey::new(Kind::Secret, "default", name);
    let authority = ObjectKey::new(Kind::ConfigMap, "default", "kube-root-ca.crt");
    consumer.watches.set_references([key("tls"), key("other"), authority.clone()].into());
    consumer.until("all are answered", |consumer| consumer.answers.len() == 3).await;
    assert_eq!(consumer.answers[&key("tls")], Answer::Present);
    assert!(
        matches!(&consumer.answers[&key("other")], Answer::Forbidden { message } if message.contains("secrets"))
    );
    assert_eq!(consumer.answers[&authority], Answer::Absent, "nobody makes one here");
    assert_eq!(consumer.secret().as_deref(), Some(&b"one"[..]));

    cluster.apply(&secret("two")).await.unwrap();
    consumer.until("it is rotated", |consumer| consumer.secret().as_deref() == Some(b"two")).await;
    let secrets = Api::<Secret>::namespaced(cluster.admin(), "default");
    secrets.delete("tls", &DeleteParams::default()).await.unwrap();
    consumer.until("it is gone", |consumer| consumer.answers[&key("tls")] == Answer::Absent).await;
    assert_eq!(consumer.secret(), None);
    cluster.apply(&secret("three")).await.unwrap();
    consumer.until("it is back", |consumer| consumer.secret().as_deref() == Some(b"three")).await;
    consumer.watches.set_references([authority].into());
    consumer
        .until("it is let go", |consumer| consumer.secret().is_none() && consumer.answers.len() == 1)
        .await;
}

/// Many names of one namespace: with the right to list it, and with that to read one of them.
#[tokio::test(flavor = "multi_thread")]
async fn many_names_of_a_namespace_take_one_watch_where_that_is_allowed() {
    let Some(cluster) = TestCluster::builder().user("watcher", &[]).start_or_skip().await else { return };
    cluster.apply(ROLES).await.unwrap();
    cluster.apply(&secret("one")).await.unwrap();
    let user = cluster.user("watcher").unwrap();
    cluster.bind_cluster_role(user, "watcher").await.unwrap();
    cluster.bind_role("default", user, "one-secret").await.unwrap();
    let tls = ObjectKey::new(Kind::Secret, "default", "tls");
    let mut names: BTreeSet<ObjectKey> =
        (0..1000).map(|index| ObjectKey::new(Kind::Secret, "default", &*format!("x{index}"))).collect();
    names.insert(tls.clone());
    let watched = |consumer: &Consumer| (consumer.watches.stats().by_name(), consumer.watches.stats().wide());

    let mut allowed = Consumer::of(cluster.admin(), WatchOptions::default());
    allowed.watches.set_references([tls.clone()].into());
    allowed.until("it is there", |consumer| consumer.secret().is_some()).await;
    assert_eq!(watched(&allowed), (1, 0));
    allowed.watches.set_references(names.clone());
    allowed.until("all are answered", |consumer| consumer.answers.len() == 1001).await;
    assert_eq!(allowed.answers[&tls], Answer::Present);
    cluster.apply(&secret("two")).await.unwrap();
    allowed.until("it is rotated", |consumer| consumer.secret().as_deref() == Some(b"two")).await;
    assert_eq!(watched(&allowed), (0, 1));

    let mut refused = Consumer::of(cluster.client(user).unwrap(), WatchOptions::default());
    refused.watches.set_references([tls.clone()].into());
    refused.until("it is there", |consumer| consumer.secret().is_some()).await;
    refused.watches.set_references(names);
    refused.until("all are answered", |consumer| consumer.answers.len() == 1001).await;
    assert_eq!(refused.answers[&tls], Answer::Present);
    let others = refused.answers.iter().filter(|(key, _)| **key != tls);
    assert!(others.clone().all(|(_, answer)| matches!(answer, Answer::Forbidden { .. })));
    let names_the_bound = |answer: &Answer| matches!(answer, Answer::Forbidden { message } if message.contains("64 of them are watched"));
    assert_eq!(others.filter(|(_, answer)| names_the_bound(answer)).count(), 1001 - 64);
    assert_eq!(watched(&refused), (64, 1));
    cluster.apply(&secret("three")).await.unwrap();
    refused.until("it is rotated", |consumer| consumer.secret().as_deref() == Some(b"three")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_api_server_loses_nothing() {
    let compacting = TestCluster::builder().api_server_argument("--etcd-compaction-interval=2s");
    let Some(cluster) = compacting.start_or_skip().await else { return };
    for name in ["kept", "deleted"] {
        cluster.apply(&route(name)).await.unwrap();
    }
    let mut consumer =
        Consumer::of(cluster.admin(), WatchOptions { page_size: 1, ..WatchOptions::default() });
    consumer.until_watching().await;
    let grpc = Kind::GrpcRoute;
    assert!(consumer.has(grpc, "kept") && consumer.has(grpc, "deleted"));

    cluster.api_server().kill().await.unwrap();
    consumer
        .until("it is missed", |consumer| {
            matches!(consumer.availability[&grpc], Availability::Unreachable { .. })
        })
        .await;
    assert!(consumer.has(grpc, "kept") && consumer.has(grpc, "deleted"));
    cluster.api_server().start().await.unwrap();
    // As soon as it answers, before our watches are back.
    let routes = Api::<kube::api::DynamicObject>::default_namespaced_with(
        cluster.admin(),
        &kube::api::ApiResource::erase::<pingsix_translate::snapshot::wire::GrpcRoute>(&()),
    );
    routes.delete("deleted", &DeleteParams::default()).await.unwrap();
    cluster.apply(&route("new")).await.unwrap();
    consumer
        .until("everything is as it is", |consumer| {
            consumer.has(grpc, "kept") && consumer.has(grpc, "new") && !consumer.has(grpc, "deleted")
        })
        .await;
    consumer.until_watching().await;
}
