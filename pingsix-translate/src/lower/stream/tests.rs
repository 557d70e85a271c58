//! From routes for TCP, UDP and TLS to documents and verdicts.

use serde_json::{Value, json};

mod budget;
mod guard;

use std::sync::Arc;

use super::*;
use crate::fixture::pem::chain;
use crate::fixture::{
    add_certificate, add_listener_set, add_route, add_service, allow_listener_sets, gateway, https, object,
    run,
};
use crate::model::{Budget, ConditionType, ObjectKey, Reason, StreamProvenance};
use crate::pipeline::Translation;
use crate::snapshot::{Object, Objects};
use crate::status::{ConditionStatus, Conditions};
use crate::stream::{
    Arrival, Destination, RejectReason, StreamConfig, StreamKey, StreamKind, StreamProtocol, StreamTarget,
    StreamUpstream, TlsMode, validate,
};

/// Listeners for every protocol, and Services `web` and `other` with TCP port 80, `dns` with TCP and UDP port 53, and
/// `idle` without endpoints.
fn world() -> Objects {
    let passthrough = json!({"mode": "Passthrough"});
    let mut objects = gateway(&json!([
        {"name": "tcp", "port": 5432, "protocol": "TCP"},
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "any", "port": 443, "protocol": "TLS", "tls": passthrough},
        {"name": "test", "port": 443, "protocol": "TLS", "hostname": "*.a.test", "tls": passthrough},
        {"name": "ended", "port": 8443, "protocol": "TLS", "hostname": "*.a.test",
            "tls": {"certificateRefs": [{"name": "one"}, {"name": "two"}]}},
        {"name": "http", "port": 80, "protocol": "HTTP"},
    ]));
    add_service(&mut objects, "web");
    add_service(&mut objects, "other");
    for name in ["dns", "idle"] {
        let ports = json!([
            {"name": "tcp", "port": 53, "protocol": "TCP", "appProtocol": "nobody.test/knows"},
            {"name": "udp", "port": 53, "protocol": "UDP"},
            {"name": "only-udp", "port": 54, "protocol": "UDP"},
        ]);
        objects.insert(Object::Service(object(json!({
            "metadata": {"namespace": "infra", "name": name}, "spec": {"ports": ports}}))));
    }
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"namespace": "infra", "name": "dns", "labels": {"kubernetes.io/service-name": "dns"}},
        "addressType": "IPv6", "endpoints": [{"addresses": ["fd00::1"]}],
        "ports": [{"name": "tcp", "port": 5353}, {"name": "udp", "port": 5354, "protocol": "UDP"}]}))));
    let [leaf, intermediate, _] = chain(&["x.a.test"]);
    for name in ["one", "two"] {
        let cert = format!("{}{}", leaf.cert, intermediate.cert);
        add_certificate(&mut objects, name, &crate::fixture::pem::Pair { cert, key: leaf.key.clone() });
    }
    objects
}

/// Adds a route of a kind, of a year, with these backendRefs.
fn add(objects: &mut Objects, kind: Kind, (name, year): (&str, u32), backends: Value, more: Value) {
    let rule: serde_json::Map<String, Value> = [("backendRefs".to_owned(), backends)].into_iter().collect();
    let mut spec = json!({"parentRefs": [{"name": "public"}], "rules": [rule]});
    if let Value::Object(more) = more {
        spec.as_object_mut().unwrap().extend(more);
    }
    let value = json!({
        "metadata": {"namespace": "infra", "name": name, "generation": 3,
            "creationTimestamp": format!("{year}-01-01T00:00:00Z")},
        "spec": spec,
    });
    objects.insert(if kind == Kind::TcpRoute {
        Object::TcpRoute(object(value))
    } else if kind == Kind::UdpRoute {
        Object::UdpRoute(object(value))
    } else {
        Object::TlsRoute(object(value))
    });
}

fn backend(name: &str, port: u16) -> Value {
    json!([{"name": name, "port": port}])
}

fn translate(objects: &Objects) -> (Translation, StreamPlane) {
    translate_within(objects, Budget::default())
}

