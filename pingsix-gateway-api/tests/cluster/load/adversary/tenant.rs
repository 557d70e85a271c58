//! A tenant that makes the most harmful objects as fast as possible, within the API server's validation.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use pingsix_translate::Kind;
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::super::objects::secret;
use crate::test_env::{objects, shop};

/// The number of objects of each sort at a time.
const OBJECTS_PER_SORT: usize = 3;

/// The interval of actions.
const ACTION_INTERVAL: Duration = Duration::from_millis(20);

/// The number of actions by sort; the ones that the API server refused are under `refused`.
pub(super) type ActionCounts = BTreeMap<&'static str, usize>;

/// A tenant with a namespace.
pub(super) struct Tenant {
    pub(super) client: Client,
    pub(super) namespace: &'static str,
    /// Whether its objects belong to the controller's classes and Gateway. Otherwise they cost the API server as much,
    /// and belong to nobody.
    pub(super) is_served: bool,
    pub(super) rng: StdRng,
}

/// An action on objects.
type Action = fn(&mut StdRng, &str) -> Vec<(Kind, Value)>;

const ACTIONS: [(&str, Action); 12] = [
    ("wide routes", wide_routes),
    ("long rules", long_rules),
    ("many names", many_names),
    ("filters", filters),
    ("forbidden routes", forbidden_routes),
    ("forbidden listeners", forbidden_listeners),
    ("odd certificates", odd_certificates),
    ("long Ingresses", long_ingresses),
    ("many references", many_references),
    ("many endpoints", many_endpoints),
    ("a Gateway of its own", own_gateway),
    ("odd Services", odd_services),
];

impl Tenant {
    /// Acts until it is stopped.
    pub(super) async fn run(mut self, stop: CancellationToken) -> ActionCounts {
        let mut actions = ActionCounts::new();
        while stop.run_until_cancelled(sleep(ACTION_INTERVAL)).await.is_some() {
            if self.rng.random_ratio(1, 20) {
                self.delete_routes().await;
                *actions.entry("deletions").or_default() += 1;
                continue;
            }
            let (name, deed) = *ACTIONS.choose(&mut self.rng).unwrap();
            for (kind, object) in deed(&mut self.rng, self.namespace) {
                let is_done = self.put(kind, object).await;
                *actions.entry(if is_done { name } else { "refused" }).or_default() += 1;
            }
        }
        actions
    }

    /// Creates or replaces an object. Returns whether the API server accepted it.
    async fn put(&self, kind: Kind, mut object: Value) -> bool {
        if !self.is_served {
            leave(&mut object);
        }
        let version = match kind.group() {
            "" => kind.version().to_owned(),
            group => format!("{group}/{}", kind.version()),
        };
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind.as_str());
        object["metadata"]["namespace"] = json!(self.namespace);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let put = PatchParams::apply("hostile").force();
        objects(&self.client, kind, self.namespace).patch(&name, &put, &Patch::Apply(&object)).await.is_ok()
    }

    async fn delete_routes(&self) {
        let routes = objects(&self.client, Kind::HttpRoute, self.namespace);
        let _ = routes.delete_collection(&DeleteParams::default(), &kube::api::ListParams::default()).await;
    }
}

/// Moves an object to a Gateway and to classes of nobody.
fn leave(object: &mut Value) {
    let spec = &mut object["spec"];
    for field in ["gatewayClassName", "ingressClassName"] {
        if spec.get(field).is_some() {
            spec[field] = json!("nobody");
        }
    }
    if spec.get("parentRef").is_some() {
        spec["parentRef"]["name"] = json!("nobody");
    }
    for parent in spec.get_mut("parentRefs").and_then(Value::as_array_mut).into_iter().flatten() {
        parent["name"] = json!("nobody");
    }
}

fn name(rng: &mut StdRng, what: &str) -> String {
    format!("{what}-{}", rng.random_range(0..OBJECTS_PER_SORT))
}

fn route(rng: &mut StdRng, what: &str, hostnames: &[String], rules: &Value) -> (Kind, Value) {
    let mut route = json!({
        "metadata": {"name": name(rng, what)},
        "spec": {"parentRefs": [{"namespace": "default", "name": "web"}], "rules": rules},
    });
    if !hostnames.is_empty() {
        route["spec"]["hostnames"] = json!(hostnames);
    }
    (Kind::HttpRoute, route)
}

fn to_own_service() -> Value {
    json!([{"name": "web", "port": 80}])
}

/// Hostnames that cover those of the victim at the listener that both have.
fn around(rng: &mut StdRng) -> Vec<String> {
    let wide: [&[&str]; 4] = [&[], &["*.example"], &["*.shop.example", "*.test"], &["hostile.example"]];
    wide.choose(rng).unwrap().iter().map(|name| (*name).to_owned()).collect()
}

