//! Listeners of a Gateway next to those of ListenerSets.

use serde_json::{Value, json};

use super::*;
use crate::fixture::{add_listener_set, allow_listener_sets, gateway, object, snapshot};
use crate::snapshot::{Object, Objects};

/// Whether a proxy serves TCP, UDP and TLS.
const STREAMS: bool = true;
const HTTP_ALONE: bool = false;

fn judge(objects: &Objects, serves_streams: bool) -> Listeners {
    let snapshot = snapshot(objects);
    let key = Arc::new(ObjectKey::new(Kind::Gateway, "infra", "public"));
    judge_listeners(
        &snapshot,
        &key,
        &References::new(&snapshot.referents),
        ListenerSupport::unfronted(serves_streams, usize::MAX),
        &mut Vec::new(),
    )
}

/// Every listener as `owner/name: state`.
fn states(objects: &Objects, serves_streams: bool) -> Vec<String> {
    judge(objects, serves_streams)
        .all
        .iter()
        .map(|listener| {
            let state = match (&listener.state, listener.refusal()) {
                (_, Some(refusal)) => format!("{} {}", refusal.reason, refusal.at),
                (ListenerState::Unresolved, None) => "unresolved".to_owned(),
                (_, None) => "served".to_owned(),
            };
            format!("{}/{}: {state}", listener.owner.name.name, listener.name)
        })
        .collect()
}

fn http(name: &str, port: i32, hostname: &str) -> Value {
    json!({"name": name, "port": port, "protocol": "HTTP", "hostname": hostname})
}

fn of(protocol: &str, name: &str, port: i32) -> Value {
    match protocol {
        "Passthrough" | "Terminate" => json!({
            "name": name, "port": port, "protocol": "TLS", "hostname": format!("{name}.test"),
            "tls": {"mode": protocol, "certificateRefs": [{"name": "missing"}]},
        }),
        "HTTPS" => json!({
            "name": name, "port": port, "protocol": protocol, "hostname": format!("{name}.test"),
            "tls": {"certificateRefs": [{"name": "missing"}]},
        }),
        "HTTP" => http(name, port, &format!("{name}.test")),
        _ => json!({"name": name, "port": port, "protocol": protocol}),
    }
}

#[test]
fn equal_listeners_rank_by_gateway_then_by_age_then_by_name() {
    let mut objects = gateway(&json!([http("own", 80, "a.test")]));
    allow_listener_sets(&mut objects);
    let all = json!([http("a", 80, "A.test"), http("b", 80, "b.test"), http("c", 80, "c.test")]);
    add_listener_set(&mut objects, ("x", "young"), 2, &all);
    add_listener_set(&mut objects, ("x", "old"), 1, &json!([http("b", 80, "b.test")]));
    // `x-y/s` comes before `x/s` as one text.
    add_listener_set(&mut objects, ("x-y", "younger"), 2, &json!([http("c", 80, "c.test")]));
    assert_eq!(
        states(&objects, HTTP_ALONE),
        [
            "public/own: served",
            "old/b: served",
            "younger/c: served",
            "young/a: HostnameConflict spec.listeners[0].hostname",
            "young/b: HostnameConflict spec.listeners[1].hostname",
            "young/c: HostnameConflict spec.listeners[2].hostname",
        ]
    );
}

#[test]
fn a_conflict_inside_one_object_takes_nothing_from_another() {
    let mut objects = gateway(&json!([http("a", 80, "a.test"), http("b", 80, "a.test")]));
    allow_listener_sets(&mut objects);
    add_listener_set(&mut objects, ("x", "s"), 1, &json!([http("c", 80, "a.test")]));
    assert_eq!(
        states(&objects, HTTP_ALONE),
        [
            "public/a: HostnameConflict spec.listeners[0].hostname",
            "public/b: HostnameConflict spec.listeners[1].hostname",
            "s/c: served",
        ]
    );
}