fn translate_within(objects: &Objects, budget: Budget) -> (Translation, StreamPlane) {
    let translation = run(objects, &Options { stream: true, budget, ..Options::default() });
    let (key, plane) = translation.stream_planes.iter().next().unwrap();
    assert_eq!(key.to_string(), "stream/infra/public");
    assert_eq!(validate(&plane.config), []);
    let documents: Vec<&StreamKey> = plane.config.iter().map(|(key, _)| key).collect();
    assert_eq!(documents, plane.provenance.keys().collect::<Vec<_>>());
    let bytes = plane.config.size_in_bytes("/pingsix-stream/infra/public");
    assert_eq!(plane.size, Size { bytes, matcher_entries: plane.config.matcher_entries() });
    let plane = plane.clone();
    (translation, plane)
}

/// The targets of a connection with their weights, upstreams by their first node.
fn targets_of(config: &StreamConfig, port: u16, arrival: Arrival<'_>) -> Vec<(String, u32)> {
    let Some((_, route)) = config.route_for(port, arrival) else { return Vec::new() };
    let target = |target: &StreamTarget| {
        let to = match &target.to {
            Destination::Upstream(id) => {
                let StreamUpstream { nodes, .. } = config.upstream(id).unwrap();
                nodes.keys().next().unwrap().clone()
            }
            Destination::Reject(why) => serde_json::to_value(why).unwrap().as_str().unwrap().to_owned(),
        };
        (to, target.weight)
    };
    route.targets.iter().map(target).collect()
}

fn one(to: &str) -> Vec<(String, u32)> {
    vec![(to.to_owned(), 1)]
}

/// A condition of the first parent, as `True Reason`.
fn condition(translation: &Translation, kind: Kind, name: &str, condition: ConditionType) -> String {
    let verdict = &translation.verdicts.routes[&ObjectKey::new(kind, "infra", name)];
    let conditions: &Conditions = &verdict.parents[0].conditions;
    let condition = conditions.get(condition).unwrap();
    format!("{} {}", condition.status.as_str(), condition.reason)
}

#[test]
fn the_oldest_route_of_a_port_gets_everything_and_all_are_accepted() {
    let mut objects = world();
    add(&mut objects, Kind::TcpRoute, ("b", 2026), backend("web", 80), json!({}));
    add(&mut objects, Kind::TcpRoute, ("c", 2025), backend("dns", 53), json!({}));
    add(&mut objects, Kind::TcpRoute, ("a", 2026), backend("other", 80), json!({}));
    add(&mut objects, Kind::UdpRoute, ("a", 2026), backend("dns", 53), json!({}));
    let (translation, plane) = translate(&objects);
    assert_eq!(targets_of(&plane.config, 5432, Arrival::Tcp), one("[fd00::1]:5353"));
    assert_eq!(targets_of(&plane.config, 53, Arrival::Udp), one("[fd00::1]:5354"));
    assert_eq!(targets_of(&plane.config, 53, Arrival::Tcp), []);
    for name in ["a", "b", "c"] {
        assert_eq!(condition(&translation, Kind::TcpRoute, name, ConditionType::Accepted), "True Accepted");
    }
    let gateway = translation.verdicts.gateway.as_ref().unwrap();
    let counts: Vec<i32> = gateway.listeners.iter().map(|listener| listener.attached_routes).collect();
    assert_eq!(counts, [3, 1, 0, 0, 0, 0]);
    let planes: Vec<String> =
        gateway.listeners.iter().map(|listener| listener.data_plane.as_ref().unwrap().to_string()).collect();
    assert_eq!(planes[0], "stream/infra/public");
    assert_eq!(planes[5], "infra/public");
    let shadowed: Vec<String> = translation
        .verdicts
        .problems
        .iter()
        .filter(|problem| problem.reason == Reason::Shadowed)
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        shadowed,
        ["a", "b"].map(|name| format!(
            "TCPRoute infra/{name}: spec.parentRefs: All traffic of listener \"tcp\" goes to TCPRoute infra/c, which is \
             older."
        ))
    );
    let (key, _) = plane.config.route_for(5432, Arrival::Tcp).unwrap();
    let StreamProvenance::Route { owner, listener, origin, shadowed } = &plane.provenance[key] else {
        panic!("{:?}", plane.provenance)
    };
    assert_eq!((owner.to_string().as_str(), listener.as_str()), ("Gateway infra/public", "tcp"));
    assert_eq!(origin.object.to_string(), "TCPRoute infra/c");
    assert_eq!(shadowed.len(), 2);
}

