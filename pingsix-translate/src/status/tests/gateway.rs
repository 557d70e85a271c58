//! Fields of a Gateway besides its listeners, and fields that concern all of them.

use super::*;
use crate::fixture::{add_certificate, add_listener_set, https, pem};

/// Gateway `infra/public` with one HTTP listener, one HTTPS listener with a certificate, and these fields besides.
fn with(fields: &Value) -> Objects {
    let mut spec = json!({
        "gatewayClassName": "pingsix",
        "listeners": [
            {"name": "plain", "port": 80, "protocol": "HTTP"},
            https("secure", 443, None, &["c"]),
        ],
    });
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(
        json!({"metadata": {"namespace": "infra", "name": "public", "generation": 7}, "spec": spec}),
    )));
    add_certificate(&mut objects, "c", &pem::pair(&["a.test"]));
    objects
}

fn judge_with(objects: &Objects) -> Verdicts {
    with_delivery(run(objects, &per_port()).verdicts, &BTreeMap::new())
}

fn brief(conditions: &Conditions, kind: ConditionType) -> String {
    let condition = conditions.get(kind).unwrap();
    format!("{} {}", condition.status.as_str(), condition.reason)
}

/// Problems as `severity field reason`.
fn problems(verdicts: &Verdicts) -> Vec<String> {
    let problems = verdicts.problems.iter();
    problems.map(|one| format!("{} {} {}", one.severity.as_str(), one.field, one.reason)).collect()
}

#[test]
fn an_address_that_cannot_be_had_keeps_the_gateway_from_being_programmed() {
    for (address, field) in [
        (json!({"type": "IPAddress", "value": "192.0.2.1"}), None),
        (json!({"type": "IPAddress"}), None),
        (json!({"type": "Hostname", "value": "gateway.test"}), None),
        (json!({"value": "2001:db8::1"}), None),
        (json!({"type": "IPAddress", "value": "gateway.test"}), Some("value")),
        (json!({"type": "Hostname", "value": "*.test"}), Some("value")),
        (json!({"type": "IPAddress", "value": "192.0.2.1", "routability": "Private"}), Some("routability")),
        (json!({"type": "IPAddress", "routability": "Cluster"}), Some("routability")),
    ] {
        let verdicts = judge_with(&with(&json!({"addresses": [address]})));
        let gateway = verdicts.gateway.as_ref().unwrap();
        assert_eq!(brief(&gateway.conditions, ConditionType::Accepted), "True Accepted", "{address}");
        let programmed = brief(&gateway.conditions, ConditionType::Programmed);
        // The listeners are served at the others.
        assert_eq!(brief(&gateway.listeners[0].conditions, ConditionType::Programmed), "False Pending");
        match field {
            None => assert_eq!(programmed, "False Pending", "{address}"),
            Some(field) => {
                assert_eq!(programmed, "False AddressNotUsable", "{address}");
                assert_eq!(
                    problems(&verdicts),
                    [format!("error spec.addresses[0].{field} AddressNotUsable")]
                );
            }
        }
    }
    let unknown = judge_with(&with(&json!({"addresses": [{"type": "example.com/x", "value": "x"}]})));
    let conditions = &unknown.gateway.as_ref().unwrap().conditions;
    assert_eq!(brief(conditions, ConditionType::Accepted), "False UnsupportedAddress");
    assert_eq!(brief(conditions, ConditionType::Programmed), "False Invalid");
}

#[test]
fn a_default_scope_is_not_honoured_and_harms_nothing() {
    let verdicts = judge_with(&with(&json!({"defaultScope": "All"})));
    assert_eq!(problems(&verdicts), ["warning spec.defaultScope Limited"]);
    let conditions = &verdicts.gateway.as_ref().unwrap().conditions;
    assert_eq!(brief(conditions, ConditionType::Accepted), "True Accepted");
    assert_eq!(brief(conditions, ConditionType::Limited), "True Limited");
    // A Gateway that serves nothing is not limited.
    let refused = judge_with(&with(&json!({"defaultScope": "All", "listeners": []})));
    assert_eq!(problems(&refused), ["warning spec.defaultScope Limited"]);
    assert_eq!(refused.gateway.unwrap().conditions.get(ConditionType::Limited), None);
}