#[test]
fn a_listener_that_lost_to_an_earlier_object_disturbs_no_sibling() {
    let mut objects = gateway(&json!([http("own", 80, "own.test")]));
    allow_listener_sets(&mut objects);
    add_listener_set(&mut objects, ("x", "s"), 1, &json!([of("HTTPS", "a", 80), of("HTTP", "b", 80)]));
    assert_eq!(
        states(&objects, HTTP_ALONE),
        ["public/own: served", "s/a: ProtocolConflict spec.listeners[0].protocol", "s/b: served",]
    );
}

/// The result for the second of two listeners on one port: the first is the Gateway's, and the second a
/// ListenerSet's.
fn second(first: &str, second: &str, serves_streams: bool) -> String {
    let mut objects = gateway(&json!([of(first, "one", 80)]));
    allow_listener_sets(&mut objects);
    add_listener_set(&mut objects, ("x", "s"), 1, &json!([of(second, "two", 80)]));
    let states = states(&objects, serves_streams);
    states[1].trim_start_matches("s/two: ").split(' ').next().unwrap().to_owned()
}

#[test]
fn protocols_share_a_port_or_do_not() {
    let conflict = "ProtocolConflict";
    for (first, other, state) in [
        ("HTTP", "HTTP", "served"),
        ("HTTP", "HTTPS", conflict),
        ("HTTP", "Terminate", conflict),
        ("HTTP", "Passthrough", conflict),
        ("HTTP", "TCP", conflict),
        ("HTTP", "UDP", "served"),
        ("HTTPS", "HTTPS", "unresolved"),
        ("HTTPS", "Passthrough", conflict),
        ("HTTPS", "TCP", conflict),
        ("Passthrough", "Passthrough", "served"),
        ("Passthrough", "Terminate", "unresolved"),
        ("Terminate", "Passthrough", "served"),
        ("Terminate", "Terminate", "unresolved"),
        ("Terminate", "TCP", conflict),
        ("TCP", "TCP", "HostnameConflict"),
        ("TCP", "HTTP", conflict),
        ("TCP", "UDP", "served"),
        ("UDP", "UDP", "HostnameConflict"),
        ("UDP", "HTTPS", "unresolved"),
    ] {
        assert_eq!(second(first, other, STREAMS), state, "{other} after {first}");
    }
}

/// A port that is taken says more than that nothing serves the protocol.
#[test]
fn a_conflict_outranks_an_unserved_protocol_in_listener_sets_only() {
    let without = HTTP_ALONE;
    assert_eq!(second("HTTP", "TCP", without), "ProtocolConflict");
    assert_eq!(second("HTTP", "Passthrough", without), "ProtocolConflict");
    assert_eq!(second("HTTP", "UDP", without), "UnsupportedProtocol");
    assert_eq!(second("HTTP", "example.com/bespoke", without), "UnsupportedProtocol");
    assert_eq!(second("TCP", "TCP", without), "UnsupportedProtocol");
    let own = gateway(&json!([of("HTTP", "a", 80), of("TCP", "b", 80)]));
    assert_eq!(
        states(&own, without),
        ["public/a: served", "public/b: UnsupportedProtocol spec.listeners[1].protocol"]
    );
}

#[test]
fn modes_of_tls_share_a_port_unless_the_hostname_is_the_same() {
    let mut same = of("Terminate", "c", 444);
    same["hostname"] = json!("d.test");
    let objects = gateway(&json!([
        of("Passthrough", "a", 443),
        of("Terminate", "b", 443),
        same,
        of("Passthrough", "d", 444)
    ]));
    assert_eq!(
        states(&objects, STREAMS),
        [
            "public/a: served",
            "public/b: unresolved",
            "public/c: HostnameConflict spec.listeners[2].hostname",
            "public/d: HostnameConflict spec.listeners[3].hostname",
        ]
    );
}