#[test]
fn equal_ages_are_decided_by_name() {
    let mut objects = world();
    add(&mut objects, Kind::UdpRoute, ("b", 2026), backend("idle", 53), json!({}));
    add(&mut objects, Kind::UdpRoute, ("a", 2026), backend("dns", 53), json!({}));
    assert_eq!(targets_of(&translate(&objects).1.config, 53, Arrival::Udp), one("[fd00::1]:5354"));
}

#[test]
fn a_share_that_leads_nowhere_is_rejected_and_keeps_its_weight() {
    let mut objects = world();
    let backends = json!([
        {"name": "web", "port": 80, "weight": 6},
        {"name": "missing", "port": 80, "weight": 2},
        {"name": "idle", "port": 53, "weight": 4},
        {"name": "web", "port": 81, "weight": 2},
        {"name": "dns", "port": 54, "weight": 2},
        {"name": "web", "port": 80, "namespace": "app", "weight": 2},
        {"name": "web", "port": 80, "kind": "Bucket", "weight": 2},
        {"name": "other", "port": 80, "weight": 0},
    ]);
    add(&mut objects, Kind::TcpRoute, ("a", 2026), backends, json!({}));
    let (translation, plane) = translate(&objects);
    let shares = [("10.0.0.1:8080".to_owned(), 3), ("invalid".to_owned(), 5), ("no_endpoints".to_owned(), 2)];
    assert_eq!(targets_of(&plane.config, 5432, Arrival::Tcp), shares);
    assert_eq!(condition(&translation, Kind::TcpRoute, "a", ConditionType::Accepted), "True Accepted");
    let resolved = condition(&translation, Kind::TcpRoute, "a", ConditionType::ResolvedRefs);
    assert_eq!(resolved, "False BackendNotFound");
    let messages: Vec<String> = translation.verdicts.problems.iter().map(ToString::to_string).collect();
    for text in [
        "TCPRoute infra/a: spec.rules[0].backendRefs[4].port: Port 54 of Service infra/dns is not a TCP port.",
        "Service infra/idle: spec.ports: Service infra/idle has no endpoint that takes traffic on port 53; its share of \
         connections is refused.",
    ] {
        assert!(messages.iter().any(|message| message == text), "{text} in {messages:?}");
    }
}

#[test]
fn udp_needs_a_udp_port_and_names_are_not_resolved() {
    let mut objects = world();
    add(&mut objects, Kind::UdpRoute, ("a", 2026), backend("web", 80), json!({}));
    let (translation, plane) = translate(&objects);
    assert_eq!(targets_of(&plane.config, 53, Arrival::Udp), one("invalid"));
    let resolved = condition(&translation, Kind::UdpRoute, "a", ConditionType::ResolvedRefs);
    assert_eq!(resolved, "False UnsupportedProtocol");

    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": "dns"},
        "spec": {"type": "ExternalName", "externalName": "a.test", "ports": [{"port": 53, "protocol": "UDP"}]}}))));
    add(&mut objects, Kind::UdpRoute, ("a", 2026), backend("dns", 53), json!({}));
    let (translation, plane) = translate(&objects);
    assert_eq!(targets_of(&plane.config, 53, Arrival::Udp), one("invalid"));
    let text = "names are not resolved";
    assert!(translation.verdicts.problems.iter().any(|problem| problem.message.contains(text)));
}

