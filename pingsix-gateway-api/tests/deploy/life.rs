//! A controller with the rights of the manifests, through everything it does; and no right that it does not use.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use pingsix_gateway_api::controller::{
    Controller, ControllerError, ControllerOptions, Progress, PublishedAddresses,
};
use pingsix_sink::EmbeddedEtcd;
use pingsix_test_cluster::{TestCluster, User};
use pingsix_translate::ObjectName;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::manifests::Manifests;
use crate::requests::Requests;
use crate::rights::{Right, granted, without};

/// How long anything may take to come about.
const PATIENCE: Duration = Duration::from_mins(1);

/// A cluster to which the manifests were applied.
pub(crate) struct Deployed {
    pub(crate) cluster: TestCluster,
    account: User,
    pub(crate) options: ControllerOptions,
    /// What the controllers of this cluster have asked.
    pub(crate) requests: Requests,
}

/// A controller that runs.
pub(crate) struct Running {
    stop: CancellationToken,
    run: JoinHandle<Result<(), ControllerError>>,
}

impl Deployed {
    /// Nothing if the test cannot run.
    pub(crate) async fn start(manifests: &Manifests) -> Option<Self> {
        let cluster = TestCluster::builder().start_or_skip().await?;
        cluster.namespace("shop").await.unwrap();
        cluster.apply(&manifests.text()).await.unwrap();
        let account = &manifests.get("ServiceAccount", "pingsix-gateway-controller")["metadata"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (namespace, name) = (text(&account["namespace"]), text(&account["name"]));
        let account = cluster.service_account(&namespace, &name).await.unwrap();
        let deployed = Self { cluster, account, options: manifests.options(), requests: Requests::default() };
        for right in granted(manifests) {
            deployed.until_allowed(&right).await;
        }
        Some(deployed)
    }

    /// Waits until the API server has taken in the bindings.
    pub(crate) async fn until_allowed(&self, right: &Right) {
        let (resource, part) = match right.resource.split_once('/') {
            Some((resource, part)) => (resource, Some(part.to_owned())),
            None => (right.resource.as_str(), None),
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(self.account.name().to_owned()),
                resource_attributes: Some(ResourceAttributes {
                    group: Some(right.group.clone()),
                    resource: Some(resource.to_owned()),
                    subresource: part,
                    namespace: right.namespace.clone(),
                    name: right.name.clone(),
                    verb: Some(right.verb.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews = Api::<SubjectAccessReview>::all(self.cluster.admin());
        let deadline = Instant::now() + PATIENCE;
        while !reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed {
            assert!(Instant::now() < deadline, "{right} is not allowed");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Runs a controller with the account of the manifests until everything is published once.
    pub(crate) async fn run(&self) -> Running {
        self.run_with(EmbeddedEtcd::builder().start().await.unwrap()).await
    }

    /// The same, with another feed.
    pub(crate) async fn run_with(&self, etcd: EmbeddedEtcd) -> Running {
        let client = self.requests.client(self.cluster.client(&self.account).unwrap());
        let mut options = self.options.clone();
        options.addresses = PublishedAddresses::Service(ObjectName::new("shop", "pingsix"));
        let controller = Controller::new(client, Arc::new(etcd), options);
        let mut progress = controller.progress();
        let stop = CancellationToken::new();
        let run = tokio::spawn(controller.run(stop.clone()));
        let ready = tokio::time::timeout(PATIENCE, progress.wait_for(Progress::is_ready));
        let is_ready = matches!(ready.await, Ok(Ok(_)));
        assert!(is_ready, "not ready: {:?} {:?}", progress.borrow(), self.requests.forbidden());
        Running { stop, run }
    }

    pub(crate) fn api(&self, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let group = match kind {
            "Ingress" | "IngressClass" => "networking.k8s.io",
            "Event" => "events.k8s.io",
            "Service" => "",
            _ => "gateway.networking.k8s.io",
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        if namespace.is_empty() {
            Api::all_with(self.cluster.admin(), &resource)
        } else {
            Api::namespaced_with(self.cluster.admin(), namespace, &resource)
        }
    }

    /// Waits until an object has something.
    pub(crate) async fn until(&self, kind: &str, namespace: &str, name: &str, has: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let object = serde_json::to_value(self.api(kind, namespace).get(name).await.unwrap()).unwrap();
            if has(&object) {
                return;
            }
            let forbidden = self.requests.forbidden();
            assert!(Instant::now() < deadline, "{kind} {name}: {:#}\n{forbidden:?}", object["status"]);
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until an Event on an object was told so often.
    async fn until_told(&self, namespace: &str, name: &str, times: i64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let events = self.api("Event", namespace).list(&ListParams::default()).await.unwrap();
            let is_told = events.items.iter().any(|event| {
                let count = event.data.pointer("/series/count").and_then(Value::as_i64).unwrap_or(1);
                event.data.pointer("/regarding/name").is_some_and(|said| said == name) && count >= times
            });
            if is_told {
                return;
            }
            let forbidden = self.requests.forbidden();
            assert!(Instant::now() < deadline, "no Event on {name} {times} times: {forbidden:?}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Running {
    /// Stops it, as at the end of a process.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.run).await.unwrap().unwrap().unwrap();
    }
}

/// Whether a status has a condition `Accepted` that somebody has judged.
pub(crate) fn is_judged(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Accepted" && one["status"] != "Unknown")
}

/// Whether a route or a policy has our entry.
fn has_our_entry(object: &Value) -> bool {
    let entries = ["parents", "ancestors"].into_iter().filter_map(|list| object["status"][list].as_array());
    entries.flatten().any(|entry| entry["controllerName"] == "pingsix.io/gateway-controller")
}

async fn live_through(deployed: &Deployed) {
    let running = deployed.run().await;
    let admin = Api::<k8s_openapi::api::core::v1::Service>::namespaced(deployed.cluster.admin(), "shop");
    deployed.cluster.apply(OBJECTS).await.unwrap();
    let address = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}});
    admin.patch_status("pingsix", &PatchParams::default(), &Patch::Merge(&address)).await.unwrap();

    for (kind, namespace, name) in [
        ("GatewayClass", "", "pingsix"),
        ("GatewayClass", "", "odd"),
        ("Gateway", "shop", "web"),
        ("ListenerSet", "shop", "more"),
    ] {
        deployed.until(kind, namespace, name, is_judged).await;
    }
    for kind in ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "BackendTLSPolicy"] {
        deployed.until(kind, "shop", "cart", has_our_entry).await;
    }
    let has_address = |object: &Value| object.to_string().contains("192.0.2.7");
    deployed.until("Ingress", "shop", "cart", has_address).await;
    deployed.until("Gateway", "shop", "web", has_address).await;
    // Its certificate was read.
    let resolved = |object: &Value| {
        let listeners = object["status"]["listeners"].as_array().into_iter().flatten();
        let conditions = listeners.filter(|listener| listener["name"] == "https");
        let mut conditions = conditions.filter_map(|listener| listener["conditions"].as_array()).flatten();
        conditions.any(|one| one["type"] == "ResolvedRefs" && one["status"] == "True")
    };
    deployed.until("Gateway", "shop", "web", resolved).await;
    deployed.until_told("shop", "broken", 1).await;
    deployed.until_told("default", "odd", 1).await;
    running.stop().await;

    // The next process finds the Lease and the Events.
    let running = deployed.run().await;
    deployed.until_told("shop", "broken", 2).await;
    deployed.until_told("default", "odd", 2).await;
    running.stop().await;
}

/// What was asked, as far as rules of roles tell it apart.
fn used(requests: &Requests) -> BTreeSet<Right> {
    let rights = requests.rights().into_iter();
    rights
        .map(|right| Right { name: right.name.filter(|_| right.resource == "leases"), ..right })
        .map(forget_new)
        .collect()
}

/// A request to create has no name for the authorizer.
fn forget_new(right: Right) -> Right {
    if right.verb == "create" { Right { name: None, ..right } } else { right }
}

fn only_discovery_beside(requests: &Requests) {
    for path in requests.paths() {
        let is_discovery = path.starts_with("/api/") || path.starts_with("/apis");
        assert!(is_discovery && path.split('/').count() <= 4, "{path}");
    }
}

fn by_name_alone(requests: &Requests) {
    let mut kinds = BTreeSet::new();
    for right in requests.rights() {
        if right.resource == "secrets" || right.resource == "configmaps" {
            assert!(right.name.is_some() && right.namespace.is_some(), "{right}");
            kinds.insert(right.resource);
        }
    }
    assert_eq!(kinds.len(), 2, "{kinds:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_of_the_whole_cluster_uses_every_right_it_has_and_needs_no_other() {
    let manifests = Manifests::cluster_wide();
    let Some(deployed) = Deployed::start(&manifests).await else { return };
    live_through(&deployed).await;
    assert_eq!(deployed.requests.forbidden(), [""; 0]);
    // Requests about objects of one namespace are covered by rights everywhere.
    let used: BTreeSet<Right> = used(&deployed.requests).iter().map(Right::anywhere).collect();
    let granted: BTreeSet<Right> = granted(&manifests).iter().map(Right::anywhere).collect();
    assert_eq!(without(&used, &granted), [""; 0], "is used and not granted");
    assert_eq!(without(&granted, &used), [""; 0], "is granted and never used");
    only_discovery_beside(&deployed.requests);
    by_name_alone(&deployed.requests);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_of_one_namespace_uses_every_right_it_has_and_needs_no_other() {
    let manifests = Manifests::namespaced();
    let Some(deployed) = Deployed::start(&manifests).await else { return };
    live_through(&deployed).await;
    assert_eq!(deployed.requests.forbidden(), [""; 0]);
    let (used, granted) = (used(&deployed.requests), granted(&manifests));
    assert_eq!(without(&used, &granted), [""; 0], "is used and not granted");
    assert_eq!(without(&granted, &used), [""; 0], "is granted and never used");
    only_discovery_beside(&deployed.requests);
    by_name_alone(&deployed.requests);
}

/// One object of every kind that is watched, and a problem for an Event in `shop` and one in `default`.
const OBJECTS: &str = include_str!("life.yaml");