#[test]
fn a_certificate_for_backends_is_checked_and_said_not_to_be_shown() {
    let resolved = |reference: Value| {
        let verdicts = judge_with(&with(&json!({"tls": {"backend": {"clientCertificateRef": reference}}})));
        let conditions = &verdicts.gateway.as_ref().unwrap().conditions;
        assert_eq!(brief(conditions, ConditionType::Accepted), "True Accepted");
        let is_limited = conditions.is_true(ConditionType::Limited);
        assert_eq!(is_limited, conditions.is_true(ConditionType::ResolvedRefs));
        (brief(conditions, ConditionType::ResolvedRefs), problems(&verdicts).join(" "))
    };
    let at = "spec.tls.backend.clientCertificateRef";
    let expect = |resolved: &str, problem: String| (resolved.to_owned(), problem);
    assert_eq!(resolved(json!({"name": "c"})), expect("True ResolvedRefs", format!("warning {at} Limited")));
    let invalid = "False InvalidClientCertificateRef";
    assert_eq!(
        resolved(json!({"name": "missing"})),
        expect(invalid, format!("error {at}.name InvalidClientCertificateRef"))
    );
    assert_eq!(
        resolved(json!({"name": "c", "kind": "ConfigMap"})),
        expect(invalid, format!("error {at}.kind InvalidClientCertificateRef"))
    );
    assert_eq!(
        resolved(json!({"name": "c", "namespace": "other"})),
        expect("False RefNotPermitted", format!("error {at}.namespace RefNotPermitted"))
    );
    // Without one, there is no message.
    let conditions = judge_with(&with(&json!({}))).gateway.unwrap().conditions;
    assert_eq!(conditions.get(ConditionType::ResolvedRefs), None);
}

#[test]
fn listener_references_are_summed_up_beside_a_certificate_for_backends() {
    let objects = with(&json!({
        "tls": {"backend": {"clientCertificateRef": {"name": "c"}}},
        "listeners": [
            {"name": "plain", "port": 80, "protocol": "HTTP"}, https("secure", 443, None, &["missing"]),
        ],
    }));
    let conditions = judge_with(&objects).gateway.unwrap().conditions;
    assert_eq!(brief(&conditions, ConditionType::ResolvedRefs), "False ListenersNotResolved");
}

/// A validation by these authorities.
fn validation(refs: &Value) -> Value {
    json!({"validation": {"caCertificateRefs": refs}})
}

/// `Accepted` and `ResolvedRefs` of each listener, with ConfigMaps `ca` and `empty`.
fn listeners(frontend: &Value) -> Vec<String> {
    let mut objects = with(&json!({"tls": {"frontend": frontend}}));
    for (name, text) in [("ca", pem::pair(&["ca.test"]).cert.as_str()), ("empty", "")] {
        objects.insert(Object::ConfigMap(object(
            json!({"metadata": {"namespace": "infra", "name": name}, "data": {"ca.crt": text}}),
        )));
    }
    let verdicts = judge_with(&objects);
    let listeners = verdicts.gateway.as_ref().unwrap().listeners.iter();
    listeners
        .map(|listener| {
            let of = |kind| brief(&listener.conditions, kind);
            format!("{}, {}", of(ConditionType::Accepted), of(ConditionType::ResolvedRefs))
        })
        .collect()
}

fn core(kind: &str, name: &str) -> Value {
    json!({"group": "", "kind": kind, "name": name})
}

#[test]
fn client_validation_concerns_https_alone_and_its_authorities_are_judged() {
    let fine = "True Accepted, True ResolvedRefs";
    for (refs, secure) in [
        (json!([core("ConfigMap", "ca")]), "False UnsupportedValue, True ResolvedRefs"),
        (json!([core("ConfigMap", "missing")]), "False NoValidCACertificate, False InvalidCACertificateRef"),
        (json!([core("ConfigMap", "empty")]), "False NoValidCACertificate, False InvalidCACertificateRef"),
        (json!([core("Secret", "ca")]), "False NoValidCACertificate, False InvalidCACertificateKind"),
        (
            json!([core("ConfigMap", "missing"), core("ConfigMap", "ca")]),
            "False UnsupportedValue, False InvalidCACertificateRef",
        ),
        (
            json!([{"group": "", "kind": "ConfigMap", "name": "ca", "namespace": "other"}]),
            "False NoValidCACertificate, False RefNotPermitted",
        ),
    ] {
        assert_eq!(listeners(&json!({"default": validation(&refs)})), [fine, secure], "{refs}");
    }
}

