//! Listeners for TLS, TCP and UDP: which are served, and with which certificates.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::fixture::pem::pair;
use crate::fixture::{add_certificate, add_listener_set, allow_listener_sets, gateway, run, snapshot};
use crate::model::{ConditionType, Options, Problem};
use crate::references::References;
use crate::status::{Condition, ConditionStatus};

fn options() -> Options {
    Options { stream: true, ..Options::default() }
}

/// The only listener, judged, with Secrets `good`, and `broken`, whose chain ends in nonsense.
fn judge(listener: &Value) -> (Listener, Vec<Problem>) {
    let mut objects = gateway(&json!([listener]));
    let good = pair(&["a.test"]);
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let broken =
        crate::fixture::pem::Pair { cert: format!("{}{nonsense}", good.cert), key: good.key.clone() };
    add_certificate(&mut objects, "good", &good);
    add_certificate(&mut objects, "broken", &broken);
    let snapshot = snapshot(&objects);
    let key = Arc::new(crate::snapshot::key_of(crate::model::Kind::Gateway, &snapshot.gateway.metadata));
    let references = References::new(&snapshot.referents);
    let mut problems = Vec::new();
    let mut listeners = crate::attach::judge_listeners(
        &snapshot,
        &key,
        &references,
        crate::attach::ListenerSupport::unfronted(true, usize::MAX),
        &mut problems,
    );
    (listeners.all.remove(0), problems)
}

fn listener(protocol: &str, more: Value) -> Value {
    let mut listener = json!({"name": "a", "port": 443, "protocol": protocol});
    if let Value::Object(more) = more {
        listener.as_object_mut().unwrap().extend(more);
    }
    listener
}

/// The fields and reasons of the refusals.
fn refused(problems: &[Problem]) -> Vec<(String, Reason)> {
    let field =
        |problem: &Problem| problem.field.as_str().trim_start_matches("spec.listeners[0].").to_owned();
    problems.iter().map(|problem| (field(problem), problem.reason)).collect()
}

#[test]
fn passthrough_needs_no_certificate_and_looks_at_none() {
    for tls in [
        json!({"mode": "Passthrough"}),
        json!({"mode": "Passthrough", "certificateRefs": [{"name": "missing"}]}),
    ] {
        let (listener, problems) = judge(&listener("TLS", json!({ "tls": tls })));
        assert!(listener.is_served() && listener.terminates_with().is_empty(), "{listener:?}");
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn termination_is_the_default_and_takes_every_usable_certificate() {
    for mode in [json!({}), json!({"mode": "Terminate"})] {
        let mut tls = mode;
        tls["certificateRefs"] = json!([{"name": "good"}, {"name": "broken"}, {"name": "missing"}]);
        let (listener, problems) = judge(&listener("TLS", json!({ "tls": tls })));
        assert!(listener.is_served());
        let secrets: Vec<&str> =
            listener.terminates_with().iter().map(|certificate| &*certificate.secret.name).collect();
        assert_eq!(secrets, ["good"]);
        let expected = [
            ("tls.certificateRefs[1]".to_owned(), Reason::InvalidCertificateRef),
            ("tls.certificateRefs[2].name".to_owned(), Reason::InvalidCertificateRef),
        ];
        assert_eq!(refused(&problems), expected);
        assert_eq!(listener.unresolved.len(), 2);
    }
}

#[test]
fn without_a_usable_certificate_nothing_is_terminated() {
    for (tls, field) in [
        (json!({"mode": "Terminate"}), "tls.certificateRefs"),
        (json!({"certificateRefs": [{"name": "broken"}]}), "tls.certificateRefs[0]"),
    ] {
        let (listener, problems) = judge(&listener("TLS", json!({ "tls": tls })));
        assert!(matches!(listener.state, ListenerState::Unresolved), "{listener:?}");
        assert_eq!(refused(&problems), [(field.to_owned(), Reason::InvalidCertificateRef)]);
    }
}

#[test]
fn a_listener_is_refused_at_the_field_that_does_not_fit_its_protocol() {
    for (listener_spec, field) in [
        (listener("TLS", json!({})), "tls"),
        (listener("TCP", json!({"tls": {"certificateRefs": [{"name": "good"}]}})), "tls"),
        (listener("UDP", json!({"tls": {"mode": "Passthrough"}})), "tls"),
        (listener("TCP", json!({"hostname": "a.test"})), "hostname"),
        (listener("UDP", json!({"hostname": "a.test"})), "hostname"),
    ] {
        let (listener, problems) = judge(&listener_spec);
        assert!(matches!(listener.state, ListenerState::Refused { .. }), "{listener_spec}");
        assert_eq!(refused(&problems), [(field.to_owned(), Reason::UnsupportedValue)]);
    }
    for protocol in ["TCP", "UDP"] {
        assert!(judge(&listener(protocol, json!({"hostname": ""}))).0.is_served());
    }
}

#[test]
fn a_refused_listener_takes_its_port_from_no_other() {
    for protocol in ["TCP", "UDP"] {
        let port = |name: &str, hostname: &str| json!({"name": name, "port": 5432, "protocol": protocol, "hostname": hostname});
        let mut objects = gateway(&json!([port("named", "a.test"), port("own", "")]));
        allow_listener_sets(&mut objects);
        add_listener_set(&mut objects, ("infra", "set"), 1, &json!([port("late", "")]));
        let verdicts = run(&objects, &options()).verdicts;
        let reason = |listener: &crate::status::ListenerVerdict| {
            listener.conditions.get(ConditionType::Accepted).unwrap().reason
        };
        let reasons: Vec<Reason> = verdicts.listeners().map(reason).collect();
        assert_eq!(reasons, [Reason::UnsupportedValue, Reason::Accepted, Reason::HostnameConflict]);
    }
}

#[test]
fn without_the_capability_there_are_no_such_listeners() {
    for protocol in ["TLS", "TCP", "UDP"] {
        let objects = gateway(&json!([listener(protocol, json!({"tls": {"mode": "Passthrough"}}))]));
        let translation = run(&objects, &Options::default());
        assert!(translation.stream_planes.is_empty());
        let gateway = translation.verdicts.gateway.unwrap();
        assert!(gateway.listeners[0].supported_kinds.is_empty() && gateway.listeners[0].data_plane.is_none());
        let Condition { status, reason, .. } =
            gateway.listeners[0].conditions.get(ConditionType::Accepted).unwrap();
        assert_eq!((*status, *reason), (ConditionStatus::False, Reason::UnsupportedProtocol));
    }
}