#[test]
fn a_route_that_cannot_be_honoured_keeps_its_connections_and_rejects_them() {
    let rule = json!({"backendRefs": backend("web", 80)});
    for (rules, field) in [
        (json!([rule, rule]), "spec.rules: A TCPRoute has exactly one rule, not 2."),
        (json!([]), "spec.rules: A TCPRoute has exactly one rule, not 0."),
        (
            json!([{"backendRefs": [{"name": "web", "port": 80, "weight": -1}]}]),
            "spec.rules[0].backendRefs[0].weight: Weight -1 is not between 0 and 1000000.",
        ),
    ] {
        let mut objects = world();
        add(&mut objects, Kind::TcpRoute, ("a", 2025), json!([]), json!({ "rules": rules }));
        add(&mut objects, Kind::TcpRoute, ("b", 2026), backend("web", 80), json!({}));
        let (translation, plane) = translate(&objects);
        assert_eq!(targets_of(&plane.config, 5432, Arrival::Tcp), one("invalid"), "{field}");
        assert_eq!(
            condition(&translation, Kind::TcpRoute, "a", ConditionType::Accepted),
            "False UnsupportedValue"
        );
        let verdict = &translation.verdicts.routes[&ObjectKey::new(Kind::TcpRoute, "infra", "a")];
        let message = &verdict.parents[0].conditions.get(ConditionType::Accepted).unwrap().message;
        assert_eq!(message, field);
    }
}

#[test]
fn the_most_specific_server_name_wins_within_its_listener() {
    let mut objects = world();
    let on = |section: &str, hostnames: &[&str]| json!({"parentRefs": [{"name": "public", "sectionName": section}], "hostnames": hostnames});
    // Old, and wider than its listener.
    add(&mut objects, Kind::TlsRoute, ("wide", 2020), backend("web", 80), on("test", &["*.test"]));
    add(
        &mut objects,
        Kind::TlsRoute,
        ("own", 2026),
        backend("other", 80),
        on("test", &["*.a.test", "x.a.test"]),
    );
    // Its names belong to the narrower listener, to which it is not attached.
    add(&mut objects, Kind::TlsRoute, ("lost", 2020), backend("web", 80), on("any", &["y.a.test", "b.test"]));
    let mut dns = |name: &str, year: u32, host: &str| {
        add(&mut objects, Kind::TlsRoute, (name, year), backend("dns", 53), on("any", &[host]));
    };
    dns("old", 2021, "b.test");
    dns("deep", 2026, "*.c.test");
    let (translation, plane) = translate(&objects);
    let config = &plane.config;
    let (web, other, dns) = (one("10.0.0.1:8080"), one("10.0.0.1:8080"), one("[fd00::1]:5353"));
    let owner = |name: &str| {
        let (key, _) = config.route_for(443, Arrival::Tls(name))?;
        match &plane.provenance[key] {
            StreamProvenance::Route { origin, .. } => Some(origin.object.name.name.to_string()),
            StreamProvenance::Guard { .. } => Some("nobody".to_owned()),
            StreamProvenance::Backend { .. }
            | StreamProvenance::Certificate { .. }
            | StreamProvenance::Front { .. }
            | StreamProvenance::PingSix { .. }
            | StreamProvenance::Authority { .. } => None,
        }
    };
    for (name, expected) in [
        ("x.a.test", Some("own")),
        ("y.a.test", Some("own")),
        ("b.test", Some("lost")),
        ("d.c.test", Some("deep")),
        ("c.test", None),
        ("a.test", None),
    ] {
        assert_eq!(owner(name).as_deref(), expected, "{name}");
    }
    assert_eq!(targets_of(config, 443, Arrival::Tls("x.a.test")), other);
    assert_eq!(targets_of(config, 443, Arrival::Tls("b.test")), web);
    assert_eq!(targets_of(config, 443, Arrival::Tls("d.c.test")), dns);
    let shadowed: Vec<String> = translation
        .verdicts
        .problems
        .iter()
        .filter(|problem| problem.reason == Reason::Shadowed)
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        shadowed,
        [
            "TLSRoute infra/old: spec.hostnames: On listener \"any\", connections for b.test go to TLSRoute infra/lost, \
             which is older or has a more specific hostname.",
            "TLSRoute infra/wide: spec.hostnames: On listener \"test\", connections for *.a.test go to TLSRoute \
             infra/own, which is older or has a more specific hostname.",
        ]
    );
}