fn wide_routes(rng: &mut StdRng, _: &str) -> Vec<(Kind, Value)> {
    let names = around(rng);
    vec![
        route(rng, "all", &[], &json!([{"backendRefs": to_own_service()}])),
        route(
            rng,
            "wide",
            &names,
            &json!([{"matches": [{"path": {"type": "PathPrefix", "value": "/x"}},
            {"path": {"type": "Exact", "value": "/deep/er"}}], "backendRefs": to_own_service()}]),
        ),
    ]
}

/// 64 matches by 16 headers of a length that makes an object of a megabyte at most.
fn long_rules(rng: &mut StdRng, _: &str) -> Vec<(Kind, Value)> {
    let value = "v".repeat(rng.random_range(1..900));
    let matches: Vec<Value> = (0..64)
        .map(|number| {
            let headers: Vec<Value> = (0..16)
                .map(|header| json!({"name": format!("x-{header}"), "value": format!("{number}-{value}")}))
                .collect();
            json!({"path": {"type": "PathPrefix", "value": "/x"}, "headers": headers})
        })
        .collect();
    let names = around(rng);
    vec![route(rng, "long", &names, &json!([{"matches": matches, "backendRefs": to_own_service()}]))]
}

/// 16 names by 16 rules.
fn many_names(rng: &mut StdRng, _: &str) -> Vec<(Kind, Value)> {
    let part: u32 = rng.random();
    let names: Vec<String> = (0..16).map(|name| format!("n{name}-{part}.hostile.example")).collect();
    let rules: Vec<Value> = (0..16)
        .map(|rule| {
            let path = format!("/{rule}/{}", "p".repeat(rng.random_range(1..1000)));
            json!({"matches": [{"path": {"type": "PathPrefix", "value": path}}], "backendRefs": to_own_service()})
        })
        .collect();
    vec![route(rng, "names", &names, &json!(rules))]
}

/// Filters that cannot be combined with those of other tenants in one list, under conditions.
fn filters(rng: &mut StdRng, _: &str) -> Vec<(Kind, Value)> {
    let set = json!([{"name": "x-marked", "value": rng.random_range(0..9).to_string()}]);
    let filter = *["RequestHeaderModifier", "ResponseHeaderModifier"].choose(rng).unwrap();
    let field =
        if filter == "RequestHeaderModifier" { "requestHeaderModifier" } else { "responseHeaderModifier" };
    let conditional = json!({
        "matches": [{"headers": [{"name": "user-agent", "value": "load"}]}],
        "filters": [{"type": filter, field: {"set": set}}], "backendRefs": to_own_service(),
    });
    let elsewhere =
        json!({"filters": [{"type": "RequestRedirect", "requestRedirect": {"hostname": "hostile.test"}}]});
    let names = around(rng);
    vec![route(rng, "filters", &names, &json!([conditional, elsewhere]))]
}

/// For the victim's own listeners and hostnames, and to its Services.
fn forbidden_routes(rng: &mut StdRng, _: &str) -> Vec<(Kind, Value)> {
    let index = rng.random_range(0..6);
    let names: Vec<String> = ["backend", "matches", "endpoints"]
        .iter()
        .map(|name| format!("{name}-{index}.victim.test"))
        .collect();
    let mut at_own_listener = route(rng, "forbidden", &names, &json!([{"backendRefs": to_own_service()}]));
    at_own_listener.1["spec"]["parentRefs"] = json!([
        {"namespace": "default", "name": "web", "sectionName": "own"},
        {"namespace": "default", "name": "web", "sectionName": "safe"},
        {"namespace": "default", "name": "web"},
    ]);
    let to_victim = json!([{"backendRefs": [{"namespace": "default", "name": "a", "port": 80}]}]);
    vec![at_own_listener, route(rng, "foreign", &["foreign.example".to_owned()], &to_victim)]
}

/// 64 listeners that the Gateway does not admit, with certificates of others and ones that never were.
fn forbidden_listeners(rng: &mut StdRng, _: &str) -> Vec<(Kind, Value)> {
    let part: u32 = rng.random();
    let listeners: Vec<Value> = (0..64)
        .map(|index| {
            let hostname =
                if index == 0 { "safe.victim.test".to_owned() } else { format!("l{index}.victim.test") };
            json!({
                "name": format!("l{index}"), "port": 443, "protocol": "HTTPS", "hostname": hostname,
                "tls": {"certificateRefs": [
                    {"name": format!("absent-{part}-{index}")}, {"namespace": "default", "name": "safe"}]},
            })
        })
        .collect();
    let parent = json!({"namespace": "default", "name": "web"});
    vec![(
        Kind::ListenerSet,
        json!({"metadata": {"name": name(rng, "set")}, "spec": {"parentRef": parent, "listeners": listeners}}),
    )]
}

