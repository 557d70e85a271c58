//! Which listeners are accepted, and why the others are not.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::attach::{ListenerSupport, judge_listeners};
use crate::fixture::{gateway, object, snapshot};
use crate::model::{Kind, ObjectKey};
use crate::references::References;
use crate::snapshot::{Object, Objects};

fn judge(objects: &Objects) -> Vec<Listener> {
    let snapshot = snapshot(objects);
    let key = Arc::new(ObjectKey::new(Kind::Gateway, "infra", "public"));
    let references = References::new(&snapshot.referents);
    judge_listeners(
        &snapshot,
        &key,
        &references,
        ListenerSupport::unfronted(false, usize::MAX),
        &mut Vec::new(),
    )
    .all
}

/// The state of each listener as `served`, `unresolved`, or reason and field.
fn states(listeners: &Value) -> Vec<String> {
    judge(&gateway(listeners)).iter().map(state).collect()
}

fn state(listener: &Listener) -> String {
    match &listener.state {
        ListenerState::Served { .. } => "served".to_owned(),
        ListenerState::Unresolved => "unresolved".to_owned(),
        ListenerState::Refused { refusal }
        | ListenerState::Conflicted { refusal }
        | ListenerState::Excluded { refusal } => {
            let field = refusal.at.as_str().trim_start_matches("spec.listeners");
            format!("{} {field}", refusal.reason)
        }
    }
}

fn http(name: &str, port: i32, hostname: Option<&str>) -> Value {
    json!({"name": name, "port": port, "protocol": "HTTP", "hostname": hostname})
}

#[test]
fn listeners_that_share_port_and_hostname_all_lose() {
    assert_eq!(
        states(&json!([
            http("a", 80, Some("a.test")),
            http("b", 80, Some("A.test")),
            http("c", 80, Some("*.test")),
            http("d", 81, Some("a.test")),
            http("e", 82, None),
            http("f", 82, Some("")),
        ])),
        [
            "HostnameConflict [0].hostname",
            "HostnameConflict [1].hostname",
            "served",
            "served",
            "HostnameConflict [4].hostname",
            "HostnameConflict [5].hostname",
        ]
    );
}

#[test]
fn plaintext_and_tls_on_one_port_all_lose_whatever_their_hostnames() {
    let https = json!({"name": "b", "port": 80, "protocol": "HTTPS", "hostname": "b.test",
        "tls": {"certificateRefs": [{"name": "missing"}]}});
    assert_eq!(
        states(&json!([http("a", 80, Some("a.test")), https, http("c", 81, None)])),
        ["ProtocolConflict [0].protocol", "ProtocolConflict [1].protocol", "served"]
    );
}

#[test]
fn a_listener_that_is_refused_anyway_disturbs_no_other() {
    let tcp = json!({"name": "b", "port": 80, "protocol": "TCP"});
    assert_eq!(
        states(&json!([http("a", 80, None), tcp, http("c", 80, Some("10.0.0.1"))])),
        ["served", "UnsupportedProtocol [1].protocol", "UnsupportedValue [2].hostname"]
    );
}

#[test]
fn listeners_with_one_name_all_lose() {
    assert_eq!(
        states(&json!([http("a", 80, None), http("b", 81, None), http("a", 82, None)])),
        ["UnsupportedValue [0].name", "served", "UnsupportedValue [2].name"]
    );
}

#[test]
fn a_listener_meant_for_tls_is_not_served_in_plaintext() {
    let with = |protocol: &str, tls: Value| {
        states(&json!([{"name": "a", "port": 443, "protocol": protocol, "tls": tls}])).remove(0)
    };
    let refs = json!([{"name": "missing"}]);
    assert_eq!(with("HTTP", json!({"certificateRefs": refs})), "UnsupportedValue [0].tls");
    assert_eq!(with("HTTPS", Value::Null), "UnsupportedValue [0].tls");
    assert_eq!(with("HTTPS", json!({"mode": "Passthrough"})), "UnsupportedValue [0].tls.mode");
    assert_eq!(with("HTTPS", json!({"certificateRefs": refs})), "unresolved");
    assert_eq!(with("HTTPS", json!({})), "unresolved");
}

#[test]
fn every_reference_is_judged_whatever_the_state() {
    let listeners = judge(&gateway(&json!([{
        "name": "a", "port": 0, "protocol": "HTTPS",
        "tls": {"certificateRefs": [{"name": "missing"}, {"name": "cm", "kind": "ConfigMap"}]},
        "allowedRoutes": {"kinds": [{"kind": "TCPRoute"}]},
    }])));
    assert_eq!(state(&listeners[0]), "PortUnavailable [0].port");
    let unresolved: Vec<String> = listeners[0]
        .unresolved
        .iter()
        .map(|refusal| {
            format!("{} {}", refusal.reason, refusal.at.as_str().trim_start_matches("spec.listeners"))
        })
        .collect();
    assert_eq!(
        unresolved,
        [
            "InvalidCertificateRef [0].tls.certificateRefs[0].name",
            "InvalidCertificateRef [0].tls.certificateRefs[1].kind",
            "InvalidRouteKinds [0].allowedRoutes.kinds[0]",
        ]
    );
}

/// A Secret of another namespace that does not exist: the grant comes first, so that nothing is learnt.
#[test]
fn grants_for_certificates_are_judged_before_existence() {
    let mut objects = gateway(&json!([{
        "name": "a", "port": 443, "protocol": "HTTPS",
        "tls": {"certificateRefs": [{"name": "missing", "namespace": "secrets"}]},
    }]));
    let reason = |objects: &Objects| judge(objects)[0].unresolved[0].reason;
    assert_eq!(reason(&objects), Reason::RefNotPermitted);
    objects.insert(Object::ReferenceGrant(object(json!({
        "metadata": {"namespace": "secrets", "name": "grant"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "infra"}],
            "to": [{"group": "", "kind": "Secret"}],
        },
    }))));
    assert_eq!(reason(&objects), Reason::InvalidCertificateRef);
}