#[test]
fn a_terminating_listener_gets_every_chain_once() {
    let mut objects = world();
    let hostnames =
        json!({"parentRefs": [{"name": "public", "port": 8443}], "hostnames": ["x.a.test", "*.y.a.test"]});
    add(&mut objects, Kind::TlsRoute, ("a", 2026), backend("web", 80), hostnames);
    let (translation, plane) = translate(&objects);
    for name in ["x.a.test", "z.y.a.test"] {
        let (_, route) = plane.config.route_for(8443, Arrival::Tls(name)).unwrap();
        assert_eq!((route.tls, route.ssl_ids.len()), (Some(TlsMode::Terminate), 2));
        let ssl = plane.config.ssl(&route.ssl_ids[0]).unwrap();
        assert_eq!(ssl.cert.matches("BEGIN CERTIFICATE").count(), 2, "the whole chain");
        let key = StreamKey::new(StreamKind::Ssl, &route.ssl_ids[0]);
        let StreamProvenance::Certificate { secret, references } = &plane.provenance[&key] else {
            panic!("{key}")
        };
        assert_eq!(secret.to_string(), "Secret infra/one");
        let fields: Vec<&str> = references.iter().map(|reference| reference.field.as_str()).collect();
        assert_eq!(fields, ["spec.listeners[4].tls.certificateRefs[0]"]);
    }
    let ssls = plane.config.iter().filter(|(key, _)| key.kind == StreamKind::Ssl);
    assert_eq!(ssls.count(), 2);
    let ended = &translation.verdicts.gateway.as_ref().unwrap().listeners[4];
    assert!(ended.conditions.get(ConditionType::Limited).is_none(), "{:?}", ended.conditions);
    assert!(
        translation.data_planes.values().all(|plane| plane.config.is_empty()),
        "PingSIX has no part in it"
    );
}

#[test]
fn a_tls_route_without_a_usable_hostname_serves_no_host() {
    for (hostnames, text) in [
        (json!([]), "spec.hostnames: A TLSRoute needs a hostname."),
        (json!(["10.0.0.1"]), "spec.hostnames[0]: \"10.0.0.1\" is not a hostname"),
    ] {
        let mut objects = world();
        add(&mut objects, Kind::TlsRoute, ("a", 2026), backend("web", 80), json!({ "hostnames": hostnames }));
        let (translation, plane) = translate(&objects);
        assert_eq!(
            plane
                .config
                .routes()
                .filter(|(_, route)| route.targets[0].to != Destination::Reject(RejectReason::NoRoute))
                .count(),
            0
        );
        let verdict = &translation.verdicts.routes[&ObjectKey::new(Kind::TlsRoute, "infra", "a")];
        let accepted = verdict.parents[0].conditions.get(ConditionType::Accepted).unwrap();
        assert_eq!(
            (accepted.status, accepted.reason),
            (ConditionStatus::False, Reason::NoMatchingListenerHostname)
        );
        assert!(accepted.message.contains(text), "{}", accepted.message);
    }
}

#[test]
fn kinds_attach_to_listeners_of_their_protocol_alone() {
    let mut objects = world();
    add_route(&mut objects, "h", &json!({"parentRefs": [{"name": "public", "sectionName": "tcp"}]}));
    add(
        &mut objects,
        Kind::TcpRoute,
        ("a", 2026),
        backend("web", 80),
        json!({"parentRefs": [{"name": "public", "sectionName": "dns"}]}),
    );
    add(
        &mut objects,
        Kind::TlsRoute,
        ("a", 2026),
        backend("web", 80),
        json!({"hostnames": ["a.test"], "parentRefs": [{"name": "public", "sectionName": "http"}]}),
    );
    let (translation, plane) = translate(&objects);
    for (kind, name) in [(Kind::HttpRoute, "h"), (Kind::TcpRoute, "a"), (Kind::TlsRoute, "a")] {
        let accepted = condition(&translation, kind, name, ConditionType::Accepted);
        assert_eq!(accepted, "False NotAllowedByListeners", "{kind}");
    }
    assert_eq!(plane.config.routes().filter(|(_, route)| route.protocol != StreamProtocol::Tls).count(), 0);
}