/// Secrets that are valid, mismatched, with an outdated algorithm, or behind much text.
fn odd_certificates(rng: &mut StdRng, _: &str) -> Vec<(Kind, Value)> {
    let names: Vec<String> =
        (0..rng.random_range(1..300)).map(|name| format!("n{name}.hostile.example")).collect();
    let pair = rcgen::generate_simple_self_signed(names).unwrap();
    let (_, other) = shop::pair("other.hostile.example");
    let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
    let dsa = "-----BEGIN DSA PRIVATE KEY-----\nAAAA\n-----END DSA PRIVATE KEY-----\n";
    let (certificate, key) = match rng.random_range(0..5) {
        0 => (certificate, other),
        1 => (certificate, dsa.to_owned()),
        2 => (format!("{}\n{certificate}", "comment ".repeat(80_000)), key),
        3 => (certificate.repeat(100), key),
        _ => (certificate, key),
    };
    vec![(Kind::Secret, secret(&name(rng, "odd"), &certificate, &key))]
}

fn ingress(rng: &mut StdRng, what: &str, mut spec: Value) -> (Kind, Value) {
    spec["ingressClassName"] = json!("pingsix");
    (Kind::Ingress, json!({"metadata": {"name": name(rng, what)}, "spec": spec}))
}

fn long_ingresses(rng: &mut StdRng, _: &str) -> Vec<(Kind, Value)> {
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let paths: Vec<Value> = (0..rng.random_range(1..5000))
        .map(|path| json!({"path": format!("/{path}"), "pathType": "Prefix", "backend": backend}))
        .collect();
    vec![ingress(rng, "long", json!({"defaultBackend": backend, "rules": [{"http": {"paths": paths}}]}))]
}

/// Names of absent Secrets, others each time.
fn many_references(rng: &mut StdRng, _: &str) -> Vec<(Kind, Value)> {
    let part: u32 = rng.random();
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let mut tls: Vec<Value> = (0..rng.random_range(1..1000))
        .map(|index| json!({"hosts": [format!("n{index}.hostile.example")], "secretName": format!("absent-{part}-{index}")}))
        .collect();
    tls.extend(
        (0..OBJECTS_PER_SORT)
            .map(|index| json!({"hosts": ["o.hostile.example"], "secretName": format!("odd-{index}")})),
    );
    vec![ingress(rng, "references", json!({"defaultBackend": backend, "tls": tls}))]
}

/// The endpoints of a Service of its own, as many as a slice may have.
fn many_endpoints(rng: &mut StdRng, _: &str) -> Vec<(Kind, Value)> {
    let endpoints: Vec<Value> = (0..rng.random_range(1..1000))
        .map(|index| json!({"addresses": [format!("198.19.{}.{}", index / 250, index % 250 + 1)]}))
        .collect();
    let labels = json!({"kubernetes.io/service-name": "web-2"});
    vec![(
        Kind::EndpointSlice,
        json!({"metadata": {"name": name(rng, "many"), "labels": labels}, "addressType": "IPv4",
            "ports": [{"name": "web", "port": 80}], "endpoints": endpoints}),
    )]
}

/// A data plane of its own with invalid certificates.
fn own_gateway(rng: &mut StdRng, namespace: &str) -> Vec<(Kind, Value)> {
    let listeners: Vec<Value> = (0..rng.random_range(1..64))
        .map(|index| {
            json!({
                "name": format!("l{index}"), "port": 443, "protocol": "HTTPS", "hostname": format!("l{index}.example"),
                "tls": {"certificateRefs": [{"name": name(rng, "odd")}]},
            })
        })
        .collect();
    let gateway =
        json!({"metadata": {"name": "own"}, "spec": {"gatewayClassName": "pingsix", "listeners": listeners}});
    let mut route = route(rng, "own", &[], &json!([{"backendRefs": to_own_service()}]));
    route.1["spec"]["parentRefs"] = json!([{"namespace": namespace, "name": "own"}]);
    vec![(Kind::Gateway, gateway), route]
}

/// A Service that becomes an `ExternalName` at times, and a policy for it.
fn odd_services(rng: &mut StdRng, _: &str) -> Vec<(Kind, Value)> {
    let mut service =
        json!({"metadata": {"name": "web-2"}, "spec": {"ports": [{"name": "web", "port": 80}]}});
    if rng.random() {
        service["spec"]["type"] = json!("ExternalName");
        service["spec"]["externalName"] = json!("hostile.example");
    }
    let policy = json!({"metadata": {"name": "tls"}, "spec": {
        "targetRefs": [{"group": "", "kind": "Service", "name": "web-2"}],
        "validation": {"wellKnownCACertificates": "System", "hostname": "hostile.example"}}});
    let to_both = json!([{"backendRefs": [{"name": "web", "port": 80}, {"name": "web-2", "port": 80}]}]);
    let junk = json!({"metadata": {"name": "junk"}, "data": {"tls.crt": BASE64_STANDARD.encode("junk")}});
    vec![
        (Kind::Service, service),
        (Kind::BackendTlsPolicy, policy),
        (Kind::Secret, junk),
        route(rng, "both", &["both.hostile.example".to_owned()], &to_both),
    ]
}