/// Which of three ListenerSets, in the Gateway's namespace, in `shop` and in `other`, are excluded.
fn excluded(allowed: &Value) -> Vec<String> {
    let mut objects = Objects::default();
    let mut spec = json!({
        "gatewayClassName": "pingsix", "listeners": [{"name": "own", "port": 80, "protocol": "HTTP"}],
    });
    if !allowed.is_null() {
        spec["allowedListeners"] = json!({"namespaces": allowed});
    }
    objects.insert(Object::Gateway(object(
        json!({"metadata": {"namespace": "infra", "name": "public"}, "spec": spec}),
    )));
    objects
        .insert(Object::Namespace(object(json!({"metadata": {"name": "shop", "labels": {"team": "shop"}}}))));
    for (index, namespace) in ["infra", "shop", "other"].into_iter().enumerate() {
        let hostname = format!("{index}.test");
        add_listener_set(&mut objects, (namespace, "s"), 1, &json!([http("l", 80, &hostname)]));
    }
    let listeners = judge(&objects, HTTP_ALONE);
    for set in &listeners.sets {
        let is_served = listeners.of(set).iter().all(Listener::is_served);
        assert_eq!(is_served, set.excluded.is_none());
    }
    let sets = listeners.sets.iter().filter(|set| set.excluded.is_some());
    sets.map(|set| set.key.name.namespace.to_string()).collect()
}

#[test]
fn a_gateway_says_which_listener_sets_it_takes() {
    assert_eq!(excluded(&Value::Null), ["infra", "other", "shop"]);
    assert_eq!(excluded(&json!({})), ["infra", "other", "shop"]);
    assert_eq!(excluded(&json!({"from": "None"})), ["infra", "other", "shop"]);
    assert_eq!(excluded(&json!({"from": "Same"})), ["other", "shop"]);
    assert_eq!(excluded(&json!({"from": "All"})), [""; 0]);
    let labels = json!({"matchLabels": {"team": "shop"}});
    assert_eq!(excluded(&json!({"from": "Selector", "selector": labels})), ["infra", "other"]);
    let by_name = json!({"matchLabels": {"kubernetes.io/metadata.name": "other"}});
    assert_eq!(excluded(&json!({"from": "Selector", "selector": by_name})), ["infra", "shop"]);
}

#[test]
fn a_selector_of_listener_sets_that_cannot_be_evaluated_allows_none() {
    assert_eq!(excluded(&json!({"from": "Selector"})), ["infra", "other", "shop"]);
    let operator = json!({"matchExpressions": [{"key": "team", "operator": "is", "values": ["shop"]}]});
    assert_eq!(excluded(&json!({"from": "Selector", "selector": operator})), ["infra", "other", "shop"]);
}

#[test]
fn a_listener_set_that_is_not_allowed_claims_nothing() {
    let mut objects = gateway(&json!([http("own", 81, "own.test")]));
    add_listener_set(&mut objects, ("x", "s"), 1, &json!([http("a", 80, "a.test"), http("b", 80, "a.test")]));
    assert_eq!(
        states(&objects, HTTP_ALONE),
        ["public/own: served", "s/a: NotAllowed spec.parentRef", "s/b: NotAllowed spec.parentRef"]
    );
}

#[test]
fn listeners_of_different_objects_may_have_one_name() {
    let mut objects = gateway(&json!([http("a", 80, "a.test")]));
    allow_listener_sets(&mut objects);
    let twice = json!([http("a", 80, "b.test"), http("b", 80, "c.test"), http("b", 80, "d.test")]);
    add_listener_set(&mut objects, ("x", "s"), 1, &twice);
    assert_eq!(
        states(&objects, HTTP_ALONE),
        [
            "public/a: served",
            "s/a: served",
            "s/b: UnsupportedValue spec.listeners[1].name",
            "s/b: UnsupportedValue spec.listeners[2].name",
        ]
    );
}

