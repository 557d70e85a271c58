//! SecurityPolicies whose Secrets have no answer yet: no request reaches a backend without the policy in the meantime.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pingsix_translate::ObjectName;
use serde_json::Value;

use super::*;

const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

pub(super) fn named(name: &str, version: u32, rest: &Value) -> Value {
    let mut object = rest.clone();
    object["metadata"] = json!({
        "name": name, "namespace": "infra", "resourceVersion": version.to_string(), "generation": version,
    });
    object
}

pub(super) fn plane() -> DataPlaneKey {
    DataPlaneKey::Gateway { gateway: ObjectName::new("infra", "web"), port: None }
}

fn plane_of_class() -> DataPlaneKey {
    DataPlaneKey::Ingress { class: "web".into(), port: None }
}

/// A Gateway, an IngressClass and a Service, all answered.
pub(super) fn follower() -> Follower {
    let mut follower = Follower::new();
    apply(&mut follower, Kind::GatewayClass, class());
    let listeners = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
    let spec = json!({"gatewayClassName": "pingsix", "listeners": listeners});
    apply(&mut follower, Kind::Gateway, named("web", 1, &json!({"spec": spec})));
    let controller = json!({"controller": "pingsix.io/gateway-controller"});
    let class = json!({"metadata": {"name": "web", "resourceVersion": "1"}, "spec": controller});
    apply(&mut follower, Kind::IngressClass, class);
    apply(&mut follower, Kind::Service, named("cart", 1, &json!({"spec": {"ports": [{"port": 80}]}})));
    let slice = json!({
        "metadata": {"labels": {"kubernetes.io/service-name": "cart"}},
        "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.0.0.1"]}],
    });
    let mut slice = slice;
    slice["metadata"]["name"] = json!("cart");
    slice["metadata"]["namespace"] = json!("infra");
    slice["metadata"]["resourceVersion"] = json!("1");
    apply(&mut follower, Kind::EndpointSlice, slice);
    follower
}

/// HTTPRoute `infra/<name>` for `a.test` and the path of its name.
pub(super) fn add_route(follower: &mut Follower, name: &str) {
    let path = json!({"path": {"type": "PathPrefix", "value": format!("/{name}")}});
    let rules = json!([{"matches": [path], "backendRefs": [{"name": "cart", "port": 80}]}]);
    let spec = json!({"parentRefs": [{"name": "web"}], "hostnames": ["a.test"], "rules": rules});
    apply(follower, Kind::HttpRoute, named(name, 1, &json!({"spec": spec})));
}

/// Ingress `infra/<name>` for the path of its name.
fn add_ingress(follower: &mut Follower, name: &str) {
    let backend = json!({"service": {"name": "cart", "port": {"number": 80}}});
    let paths = json!([{"path": format!("/{name}"), "pathType": "Prefix", "backend": backend}]);
    let spec = json!({"ingressClassName": "web", "rules": [{"host": "a.test", "http": {"paths": paths}}]});
    apply(follower, Kind::Ingress, named(name, 1, &json!({"spec": spec})));
}

/// SecurityPolicy `infra/<name>` for these objects, with the keys of a Secret.
fn policy(name: &str, version: u32, (group, kind, targets): (&str, &str, &[&str]), secret: &str) -> Value {
    let targets: Vec<Value> =
        targets.iter().map(|name| json!({"group": group, "kind": kind, "name": name})).collect();
    let keys = json!({"credentialRefs": [{"name": secret}]});
    named(name, version, &json!({"spec": {"targetRefs": targets, "apiKeyAuth": keys}}))
}

fn add_secret(follower: &mut Follower, name: &str, key: &str) {
    let data = json!({"alice": BASE64_STANDARD.encode(key)});
    apply(follower, Kind::Secret, named(name, 1, &json!({"data": data})));
    let owners = follower.reconciler.answered(ObjectKey::new(Kind::Secret, "infra", name));
    follower.reconcile(owners);
}

/// The treatment of requests for a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Becomes {
    NotFound,
    Open,
    Closed,
    /// The data plane accepts one of these keys.
    Keys(String),
}

