//! From one event to what is published: one of many routes or Ingresses changes, or one endpoint; also an endpoint of a Service
//! that many Gateways share.

use std::fmt::Debug;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use kube_runtime::watcher;
use pingsix_gateway_api::reconcile::{ReconcileOutcome, Reconciler};
use pingsix_gateway_api::watch::Watched;
use pingsix_gateway_api::world::Event;
use pingsix_translate::{Budget, DEFAULT_CONTROLLER_NAME, Kind, ObjectKey, Options};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const SIZES: [usize; 4] = [100, 1_000, 3_000, 10_000];

fn apply<K>(reconciler: &mut Reconciler, object: Value)
where
    Watched<K>: DeserializeOwned + Debug,
    Event: From<watcher::Event<Watched<K>>>,
{
    let object = serde_json::from_value(object).expect("the object is well-formed");
    reconciler.apply(watcher::Event::Apply(object).into());
}

fn route(number: usize, path: &str, version: usize) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {
            "name": format!("route-{number}"), "namespace": "bench", "generation": version,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "parentRefs": [{"name": "gateway"}], "hostnames": [format!("host-{number}.example.com")],
            "rules": [{
                "matches": [{"path": {"type": "PathPrefix", "value": path}}],
                "backendRefs": [{"name": format!("service-{number}"), "port": 80}],
            }],
        },
    })
}

fn slice(number: usize, address: &str) -> Value {
    let service = format!("service-{number}");
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": service, "namespace": "bench", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": [address]}],
    })
}

fn ingress(number: usize, path: &str, version: usize) -> Value {
    let service = json!({"name": format!("service-{number}"), "port": {"number": 80}});
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {
            "name": format!("ingress-{number}"), "namespace": "bench", "generation": version,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "ingressClassName": "class",
            "rules": [{
                "host": format!("host-{number}.example.com"),
                "http": {"paths": [{"path": path, "pathType": "Prefix", "backend": {"service": service}}]},
            }],
        },
    })
}

/// Services with a slice each.
fn apply_services(reconciler: &mut Reconciler, services: usize) {
    for number in 0..services {
        apply::<pingsix_translate::snapshot::Service>(
            reconciler,
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": format!("service-{number}"), "namespace": "bench"},
                "spec": {"ports": [{"port": 80}]},
            }),
        );
        apply::<pingsix_translate::snapshot::EndpointSlice>(reconciler, slice(number, "10.0.0.1"));
    }
}

fn empty() -> Reconciler {
    let budget = Budget { bytes: 4_000_000, matcher_entries: usize::MAX };
    Reconciler::new(Options { budget, ..Options::default() })
}

/// One IngressClass with Ingresses of one path each, every one with a Service and a slice of its own.
fn class(ingresses: usize) -> Reconciler {
    let mut reconciler = empty();
    apply::<pingsix_translate::snapshot::IngressClass>(
        &mut reconciler,
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "class"},
            "spec": {"controller": DEFAULT_CONTROLLER_NAME},
        }),
    );
    for number in 0..ingresses {
        apply::<pingsix_translate::snapshot::Ingress>(&mut reconciler, ingress(number, "/", 1));
    }
    apply_services(&mut reconciler, ingresses);
    reconciler
}

/// One Gateway with routes of one rule each, every one with a Service and a slice of its own.
fn cluster(routes: usize) -> Reconciler {
    let mut reconciler = empty();
    apply::<pingsix_translate::snapshot::GatewayClass>(
        &mut reconciler,
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
            "metadata": {"name": "pingsix"}, "spec": {"controllerName": DEFAULT_CONTROLLER_NAME},
        }),
    );
    apply::<pingsix_translate::snapshot::Gateway>(
        &mut reconciler,
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": {"name": "gateway", "namespace": "bench", "generation": 1},
            "spec": {"gatewayClassName": "pingsix", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
        }),
    );
    for number in 0..routes {
        apply::<pingsix_translate::snapshot::HttpRoute>(&mut reconciler, route(number, "/", 1));
    }
    apply_services(&mut reconciler, routes);
    reconciler
}

/// Reconsiders an owner; returns how many documents it wants.
fn reconcile(reconciler: &mut Reconciler, owner: &ObjectKey) -> usize {
    let ReconcileOutcome::Current(came) = reconciler.reconcile(owner, Timestamp::UNIX_EPOCH) else {
        return 0;
    };
    came.publications.iter().map(|publication| publication.desired.documents().len()).sum()
}

fn gateway() -> ObjectKey {
    ObjectKey::new(Kind::Gateway, "bench", "gateway")
}