/// Grants of the Gateway are not the ListenerSet's, nor the other way round.
#[test]
fn a_grant_is_for_one_kind_of_owner() {
    let listener = |name: &str, hostname: &str| {
        json!([{
            "name": name, "port": 443, "protocol": "HTTPS", "hostname": hostname,
            "tls": {"certificateRefs": [{"name": "missing", "namespace": "secrets"}]},
        }])
    };
    let reasons = |kind: &str, namespace: &str| {
        let mut objects = gateway(&listener("a", "a.test"));
        allow_listener_sets(&mut objects);
        add_listener_set(&mut objects, ("x", "s"), 1, &listener("b", "b.test"));
        objects.insert(Object::ReferenceGrant(object(json!({
            "metadata": {"namespace": "secrets", "name": "grant"},
            "spec": {
                "from": [{"group": "gateway.networking.k8s.io", "kind": kind, "namespace": namespace}],
                "to": [{"group": "", "kind": "Secret"}],
            },
        }))));
        let all = judge(&objects, HTTP_ALONE).all;
        all.iter().map(|listener| listener.unresolved[0].reason).collect::<Vec<_>>()
    };
    let (granted, denied) = (Reason::InvalidCertificateRef, Reason::RefNotPermitted);
    assert_eq!(reasons("Gateway", "infra"), [granted, denied]);
    assert_eq!(reasons("ListenerSet", "x"), [denied, granted]);
    assert_eq!(reasons("Gateway", "x"), [denied, denied]);
    assert_eq!(reasons("ListenerSet", "infra"), [denied, denied]);
}

#[test]
fn more_listeners_than_one_object_can_have_are_no_problem() {
    let mut objects = gateway(&json!([http("own", 80, "own.test")]));
    allow_listener_sets(&mut objects);
    for set in 0..3 {
        let listeners: Vec<Value> =
            (0..64).map(|index| http(&format!("l{index}"), 80, &format!("h{index}.s{set}.test"))).collect();
        add_listener_set(&mut objects, ("x", &format!("s{set}")), 1, &json!(listeners));
    }
    let listeners = judge(&objects, HTTP_ALONE);
    assert_eq!(listeners.all.iter().filter(|listener| listener.is_served()).count(), 193);
}

#[test]
fn scarce_ports_go_to_the_gateway_and_then_to_the_oldest_listener_set() {
    let mut objects = gateway(&json!([http("own", 80, "a.test")]));
    allow_listener_sets(&mut objects);
    let young = json!([http("new", 8082, "a.test"), http("shared", 8081, "b.test"), of("HTTPS", "tls", 443)]);
    add_listener_set(&mut objects, ("x", "young"), 2, &young);
    let old = json!([http("first", 8081, "a.test"), http("second", 80, "b.test"), of("TLS", "odd", 1)]);
    add_listener_set(&mut objects, ("x", "old"), 1, &old);
    let snapshot = snapshot(&objects);
    let key = Arc::new(ObjectKey::new(Kind::Gateway, "infra", "public"));
    let references = References::new(&snapshot.referents);
    let mut problems = Vec::new();
    let judged = judge_listeners(
        &snapshot,
        &key,
        &references,
        ListenerSupport::unfronted(HTTP_ALONE, 2),
        &mut problems,
    );
    let refused: Vec<&str> = judged
        .all
        .iter()
        .filter(|listener| {
            listener.refusal().is_some_and(|refusal| refusal.reason == Reason::PortUnavailable)
        })
        .map(|listener| listener.name.as_str())
        .collect();
    assert_eq!(refused, ["new", "tls"]);
    let told: Vec<_> = problems.iter().filter(|problem| problem.reason == Reason::PortUnavailable).collect();
    assert_eq!(told.len(), 2);
    assert_eq!(
        told[0].message,
        "A managed Gateway has at most 2 ports, and earlier listeners use \
     them.",
        "{told:?}"
    );
}