#[test]
fn a_validation_of_a_port_replaces_the_default() {
    let fine = "True Accepted, True ResolvedRefs";
    let bad = validation(&json!([core("ConfigMap", "missing")]));
    let good = validation(&json!([core("ConfigMap", "ca")]));
    assert_eq!(
        listeners(&json!({"default": bad, "perPort": [{"port": 443, "tls": good}]})),
        [fine, "False UnsupportedValue, True ResolvedRefs"]
    );
    assert_eq!(listeners(&json!({"default": bad, "perPort": [{"port": 443, "tls": {}}]})), [fine, fine]);
    assert_eq!(
        listeners(&json!({"default": {}, "perPort": [{"port": 443, "tls": bad}]})),
        [fine, "False NoValidCACertificate, False InvalidCACertificateRef"]
    );
    assert_eq!(listeners(&json!({"default": {}, "perPort": [{"port": 8443, "tls": bad}]})), [fine, fine]);
}

#[test]
fn the_gateway_reports_insecure_client_validation_while_it_is_configured() {
    let mode = |mode: &str| {
        let mut validation = validation(&json!([core("ConfigMap", "ca")]));
        validation["validation"]["mode"] = json!(mode);
        let verdicts = judge_with(&with(&json!({"tls": {"frontend": {"default": validation}}})));
        verdicts.gateway.unwrap().conditions.get(ConditionType::InsecureFrontendValidationMode).cloned()
    };
    let condition = mode("AllowInsecureFallback").unwrap();
    assert_eq!((condition.status, condition.reason), (ConditionStatus::True, Reason::ConfigurationChanged));
    assert!(condition.message.contains("spec.tls.frontend.default.validation.mode"), "{}", condition.message);
    assert_eq!(mode("AllowValidOnly"), None);
}

/// The field belongs to the Gateway, so the message for the ListenerSet names the field and the port.
#[test]
fn validation_of_clients_concerns_listener_sets_too() {
    let mut objects = with(&json!({
        "allowedListeners": {"namespaces": {"from": "All"}},
        "tls": {"frontend": {"default": validation(&json!([core("ConfigMap", "missing")]))}},
    }));
    add_listener_set(&mut objects, ("infra", "s"), 1, &json!([https("l", 8443, None, &["c"])]));
    let verdicts = judge_with(&objects);
    let of_set: Vec<String> = verdicts
        .problems
        .iter()
        .filter(|problem| problem.object.kind == crate::model::Kind::ListenerSet)
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        of_set,
        [
            "ListenerSet infra/s: spec.listeners[0].port: Gateway infra/public says at \
             spec.tls.frontend.default.validation.caCertificateRefs[0].name: ConfigMap infra/missing does not exist.",
            "ListenerSet infra/s: spec.listeners[0].port: Gateway infra/public says at spec.tls.frontend.default: \
             There is no usable authority to verify client certificates with.",
        ]
    );
}

#[test]
fn filters_of_a_listener_are_named_and_nothing_is_served_without_them() {
    let filters = json!({"requests": [{"type": "ExternalAuth"}, {"type": "ExtensionRef"}]});
    let mut objects = with(&json!({"listeners": [
        {"name": "open", "port": 80, "protocol": "HTTP"},
        {"name": "guarded", "port": 80, "protocol": "HTTP", "hostname": "a.test", "filters": filters},
        {"name": "none", "port": 80, "protocol": "HTTP", "hostname": "b.test", "filters": {"requests": []}},
    ]}));
    add_service(&mut objects, "web");
    add_route(&mut objects, "r", &json!({"parentRefs": [{"name": "public"}], "rules": [rule("/", "web")]}));
    let translation = run(&objects, &per_port());
    let gateway = translation.verdicts.gateway.unwrap();
    assert_eq!(
        read(&gateway.listeners[1].conditions, ConditionType::Accepted),
        "False UnsupportedValue: spec.listeners[1].filters: PingSIX has no filters that run before routing, so the \
         listener is not served: requests[0] (ExternalAuth), requests[1] (ExtensionRef)."
    );
    assert!(gateway.listeners[2].conditions.is_true(ConditionType::Accepted));
    // The hosts do not fall to the listener that admits all clients.
    let plane = translation.data_planes.values().next().unwrap();
    let of_host: Vec<_> =
        plane.config.routes().filter(|(_, route)| route.host.as_deref() == Some("a.test")).collect();
    assert_eq!(of_host.len(), 1);
    assert_eq!(of_host[0].1.service_id.as_deref(), Some("status-404"));
}