#[test]
fn documents_are_functions_of_their_own_attributes() {
    let mut objects = world();
    let hostnames = |names: &[&str]| json!({ "hostnames": names });
    add(&mut objects, Kind::TcpRoute, ("a", 2026), backend("web", 80), json!({}));
    add(&mut objects, Kind::TlsRoute, ("b", 2026), backend("web", 80), hostnames(&["b.test", "*.a.test"]));
    let before = translate(&objects).1.config;
    add(&mut objects, Kind::TlsRoute, ("c", 2020), backend("web", 80), hostnames(&["c.test"]));
    let after = translate(&objects).1.config;
    assert_eq!(after.len(), before.len() + 1);
    for (key, document) in before.iter() {
        assert_eq!(after.get(key), Some(document), "{key}");
    }
}

#[test]
fn a_gateway_that_is_not_accepted_has_an_empty_stream_plane() {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"namespace": "infra", "name": "public"},
        "spec": {"gatewayClassName": "pingsix", "addresses": [{"type": "Star", "value": "a"}],
            "listeners": [{"name": "tcp", "port": 5432, "protocol": "TCP"}]},
    }))));
    add_service(&mut objects, "web");
    add(&mut objects, Kind::TcpRoute, ("a", 2026), backend("web", 80), json!({}));
    let (translation, plane) = translate(&objects);
    assert!(plane.config.is_empty());
    assert!(translation.verdicts.gateway.unwrap().listeners[0].data_plane.is_none());
}

#[test]
fn listeners_of_listener_sets_have_places_of_the_same_gateway() {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"namespace": "infra", "name": "public"},
        "spec": {"gatewayClassName": "pingsix", "allowedListeners": {"namespaces": {"from": "Same"}},
            "listeners": [{"name": "db", "port": 5432, "protocol": "TCP"}]},
    }))));
    objects.insert(Object::ListenerSet(object(json!({
        "metadata": {"namespace": "infra", "name": "more"},
        "spec": {"parentRef": {"name": "public"}, "listeners": [{"name": "db", "port": 9000, "protocol": "TCP"}]},
    }))));
    add_service(&mut objects, "web");
    let parents = json!({"parentRefs": [{"name": "more", "kind": "ListenerSet"}]});
    for (name, year) in [("old", 2025), ("new", 2026)] {
        add(&mut objects, Kind::TcpRoute, (name, year), backend("web", 80), parents.clone());
    }
    let (translation, plane) = translate(&objects);
    assert_eq!(targets_of(&plane.config, 9000, Arrival::Tcp), one("10.0.0.1:8080"));
    assert_eq!(targets_of(&plane.config, 5432, Arrival::Tcp), []);
    let (key, _) = plane.config.route_for(9000, Arrival::Tcp).unwrap();
    let StreamProvenance::Route { owner, .. } = &plane.provenance[key] else { panic!("{key}") };
    assert_eq!(owner.to_string(), "ListenerSet infra/more");
    let text = "All traffic of listener \"db\" of ListenerSet infra/more goes to TCPRoute infra/old, which is older.";
    assert!(translation.verdicts.problems.iter().any(|problem| problem.message == text));
    let set = translation.verdicts.listener_sets.values().next().unwrap();
    assert_eq!(set.listeners[0].attached_routes, 2);
    assert_eq!(set.listeners[0].data_plane.as_ref().unwrap().to_string(), "stream/infra/public");
}

/// Adds a BackendTLSPolicy for Service `infra/web`, which PingSIX could honour.
fn add_policy(objects: &mut Objects) {
    objects.insert(Object::BackendTlsPolicy(object(json!({
        "metadata": {"namespace": "infra", "name": "tls", "generation": 2},
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": "web"}],
            "validation": {"hostname": "x.a.test", "wellKnownCACertificates": "System"},
        },
    }))));
}

/// Whether the policy of [`add_policy`] is accepted, and the message.
fn policy(translation: &Translation) -> (ConditionStatus, String) {
    let verdict = &translation.verdicts.policies[&ObjectKey::new(Kind::BackendTlsPolicy, "infra", "tls")];
    let accepted = verdict.conditions.get(ConditionType::Accepted).unwrap();
    (accepted.status, accepted.message.clone())
}

