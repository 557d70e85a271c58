//! The spec of a policy and its refusals.

use super::*;

#[test]
fn ca_certificates_of_its_own_are_judged_and_not_honoured() {
    use ConditionType::{Accepted, ResolvedRefs};
    let refs = |refs: Value| json!({"hostname": HOST, "caCertificateRefs": refs});
    let missing = [(Accepted, Reason::NoValidCaCertificate), (ResolvedRefs, Reason::InvalidCaCertificateRef)];
    let kind = [(Accepted, Reason::NoValidCaCertificate), (ResolvedRefs, Reason::InvalidKind)];
    let unsupported = [(Accepted, Reason::UnsupportedValue)];
    let partly = [(Accepted, Reason::UnsupportedValue), (ResolvedRefs, Reason::InvalidCaCertificateRef)];
    let good = json!({"group": "", "kind": "ConfigMap", "name": "good"});
    let absent = json!({"group": "", "kind": "ConfigMap", "name": "absent"});
    let cases: [(Value, &[(ConditionType, Reason)]); 10] = [
        (custom("good"), &unsupported),
        (custom("absent"), &missing),
        (custom("keyless"), &missing),
        (custom("text"), &missing),
        (custom("cut"), &missing),
        (refs(json!([{"group": "", "kind": "Secret", "name": "good"}])), &kind),
        (refs(json!([{"group": "a.test", "kind": "ConfigMap", "name": "good"}])), &kind),
        (
            refs(json!([{"group": "certificates.k8s.io", "kind": "ClusterTrustBundle", "name": "good"}])),
            &kind,
        ),
        (refs(json!([absent, good])), &partly),
        (refs(json!([good, absent])), &partly),
    ];
    for (validation, reasons) in cases {
        let mut objects = served();
        let pem = certificate();
        add_config_map(&mut objects, "good", &json!({"ca.crt": format!("{pem}{}", certificate())}));
        add_config_map(&mut objects, "keyless", &json!({"tls.crt": pem}));
        add_config_map(&mut objects, "text", &json!({"ca.crt": "no certificate"}));
        add_config_map(&mut objects, "cut", &json!({"ca.crt": format!("{pem}{}", &pem[..pem.len() / 2])}));
        add_policy(&mut objects, "tls", 0, &web(), &validation);
        assert_denied(&objects, reasons, "spec.validation.caCertificateRefs");
    }
}

#[test]
fn the_reference_at_fault_is_named() {
    let mut objects = served();
    let absent = json!({"group": "", "kind": "ConfigMap", "name": "absent"});
    let secret = json!({"group": "", "kind": "Secret", "name": "ca"});
    let validation = json!({"hostname": HOST, "caCertificateRefs": [absent, secret]});
    add_policy(&mut objects, "tls", 0, &web(), &validation);
    let translation = translated(&objects);
    let (.., message) = condition(&policy(&translation, "tls").conditions, ConditionType::ResolvedRefs);
    assert_eq!(
        message,
        "spec.validation.caCertificateRefs[0].name: ConfigMap infra/absent does not exist. \
         spec.validation.caCertificateRefs[1].kind: CA certificates are read from a ConfigMap, not from a Secret of \
         the core group."
    );
}

#[test]
fn a_meaningless_tls_validation_is_denied_at_its_field() {
    let invalid = [(ConditionType::Accepted, Reason::Invalid)];
    let unsupported = [(ConditionType::Accepted, Reason::UnsupportedValue)];
    let both = json!({
        "hostname": HOST, "wellKnownCACertificates": "System",
        "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "good"}],
    });
    let alternatives = json!({
        "hostname": HOST, "wellKnownCACertificates": "System",
        "subjectAltNames": [{"type": "Hostname", "hostname": HOST}],
    });
    for (validation, reasons, field) in [
        (json!({"hostname": HOST}), invalid, "spec.validation: "),
        (json!({"hostname": HOST, "wellKnownCACertificates": ""}), invalid, "spec.validation: "),
        (
            json!({"hostname": HOST, "wellKnownCACertificates": "Mozilla"}),
            invalid,
            "spec.validation.wellKnownCACertificates: ",
        ),
        (both, invalid, "spec.validation.wellKnownCACertificates: "),
        (named(""), invalid, "spec.validation.hostname: "),
        (named("*.test"), invalid, "spec.validation.hostname: "),
        (named("10.0.0.1"), invalid, "spec.validation.hostname: "),
        (named("backend.test:443"), invalid, "spec.validation.hostname: "),
        (alternatives, unsupported, "spec.validation.subjectAltNames: "),
    ] {
        let mut objects = served();
        add_config_map(&mut objects, "good", &json!({"ca.crt": certificate()}));
        add_policy(&mut objects, "tls", 0, &web(), &validation);
        assert_denied(&objects, &reasons, field);
    }
}

#[test]
fn options_have_no_effect_and_are_named() {
    let mut objects = served();
    let spec = json!({"targetRefs": web(), "validation": system(), "options": {"a.test/min-version": "1.3"}});
    add_policy_spec(&mut objects, "tls", 0, &spec);
    let translation = translated(&objects);
    assert_eq!(upstreams(&translation)[0].scheme, Scheme::Https);
    let conditions = &policy(&translation, "tls").conditions;
    assert!(conditions.is_true(ConditionType::Accepted));
    let (.., message) = condition(conditions, ConditionType::Limited);
    assert_eq!(message, "spec.options: Option \"a.test/min-version\" is unknown and has no effect.");
}