fn one_change(criterion: &mut Criterion) {
    for name in ["everything", "one route changed", "one endpoint changed"] {
        let mut group = criterion.benchmark_group(format!("event to publication: {name}"));
        group.sample_size(10);
        for routes in SIZES {
            let mut reconciler = cluster(routes);
            assert!(reconcile(&mut reconciler, &gateway()) > routes, "the routes are served");
            let mut turn = 1;
            group.bench_function(BenchmarkId::from_parameter(routes), |bencher| {
                bencher.iter(|| {
                    turn += 1;
                    match name {
                        "one route changed" => {
                            let path = ["/one", "/other"][turn % 2];
                            apply::<pingsix_translate::snapshot::HttpRoute>(
                                &mut reconciler,
                                route(routes / 2, path, turn),
                            );
                        }
                        "one endpoint changed" => {
                            let address = ["10.0.0.2", "10.0.0.3"][turn % 2];
                            apply::<pingsix_translate::snapshot::EndpointSlice>(
                                &mut reconciler,
                                slice(routes / 2, address),
                            );
                        }
                        // The translator has no cache of the Gateway.
                        _ => apply::<pingsix_translate::snapshot::Gateway>(
                            &mut reconciler,
                            json!({
                                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
                                "metadata": {"name": "gateway", "namespace": "bench", "generation": turn},
                                "spec": {
                                    "gatewayClassName": "pingsix",
                                    "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
                                },
                            }),
                        ),
                    }
                    black_box(reconcile(&mut reconciler, &gateway()))
                });
            });
        }
        group.finish();
    }
}

fn one_change_of_a_class(criterion: &mut Criterion) {
    let class_key = ObjectKey::new(Kind::IngressClass, "", "class");
    for name in ["one Ingress changed", "one endpoint of an Ingress changed"] {
        let mut group = criterion.benchmark_group(format!("event to publication: {name}"));
        group.sample_size(10);
        for ingresses in SIZES {
            let mut reconciler = class(ingresses);
            assert!(reconcile(&mut reconciler, &class_key) > ingresses, "the Ingresses are served");
            let mut turn = 1;
            group.bench_function(BenchmarkId::from_parameter(ingresses), |bencher| {
                bencher.iter(|| {
                    turn += 1;
                    if name == "one Ingress changed" {
                        let path = ["/one", "/other"][turn % 2];
                        let changed = ingress(ingresses / 2, path, turn);
                        apply::<pingsix_translate::snapshot::Ingress>(&mut reconciler, changed);
                    } else {
                        let address = ["10.0.0.2", "10.0.0.3"][turn % 2];
                        let changed = slice(ingresses / 2, address);
                        apply::<pingsix_translate::snapshot::EndpointSlice>(&mut reconciler, changed);
                    }
                    black_box(reconcile(&mut reconciler, &class_key))
                });
            });
        }
        group.finish();
    }
}

/// So many Gateways with a route each, all on one Service.
fn sharing(gateways: usize) -> Reconciler {
    let mut reconciler = cluster(1);
    for number in 0..gateways {
        let name = format!("gateway-{number}");
        apply::<pingsix_translate::snapshot::Gateway>(
            &mut reconciler,
            json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
                "metadata": {"name": name, "namespace": "bench", "generation": 1},
                "spec": {"gatewayClassName": "pingsix", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
            }),
        );
        let mut route = route(0, "/", 1);
        route["metadata"]["name"] = json!(format!("of-{number}"));
        route["spec"]["parentRefs"][0]["name"] = json!(name);
        apply::<pingsix_translate::snapshot::HttpRoute>(&mut reconciler, route);
    }
    reconciler
}

fn shared_service(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("an endpoint of a Service of many Gateways, all of them");
    for gateways in [30, 300] {
        let mut reconciler = sharing(gateways);
        let owners: Vec<ObjectKey> = reconciler.ours().into_iter().collect();
        let mut turn = 0;
        let mut all = |reconciler: &mut Reconciler| {
            turn += 1;
            let address = ["10.0.0.2", "10.0.0.3"][turn % 2];
            apply::<pingsix_translate::snapshot::EndpointSlice>(reconciler, slice(0, address));
            let came = owners.iter().map(|owner| reconciler.reconcile(owner, Timestamp::UNIX_EPOCH));
            came.filter(|standing| matches!(standing, ReconcileOutcome::Current(_))).count()
        };
        assert_eq!(all(&mut reconciler), gateways + 1, "all of them are served");
        group.bench_function(BenchmarkId::from_parameter(gateways), |bencher| {
            bencher.iter(|| black_box(all(&mut reconciler)));
        });
    }
    group.finish();
}

criterion_group!(benches, one_change, one_change_of_a_class, shared_service);
criterion_main!(benches);