#[test]
fn a_backend_whose_policy_asks_for_tls_gets_no_plaintext_connection() {
    let mut objects = world();
    add_policy(&mut objects);
    let half = json!([{"name": "web", "port": 80}, {"name": "other", "port": 80}]);
    add(&mut objects, Kind::TcpRoute, ("a", 2026), half, json!({}));
    let ended =
        json!({"hostnames": ["x.a.test"], "parentRefs": [{"name": "public", "sectionName": "ended"}]});
    add(&mut objects, Kind::TlsRoute, ("a", 2026), backend("web", 80), ended);
    let (translation, plane) = translate(&objects);
    let shares = [("invalid".to_owned(), 1), ("10.0.0.1:8080".to_owned(), 1)];
    assert_eq!(targets_of(&plane.config, 5432, Arrival::Tcp), shares);
    assert_eq!(targets_of(&plane.config, 8443, Arrival::Tls("x.a.test")), one("invalid"));
    for kind in [Kind::TcpRoute, Kind::TlsRoute] {
        assert_eq!(condition(&translation, kind, "a", ConditionType::Accepted), "True Accepted");
        let [parent] = &translation.verdicts.routes[&ObjectKey::new(kind, "infra", "a")].parents[..] else {
            panic!("one parent");
        };
        // A share of the one, and nothing of the other, is left.
        let partial = parent.conditions.get(ConditionType::PartiallyInvalid).map(|partial| partial.reason);
        assert_eq!(partial, (kind == Kind::TcpRoute).then_some(Reason::UnsupportedValue));
        let teller =
            if partial.is_some() { ConditionType::PartiallyInvalid } else { ConditionType::Accepted };
        let message = &parent.conditions.get(teller).unwrap().message;
        assert!(message.contains("spec.rules[0].backendRefs[0]: BackendTLSPolicy"), "{message}");
    }
    let (status, message) = policy(&translation);
    assert_eq!(status, ConditionStatus::False);
    for text in
        ["TCPRoute infra/a spec.rules[0].backendRefs[0]", "TLSRoute infra/a spec.rules[0].backendRefs[0]"]
    {
        assert!(message.contains(text), "{message}");
    }
}

#[test]
fn policies_do_not_concern_what_clients_encrypt_nor_datagrams() {
    let mut objects = world();
    add_policy(&mut objects);
    let passed =
        json!({"hostnames": ["x.a.test"], "parentRefs": [{"name": "public", "sectionName": "test"}]});
    add(&mut objects, Kind::TlsRoute, ("a", 2026), backend("web", 80), passed.clone());
    let (translation, plane) = translate(&objects);
    assert_eq!(targets_of(&plane.config, 443, Arrival::Tls("x.a.test")), one("10.0.0.1:8080"));
    assert_eq!(policy(&translation).0, ConditionStatus::True);
    // One terminating listener counts for all.
    let mut both = passed;
    both["parentRefs"] =
        json!([{"name": "public", "sectionName": "test"}, {"name": "public", "sectionName": "ended"}]);
    add(&mut objects, Kind::TlsRoute, ("a", 2026), backend("web", 80), both);
    let (_, plane) = translate(&objects);
    for port in [443, 8443] {
        assert_eq!(targets_of(&plane.config, port, Arrival::Tls("x.a.test")), one("invalid"));
    }
}

#[test]
fn a_policy_honoured_for_requests_is_accepted_and_names_closed_routes() {
    let mut objects = world();
    add_policy(&mut objects);
    add(&mut objects, Kind::TcpRoute, ("a", 2026), backend("web", 80), json!({}));
    add_route(
        &mut objects,
        "web",
        &json!({
            "parentRefs": [{"name": "public"}], "hostnames": ["x.a.test"], "rules": [{"backendRefs": backend("web", 80)}],
        }),
    );
    let (translation, plane) = translate(&objects);
    assert_eq!(targets_of(&plane.config, 5432, Arrival::Tcp), one("invalid"));
    let (status, message) = policy(&translation);
    assert_eq!(status, ConditionStatus::True);
    assert!(message.contains("closed: TCPRoute infra/a spec.rules[0].backendRefs[0]."), "{message}");
}