pub(super) fn becomes(follower: &Follower, plane: &DataPlaneKey, path: &str) -> Becomes {
    let held: BTreeMap<&String, Value> =
        follower.held[plane].iter().map(|(key, text)| (key, serde_json::from_str(text).unwrap())).collect();
    let pattern = format!("/{path}");
    let has_pattern = |route: &&Value| {
        let uris = route["uris"].as_array().into_iter().flatten();
        uris.chain([&route["uri"]]).any(|uri| *uri == *pattern)
    };
    let routes = held.iter().filter(|(key, _)| key.starts_with("routes/")).map(|(_, route)| route);
    let Some(route) = routes.filter(has_pattern).max_by_key(|route| route["priority"].as_u64()) else {
        return Becomes::NotFound;
    };
    if route["service_id"] == "status-500" {
        return Becomes::Closed;
    }
    match route["service_id"].as_str() {
        None => Becomes::Open,
        Some(id) => {
            let service = &held[&format!("services/{id}")];
            Becomes::Keys(service["plugins"]["key-auth"]["keys"].to_string())
        }
    }
}

const ROUTES: (&str, &str, &[&str]) = (GATEWAY_GROUP, "HTTPRoute", &["pay"]);

#[test]
fn a_new_route_with_a_policy_is_closed_until_its_secret_is_known() {
    let mut follower = follower();
    add_route(&mut follower, "help");
    apply(&mut follower, Kind::SecurityPolicy, policy("keys", 1, ROUTES, "keys"));
    add_route(&mut follower, "pay");
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Closed);
    assert_eq!(becomes(&follower, &plane(), "help"), Becomes::Open);
    add_secret(&mut follower, "keys", "k1");
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Keys("[\"k1\"]".to_owned()));
    assert_eq!(becomes(&follower, &plane(), "help"), Becomes::Open);
}

#[test]
fn a_new_ingress_with_a_policy_is_closed_until_its_secret_is_known() {
    let mut follower = follower();
    add_ingress(&mut follower, "help");
    let of_ingress = policy("keys", 1, ("networking.k8s.io", "Ingress", &["pay"]), "keys");
    apply(&mut follower, Kind::SecurityPolicy, of_ingress);
    add_ingress(&mut follower, "pay");
    assert_eq!(becomes(&follower, &plane_of_class(), "pay"), Becomes::Closed);
    assert_eq!(becomes(&follower, &plane_of_class(), "help"), Becomes::Open);
    add_secret(&mut follower, "keys", "k1");
    assert_eq!(becomes(&follower, &plane_of_class(), "pay"), Becomes::Keys("[\"k1\"]".to_owned()));
}

#[test]
fn a_policy_takes_over_from_another_without_opening_the_route() {
    let mut follower = follower();
    add_route(&mut follower, "pay");
    apply(&mut follower, Kind::SecurityPolicy, policy("old", 1, ROUTES, "old"));
    add_secret(&mut follower, "old", "k1");
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Keys("[\"k1\"]".to_owned()));
    // The other policy comes and the old one goes before the owner is reconciled.
    let mut owners = BTreeSet::new();
    let new = policy("new", 1, ROUTES, "new");
    owners
        .extend(follower.reconciler.apply(event_of(Kind::SecurityPolicy, watcher::Event::Apply(new))).owners);
    let old = policy("old", 1, ROUTES, "old");
    owners.extend(
        follower.reconciler.apply(event_of(Kind::SecurityPolicy, watcher::Event::Delete(old))).owners,
    );
    follower.reconcile(owners);
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Closed);
    add_secret(&mut follower, "new", "k2");
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Keys("[\"k2\"]".to_owned()));
}

#[test]
fn a_policy_without_new_targets_stays_while_its_next_secret_is_unknown() {
    let mut follower = follower();
    add_route(&mut follower, "pay");
    add_route(&mut follower, "help");
    apply(&mut follower, Kind::SecurityPolicy, policy("keys", 1, ROUTES, "old"));
    add_secret(&mut follower, "old", "k1");
    apply(&mut follower, Kind::SecurityPolicy, policy("keys", 2, ROUTES, "new"));
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Keys("[\"k1\"]".to_owned()));
    add_secret(&mut follower, "new", "k2");
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Keys("[\"k2\"]".to_owned()));
    let both = (GATEWAY_GROUP, "HTTPRoute", &["pay", "help"][..]);
    apply(&mut follower, Kind::SecurityPolicy, policy("keys", 3, both, "third"));
    for path in ["pay", "help"] {
        assert_eq!(becomes(&follower, &plane(), path), Becomes::Closed, "{path}");
    }
    add_secret(&mut follower, "third", "k3");
    for path in ["pay", "help"] {
        assert_eq!(becomes(&follower, &plane(), path), Becomes::Keys("[\"k3\"]".to_owned()), "{path}");
    }
}
