//! The heap memory of the world and of translations, by data structure.
//!
//! Each route has one hostname, one rule, and a Service with an EndpointSlice of its own. The allocator counts, so the
//! result does not depend on the machine.

#![allow(clippy::print_stdout, reason = "a measurement that says what it found")]

use std::fmt::Debug;

use jiff::Timestamp;
use kube_runtime::watcher;
use pingsix_gateway_api::reconcile::{ReconcileOutcome, Reconciler};
use pingsix_gateway_api::status::{StatusBoard, Wanted};
use pingsix_gateway_api::watch::Watched;
use pingsix_gateway_api::world::Event;
use pingsix_sink::{EmbeddedEtcd, Sink as _};
use pingsix_translate::{Budget, DEFAULT_CONTROLLER_NAME, Kind, ObjectKey, Options};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// An object on its own.
fn apply<K>(reconciler: &mut Reconciler, object: &Value)
where
    Watched<K>: DeserializeOwned + Debug,
    Event: From<watcher::Event<Watched<K>>>,
{
    list(reconciler, [object.clone()]);
}

/// As a list from the wire, with which a controller begins.
fn list<K>(reconciler: &mut Reconciler, objects: impl IntoIterator<Item = Value>)
where
    Watched<K>: DeserializeOwned + Debug,
    Event: From<watcher::Event<Watched<K>>>,
{
    reconciler.apply(watcher::Event::Init.into());
    for object in objects {
        let object = serde_json::from_str(&object.to_string()).expect("the object is well-formed");
        reconciler.apply(watcher::Event::InitApply(object).into());
    }
    reconciler.apply(watcher::Event::InitDone.into());
}

fn metadata(name: &str, number: usize) -> Value {
    json!({
        "name": name, "namespace": "bench", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
        "uid": format!("00000000-0000-4000-8000-{number:012}"), "resourceVersion": format!("{}", 1_000_000 + number),
        "managedFields": [{"manager": "bench", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z"}],
    })
}

fn condition(kind: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": kind, "message": "The route is accepted by all of its listeners.",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn route(number: usize) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": metadata(&format!("route-{number}"), number),
        "spec": {
            "parentRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gateway"}],
            "hostnames": [format!("host-{number}.example.com")],
            "rules": [{
                "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
                "backendRefs": [{"group": "", "kind": "Service", "name": format!("service-{number}"), "port": 80, "weight": 1}],
            }],
        },
        "status": {"parents": [{
            "controllerName": DEFAULT_CONTROLLER_NAME,
            "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gateway"},
            "conditions": [condition("Accepted"), condition("ResolvedRefs")],
        }]},
    })
}

fn service(number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(&format!("service-{number}"), number),
        "spec": {
            "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster", "sessionAffinity": "None", "type": "ClusterIP",
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}],
            "selector": {"app": "bench"},
        },
        "status": {"loadBalancer": {}},
    })
}

fn slice(number: usize) -> Value {
    let service = format!("service-{number}");
    let mut metadata = metadata(&format!("{service}-abcde"), number);
    metadata["labels"] = json!({"kubernetes.io/service-name": service, "app": "bench"});
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata,
        "addressType": "IPv4", "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": (1..=3).map(|pod| json!({
            "addresses": [format!("10.0.{}.{pod}", number % 256)], "nodeName": "node", "zone": "a",
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "targetRef": {"kind": "Pod", "name": format!("pod-{number}-{pod}"), "namespace": "bench"},
        })).collect::<Vec<_>>(),
    })
}

struct Rows {
    routes: usize,
    before: usize,
}

impl Rows {
    fn row(&mut self, what: &str) {
        let now = dhat::HeapStats::get().curr_bytes;
        let (bytes, per_route) =
            (now.saturating_sub(self.before), now.saturating_sub(self.before) / self.routes);
        println!("| {what} | {bytes} | {per_route} |");
        self.before = now;
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let routes = arguments.first().and_then(|count| count.parse().ok()).unwrap_or(1_000);
    let profiler = if std::env::var_os("DHAT").is_some() {
        dhat::Profiler::builder().trim_backtraces(Some(60)).build()
    } else {
        dhat::Profiler::builder().testing().build()
    };
    println!("| what | bytes | bytes a route |\n|---|---|---|");
    let mut rows = Rows { routes, before: dhat::HeapStats::get().curr_bytes };
    let budget = Budget { bytes: 64_000_000, matcher_entries: usize::MAX };
    let mut reconciler = Reconciler::new(Options { budget, ..Options::default() });
    apply::<pingsix_translate::snapshot::GatewayClass>(
        &mut reconciler,
        &json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
            "metadata": {"name": "pingsix"}, "spec": {"controllerName": DEFAULT_CONTROLLER_NAME},
        }),
    );
    apply::<pingsix_translate::snapshot::Gateway>(
        &mut reconciler,
        &json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": metadata("gateway", 0),
            "spec": {"gatewayClassName": "pingsix", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
        }),
    );
    list::<pingsix_translate::snapshot::HttpRoute>(&mut reconciler, (0..routes).map(route));
    rows.row("HTTPRoutes");
    list::<pingsix_translate::snapshot::Service>(&mut reconciler, (0..routes).map(service));
    rows.row("Services");
    list::<pingsix_translate::snapshot::EndpointSlice>(&mut reconciler, (0..routes).map(slice));
    rows.row("EndpointSlices");
    let gateway = ObjectKey::new(Kind::Gateway, "bench", "gateway");
    let ReconcileOutcome::Current(came) = reconciler.reconcile(&gateway, Timestamp::UNIX_EPOCH) else {
        return;
    };
    rows.row("translation, bridge, verdicts");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let etcd = runtime.block_on(EmbeddedEtcd::builder().start()).expect("an embedded server");
    for publication in came.publications {
        runtime.block_on(etcd.publish(&publication.desired)).expect("it can be published");
    }
    rows.row("the feed");
    let board = StatusBoard::default();
    for number in 0..routes {
        let key = ObjectKey::new(Kind::HttpRoute, "bench", format!("route-{number}").as_str());
        if let Some(verdict) = reconciler.route(&key) {
            board.set(key, Wanted::Route(verdict));
        }
    }
    rows.row("statuses wanted");
    drop(profiler);
}
