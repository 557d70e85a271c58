//! From policies to upstreams, answers and verdicts.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fixture::{add_grpc_route, add_route, add_service, gateway, object, run};
use crate::object::{Kind, ObjectKey};
use crate::options::Options;
use crate::pingsix::{PassHost, Scheme, Upstream};
use crate::snapshot::{Object, Objects};
use crate::translation::Translation;
use crate::verdict::{ConditionStatus, ConditionType, Conditions, PolicyVerdict, Reason};

const HOST: &str = "backend.test";

/// Gateway `infra/public` with one listener for every host.
fn world() -> Objects {
    gateway(&json!([{"name": "http", "port": 80, "protocol": "HTTP"}]))
}

/// [`world`] with Service `infra/web`, and HTTPRoute `infra/web` that serves it as [`HOST`].
fn served() -> Objects {
    let mut objects = world();
    add_service(&mut objects, "web");
    route_to(&mut objects, "web", &[HOST], &json!([{"name": "web", "port": 80}]));
    objects
}

fn route_to(objects: &mut Objects, name: &str, hostnames: &[&str], backends: &Value) {
    let spec = json!({
        "parentRefs": [{"name": "public"}], "hostnames": hostnames, "rules": [{"backendRefs": backends}],
    });
    add_route(objects, name, &spec);
}

fn web() -> Value {
    json!([{"group": "", "kind": "Service", "name": "web"}])
}

fn web_port(port: &str) -> Value {
    json!([{"group": "", "kind": "Service", "name": "web", "sectionName": port}])
}

fn system() -> Value {
    json!({"wellKnownCACertificates": "System", "hostname": HOST})
}

/// A policy that names this ConfigMap for its CA.
fn custom(config_map: &str) -> Value {
    json!({
        "hostname": HOST, "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": config_map}],
    })
}

/// Adds BackendTLSPolicy `infra/<name>`, generation 5, created in this second of a minute.
fn add_policy(objects: &mut Objects, name: &str, second: u32, targets: &Value, validation: &Value) {
    add_policy_spec(objects, name, second, &json!({"targetRefs": targets, "validation": validation}));
}

fn add_policy_spec(objects: &mut Objects, name: &str, second: u32, spec: &Value) {
    objects.insert(Object::BackendTlsPolicy(object(json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "BackendTLSPolicy",
        "metadata": {
            "namespace": "infra", "name": name, "generation": 5,
            "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
        },
        "spec": spec,
    }))));
}

/// Adds Service `infra/web` with port 80, named `main`, and one endpoint.
fn add_named_port(objects: &mut Objects, app_protocol: Option<&str>) {
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": "web"},
        "spec": {"ports": [{"port": 80, "name": "main", "appProtocol": app_protocol}]},
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"namespace": "infra", "name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": [{"port": 8080, "name": "main"}],
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    }))));
}

/// Adds ConfigMap `infra/<name>` with this entry `ca.crt`.
fn add_config_map(objects: &mut Objects, name: &str, data: &Value) {
    objects.insert(Object::ConfigMap(object(json!({
        "metadata": {"namespace": "infra", "name": name}, "data": data,
    }))));
}

fn certificate() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertificateParams::new(vec!["ca.test".to_owned()]).unwrap().self_signed(&key).unwrap().pem()
}

fn translated(objects: &Objects) -> Translation {
    let options = Options { responder: Some(([127, 0, 0, 1], 9000).into()), ..Options::default() };
    run(objects, &options)
}

/// The upstreams with the endpoint of Service `web`.
fn upstreams(translation: &Translation) -> Vec<Upstream> {
    let planes = translation.data_planes.values();
    let upstreams = planes.flat_map(|plane| plane.config.upstreams().map(|(_, upstream)| upstream));
    upstreams.filter(|upstream| upstream.nodes.contains_key("10.0.0.1:8080")).cloned().collect()
}

fn policy<'t>(translation: &'t Translation, name: &str) -> &'t PolicyVerdict {
    &translation.verdicts.policies[&ObjectKey::new(Kind::BackendTlsPolicy, "infra", name)]
}

fn route<'t>(translation: &'t Translation, name: &str) -> &'t Conditions {
    &translation.verdicts.routes[&ObjectKey::new(Kind::HttpRoute, "infra", name)].parents[0].conditions
}

/// Status, reason and message of a condition.
fn condition(conditions: &Conditions, kind: ConditionType) -> (ConditionStatus, Reason, String) {
    let condition = conditions.get(kind).unwrap();
    (condition.status, condition.reason, condition.message.clone())
}

/// What is `False`, and why.
fn refused(conditions: &Conditions) -> Vec<(ConditionType, Reason)> {
    let refused = conditions.iter().filter(|condition| condition.status == ConditionStatus::False);
    refused.map(|condition| (condition.kind, condition.reason)).collect()
}

/// That policy `infra/tls` is refused for these reasons, that no connection is made, and that the route of
/// [`served`] says so without being refused.
fn assert_denied(objects: &Objects, reasons: &[(ConditionType, Reason)], field: &str) {
    let translation = translated(objects);
    let verdict = policy(&translation, "tls");
    assert_eq!(refused(&verdict.conditions), reasons);
    let (.., message) = condition(&verdict.conditions, ConditionType::Accepted);
    assert!(message.contains(field), "{message}");
    assert_eq!(upstreams(&translation), []);
    let conditions = route(&translation, "web");
    assert_eq!(refused(conditions), []);
    let (_, reason, message) = condition(conditions, ConditionType::PartiallyInvalid);
    assert_eq!(reason, Reason::UnsupportedValue);
    assert!(message.starts_with("Dropped Rule: spec.rules[0].backendRefs[0]: "), "{message}");
    assert!(message.contains("BackendTLSPolicy infra/tls") && message.contains(field), "{message}");
}

#[test]
fn a_policy_pingsix_can_honour_makes_the_upstream_verify_its_name() {
    let mut objects = served();
    let plaintext = translated(&objects);
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    let [upstream] = &*upstreams(&translation) else { panic!("one upstream") };
    assert_eq!((upstream.scheme, upstream.pass_host), (Scheme::Https, PassHost::Rewrite));
    assert_eq!(upstream.upstream_host.as_deref(), Some(HOST));
    let verdict = policy(&translation, "tls");
    assert_eq!((verdict.generation, &*verdict.ancestor.name.name), (5, "public"));
    let accepted = condition(&verdict.conditions, ConditionType::Accepted);
    assert_eq!(accepted, (ConditionStatus::True, Reason::Accepted, "The policy is accepted.".to_owned()));
    assert!(verdict.conditions.is_true(ConditionType::ResolvedRefs));
    assert!(verdict.conditions.iter().all(|condition| condition.observed_generation == 5));
    assert_eq!(translation.verdicts.problems, []);
    // Another document, so that no Route can point at the one while it turns into the other.
    let ids = |translation: &Translation| -> BTreeSet<String> {
        let planes = translation.data_planes.values();
        planes.flat_map(|plane| plane.config.upstreams().map(|(key, _)| key.id.clone())).collect()
    };
    assert!(ids(&plaintext).is_disjoint(&ids(&translation)));
}

#[test]
fn hostnames_are_compared_without_regard_to_case() {
    let mut objects = served();
    let validation = json!({"wellKnownCACertificates": "System", "hostname": "Backend.TEST"});
    add_policy(&mut objects, "tls", 0, &web(), &validation);
    let translation = translated(&objects);
    assert_eq!(upstreams(&translation)[0].upstream_host.as_deref(), Some(HOST));
}

#[test]
fn an_app_protocol_chooses_what_runs_over_tls() {
    for (protocol, plaintext, scheme, streams) in [
        (None, true, Scheme::Https, false),
        (Some("http"), true, Scheme::Https, false),
        (Some("https"), false, Scheme::Https, false),
        (Some("kubernetes.io/ws"), true, Scheme::Https, true),
        (Some("kubernetes.io/wss"), false, Scheme::Https, true),
        (Some("kubernetes.io/h2c"), true, Scheme::Grpcs, true),
        (Some("grpc"), true, Scheme::Grpcs, true),
    ] {
        let mut objects = served();
        objects.insert(Object::Service(object(json!({
            "metadata": {"namespace": "infra", "name": "web"},
            "spec": {"ports": [{"port": 80, "appProtocol": protocol}]},
        }))));
        let before = translated(&objects);
        assert_eq!(upstreams(&before).len(), usize::from(plaintext), "{protocol:?}");
        let unsupported = (ConditionType::ResolvedRefs, Reason::UnsupportedProtocol);
        assert_eq!(refused(route(&before, "web")).contains(&unsupported), !plaintext, "{protocol:?}");
        add_policy(&mut objects, "tls", 0, &web(), &system());
        let [upstream] = &*upstreams(&translated(&objects)) else { panic!("one upstream") };
        assert_eq!((upstream.scheme, upstream.timeout.is_some()), (scheme, streams), "{protocol:?}");
    }
}

#[test]
fn a_grpc_route_is_served_over_tls_or_answers_unavailable() {
    for (hostname, honoured) in [(HOST, true), ("other.test", false)] {
        let mut objects = world();
        add_service(&mut objects, "web");
        let spec = json!({
            "parentRefs": [{"name": "public"}], "hostnames": [hostname],
            "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
        });
        add_grpc_route(&mut objects, "web", &spec);
        add_policy(&mut objects, "tls", 0, &web(), &system());
        let translation = translated(&objects);
        let schemes: Vec<Scheme> = upstreams(&translation).iter().map(|upstream| upstream.scheme).collect();
        assert_eq!(schemes, if honoured { vec![Scheme::Grpcs] } else { vec![] });
        let accepted = policy(&translation, "tls").conditions.is_true(ConditionType::Accepted);
        assert_eq!(accepted, honoured);
        let planes = translation.data_planes.values();
        let aborts = planes.flat_map(|plane| plane.config.routes()).filter(|(_, route)| {
            route.plugins.raw("fault-injection").is_some_and(|plugin| plugin.to_string().contains("503"))
        });
        assert_eq!(aborts.count() > 0, !honoured);
    }
}

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
fn what_makes_no_sense_is_invalid() {
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
    assert_eq!(message, "spec.options: Option \"a.test/min-version\" is not known here and has no effect.");
}

#[test]
fn a_route_with_any_other_host_is_not_served_and_both_authors_are_told() {
    for hostnames in [&[][..], &["other.test"], &[HOST, "other.test"], &["*.test"]] {
        let mut objects = world();
        add_service(&mut objects, "web");
        route_to(&mut objects, "web", hostnames, &json!([{"name": "web", "port": 80}]));
        add_policy(&mut objects, "tls", 0, &web(), &system());
        let reasons = [(ConditionType::Accepted, Reason::UnsupportedValue)];
        assert_denied(&objects, &reasons, "spec.validation.hostname");
        let translation = translated(&objects);
        let (.., message) = condition(&policy(&translation, "tls").conditions, ConditionType::Accepted);
        assert!(message.contains("HTTPRoute infra/web spec.rules[0].backendRefs[0]"), "{message}");
    }
}

/// A rule for every request to Service `infra/web` that sends this Host instead of the client's.
fn rewriting(objects: &mut Objects, name: &str, host: &str) {
    let filter = json!({"type": "URLRewrite", "urlRewrite": {"hostname": host}});
    let spec = json!({
        "parentRefs": [{"name": "public"}],
        "rules": [{"filters": [filter], "backendRefs": [{"name": "web", "port": 80}]}],
    });
    add_route(objects, name, &spec);
}

#[test]
fn a_rule_that_rewrites_the_host_to_the_name_may_have_any_host() {
    let mut objects = served();
    let plain = run(&objects, &Options::default());
    rewriting(&mut objects, "any", "Backend.test");
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    let [upstream] = &*upstreams(&translation) else { panic!("both routes share an upstream") };
    assert_eq!((upstream.scheme, upstream.upstream_host.as_deref()), (Scheme::Https, Some(HOST)));
    assert_eq!(translation.verdicts.problems, []);
    assert_eq!(upstreams(&plain)[0].upstream_host, None);

    // What is sent decides, not what was asked for.
    let spec = json!({
        "parentRefs": [{"name": "public"}], "hostnames": [HOST],
        "rules": [{
            "filters": [{"type": "URLRewrite", "urlRewrite": {"hostname": "other.test"}}],
            "backendRefs": [{"name": "web", "port": 80}],
        }],
    });
    let mut objects = world();
    add_service(&mut objects, "web");
    add_route(&mut objects, "web", &spec);
    add_policy(&mut objects, "tls", 0, &web(), &system());
    assert_denied(
        &objects,
        &[(ConditionType::Accepted, Reason::UnsupportedValue)],
        "spec.validation.hostname",
    );
}

#[test]
fn a_path_may_be_rewritten_for_http2_over_tls() {
    let mut objects = world();
    add_service(&mut objects, "web");
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": "web"},
        "spec": {"ports": [{"port": 80, "appProtocol": "kubernetes.io/h2c"}]},
    }))));
    let path = json!({"type": "ReplaceFullPath", "replaceFullPath": "/"});
    let spec = json!({
        "parentRefs": [{"name": "public"}], "hostnames": [HOST],
        "rules": [{
            "filters": [{"type": "URLRewrite", "urlRewrite": {"path": path}}],
            "backendRefs": [{"name": "web", "port": 80}],
        }],
    });
    add_route(&mut objects, "web", &spec);
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    assert_eq!(upstreams(&translation)[0].scheme, Scheme::Grpcs);
    assert_eq!(translation.verdicts.problems, []);
}

#[test]
fn a_listener_may_narrow_the_hosts_of_a_route_to_the_name() {
    let listener = |name: &str, port: u16, hostname: &str| json!({"name": name, "port": port, "protocol": "HTTP", "hostname": hostname});
    for (listeners, honoured) in [
        (json!([listener("a", 80, HOST)]), true),
        (json!([listener("a", 80, HOST), listener("b", 8080, HOST)]), true),
        (json!([listener("a", 80, HOST), listener("b", 80, "other.test")]), false),
        (json!([listener("a", 80, "*.test")]), false),
    ] {
        let mut objects = gateway(&listeners);
        add_service(&mut objects, "web");
        route_to(&mut objects, "web", &[], &json!([{"name": "web", "port": 80}]));
        add_policy(&mut objects, "tls", 0, &web(), &system());
        let schemes: Vec<Scheme> =
            upstreams(&translated(&objects)).iter().map(|upstream| upstream.scheme).collect();
        assert_eq!(schemes, if honoured { vec![Scheme::Https] } else { vec![] }, "{listeners}");
    }
}

#[test]
fn a_policy_that_some_routes_keep_from_being_honoured_is_accepted_and_names_them() {
    let mut objects = served();
    route_to(&mut objects, "other", &["other.test"], &json!([{"name": "web", "port": 80}]));
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    let (status, reason, message) =
        condition(&policy(&translation, "tls").conditions, ConditionType::Accepted);
    assert_eq!((status, reason), (ConditionStatus::True, Reason::Accepted));
    assert!(message.contains("HTTPRoute infra/other") && !message.contains("infra/web"), "{message}");
    assert_eq!(upstreams(&translation).len(), 1);
    assert!(route(&translation, "web").get(ConditionType::PartiallyInvalid).is_none());
    assert!(route(&translation, "other").is_true(ConditionType::PartiallyInvalid));
}

#[test]
fn only_the_share_of_the_backend_is_denied() {
    let mut objects = world();
    add_service(&mut objects, "web");
    add_service(&mut objects, "plain");
    let backends =
        json!([{"name": "web", "port": 80, "weight": 1}, {"name": "plain", "port": 80, "weight": 3}]);
    route_to(&mut objects, "web", &["other.test"], &backends);
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    let plane = translation.data_planes.values().next().unwrap();
    let routes =
        serde_json::to_value(plane.config.routes().map(|(_, route)| route).collect::<Vec<_>>()).unwrap();
    let targets = &routes[0]["plugins"]["traffic-split"]["rules"][0]["weighted_upstreams"];
    assert_eq!((&targets[0]["upstream_id"], &targets[0]["weight"]), (&json!("status-500"), &json!(1)));
    assert_eq!(targets[1]["weight"], 3);
}

#[test]
fn the_oldest_policy_of_a_target_wins_whether_or_not_it_can_be_honoured() {
    let conflicted = [(ConditionType::Accepted, Reason::Conflicted)];
    for targets in [web(), web_port("main")] {
        let mut objects = served();
        add_named_port(&mut objects, None);
        add_policy(&mut objects, "b", 1, &targets, &system());
        add_policy(&mut objects, "c", 1, &targets, &json!({"hostname": "nonsense!"}));
        let translation = translated(&objects);
        assert!(policy(&translation, "b").conditions.is_true(ConditionType::Accepted));
        assert_eq!(refused(&policy(&translation, "c").conditions), conflicted);
        assert_eq!(upstreams(&translation)[0].scheme, Scheme::Https);

        // Older, though its name is last and it makes no sense.
        add_policy(&mut objects, "z", 0, &targets, &json!({"hostname": HOST}));
        let translation = translated(&objects);
        assert_eq!(
            refused(&policy(&translation, "z").conditions),
            [(ConditionType::Accepted, Reason::Invalid)]
        );
        let (.., message) = condition(&policy(&translation, "b").conditions, ConditionType::Accepted);
        assert_eq!(
            message,
            "spec.targetRefs[0]: BackendTLSPolicy infra/z has the same target and takes precedence, so that only it \
             counts."
        );
        assert_eq!(upstreams(&translation), []);
    }
}

/// Service `infra/web` with ports `one` and `two`, and a route to each.
fn two_ports() -> Objects {
    let mut objects = world();
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": "web"},
        "spec": {"ports": [{"port": 1, "name": "one"}, {"port": 2, "name": "two"}]},
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"namespace": "infra", "name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 8080, "name": "one"}, {"port": 8080, "name": "two"}],
    }))));
    route_to(&mut objects, "one", &["one.test"], &json!([{"name": "web", "port": 1}]));
    route_to(&mut objects, "two", &["two.test"], &json!([{"name": "web", "port": 2}]));
    objects
}

/// The names verified on the ports of [`two_ports`], sorted; empty for plaintext.
fn verified(translation: &Translation) -> Vec<String> {
    let mut names: Vec<String> = upstreams(translation)
        .into_iter()
        .map(|upstream| upstream.upstream_host.unwrap_or_default())
        .collect();
    names.sort_unstable();
    names
}

fn named(hostname: &str) -> Value {
    json!({"wellKnownCACertificates": "System", "hostname": hostname})
}

#[test]
fn a_policy_for_a_port_precedes_one_for_the_service_without_conflict() {
    let mut objects = two_ports();
    add_policy(&mut objects, "all", 0, &web(), &named("two.test"));
    add_policy(&mut objects, "one", 1, &web_port("one"), &named("one.test"));
    let translation = translated(&objects);
    assert_eq!(verified(&translation), ["one.test", "two.test"]);
    for name in ["all", "one"] {
        assert!(policy(&translation, name).conditions.is_true(ConditionType::Accepted), "{name}");
    }
}

#[test]
fn a_policy_for_a_port_leaves_the_others_alone() {
    let mut objects = two_ports();
    add_policy(&mut objects, "one", 0, &web_port("one"), &named("one.test"));
    assert_eq!(verified(&translated(&objects)), ["", "one.test"]);
}

#[test]
fn a_target_that_does_not_exist_is_not_found() {
    let not_found = [(ConditionType::Accepted, Reason::TargetNotFound)];
    let mut objects = two_ports();
    add_policy(&mut objects, "tls", 0, &web_port("three"), &system());
    let translation = translated(&objects);
    assert_eq!(refused(&policy(&translation, "tls").conditions), not_found);
    assert_eq!(verified(&translation), ["", ""]);

    let mut objects = world();
    route_to(&mut objects, "web", &[HOST], &json!([{"name": "web", "port": 80}]));
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    assert_eq!(refused(&policy(&translation, "tls").conditions), not_found);
    let missing = [(ConditionType::ResolvedRefs, Reason::BackendNotFound)];
    assert_eq!(refused(route(&translation, "web")), missing);
}

#[test]
fn a_policy_that_loses_one_of_its_targets_says_which_and_keeps_the_others() {
    let mut objects = two_ports();
    let port = |name: &str| json!({"group": "", "kind": "Service", "name": "web", "sectionName": name});
    add_policy(&mut objects, "old", 0, &json!([port("one")]), &named("one.test"));
    let bucket = json!({"group": "a.test", "kind": "Bucket", "name": "web"});
    let unused = json!({"group": "", "kind": "Service", "name": "unused"});
    let targets = json!([port("two"), port("one"), bucket, unused, port("two")]);
    add_policy(&mut objects, "new", 1, &targets, &named("two.test"));
    let translation = translated(&objects);
    assert_eq!(verified(&translation), ["one.test", "two.test"]);
    let (status, reason, message) =
        condition(&policy(&translation, "new").conditions, ConditionType::Accepted);
    assert_eq!((status, reason), (ConditionStatus::False, Reason::Conflicted));
    assert!(message.contains("spec.targetRefs[1]: ") && message.contains("spec.targetRefs[2].kind: "));
    assert!(!message.contains("spec.targetRefs[0]") && !message.contains("spec.targetRefs[3]"), "{message}");
    assert!(!message.contains("spec.targetRefs[4]"), "a target listed twice is no conflict: {message}");
}

#[test]
fn a_policy_no_attached_route_has_to_do_with_gets_no_verdict() {
    let mut objects = served();
    add_service(&mut objects, "unused");
    add_policy(
        &mut objects,
        "unused",
        0,
        &json!([{"group": "", "kind": "Service", "name": "unused"}]),
        &system(),
    );
    add_policy(
        &mut objects,
        "bucket",
        0,
        &json!([{"group": "", "kind": "Bucket", "name": "web"}]),
        &system(),
    );
    assert!(translated(&objects).verdicts.policies.is_empty());

    // A route that is not attached, and one that may not use the Service.
    let mut objects = world();
    add_service(&mut objects, "web");
    let spec = json!({
        "parentRefs": [{"name": "public", "sectionName": "none"}], "hostnames": [HOST],
        "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
    });
    add_route(&mut objects, "detached", &spec);
    add_policy(&mut objects, "tls", 0, &web(), &system());
    assert!(translated(&objects).verdicts.policies.is_empty());
}

#[test]
fn a_policy_counts_through_a_reference_from_another_namespace_only_if_granted() {
    let mut objects = gateway(&json!([{
        "name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}},
    }]));
    add_service(&mut objects, "web");
    add_policy(&mut objects, "tls", 0, &web(), &system());
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"namespace": "app", "name": "web"},
        "spec": {
            "parentRefs": [{"name": "public", "namespace": "infra"}], "hostnames": [HOST],
            "rules": [{"backendRefs": [{"name": "web", "namespace": "infra", "port": 80}]}],
        },
    }))));
    assert!(translated(&objects).verdicts.policies.is_empty());
    objects.insert(Object::ReferenceGrant(object(json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ReferenceGrant",
        "metadata": {"namespace": "infra", "name": "app"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "app"}],
            "to": [{"group": "", "kind": "Service"}],
        },
    }))));
    let translation = translated(&objects);
    assert!(policy(&translation, "tls").conditions.is_true(ConditionType::Accepted));
    assert_eq!(upstreams(&translation)[0].scheme, Scheme::Https);
}

/// One combination of policy, route and Service.
#[derive(Debug)]
struct Combination<'a> {
    validation: &'a Value,
    targets: &'a Value,
    hostnames: &'a [&'a str],
    listener: Option<&'a str>,
    rewrite: Option<&'a str>,
    protocol: Option<&'a str>,
}

impl Combination<'_> {
    fn objects(&self, certificate: &str) -> Objects {
        let mut objects = gateway(&json!([{
            "name": "http", "port": 80, "protocol": "HTTP", "hostname": self.listener,
        }]));
        add_config_map(&mut objects, "good", &json!({"ca.crt": certificate}));
        add_named_port(&mut objects, self.protocol);
        let rewrite =
            self.rewrite.map(|host| json!({"type": "URLRewrite", "urlRewrite": {"hostname": host}}));
        let rule = json!({
            "filters": rewrite.into_iter().collect::<Value>(), "backendRefs": [{"name": "web", "port": 80}],
        });
        let spec = json!({"parentRefs": [{"name": "public"}], "hostnames": self.hostnames, "rules": [rule]});
        add_route(&mut objects, "web", &spec);
        add_policy(&mut objects, "tls", 0, self.targets, self.validation);
        objects
    }

    /// That connections to the port are verified as the policy says, if there are any. Returns whether there are.
    fn check(&self, certificate: &str) -> bool {
        let translation = translated(&self.objects(certificate));
        let upstreams = upstreams(&translation);
        for upstream in &upstreams {
            assert!(matches!(upstream.scheme, Scheme::Https | Scheme::Grpcs), "{self:?}");
            assert_eq!(upstream.pass_host, PassHost::Rewrite, "{self:?}");
            let host = upstream.upstream_host.as_deref().unwrap();
            assert_eq!(self.validation, &named(host), "{self:?}");
            match self.rewrite {
                Some(rewrite) => assert_eq!(rewrite, host, "{self:?}"),
                // Then the client's Host cannot have been another one.
                None => {
                    for (_, route) in translation.data_planes.values().flat_map(|plane| plane.config.routes())
                    {
                        let served: Vec<&String> = route.host.iter().chain(&route.hosts).collect();
                        assert_eq!(served, [host], "{self:?}");
                    }
                }
            }
        }
        // Whatever is not honoured is said to the author of the policy, if it counts at all.
        for verdict in translation.verdicts.policies.values() {
            let accepted = verdict.conditions.is_true(ConditionType::Accepted);
            assert_eq!(accepted, !upstreams.is_empty(), "{self:?}");
        }
        !upstreams.is_empty()
    }
}

/// Every kind of policy against every kind of route: a port that a policy targets is spoken to over TLS with the name
/// the policy has verified, or not at all.
#[test]
fn no_combination_leaves_a_targeted_port_in_plaintext_or_unverified() {
    let certificate = certificate();
    let names = json!([{"type": "Hostname", "hostname": HOST}]);
    let validations = [
        system(),
        named("other.test"),
        named("*.test"),
        named("10.0.0.1"),
        named(""),
        custom("good"),
        custom("absent"),
        json!({"hostname": HOST}),
        json!({"hostname": HOST, "wellKnownCACertificates": "Mozilla"}),
        json!({"hostname": HOST, "wellKnownCACertificates": "System", "subjectAltNames": names}),
    ];
    let hostnames: [&[&str]; 6] = [&[], &[HOST], &["other.test"], &["*.test"], &[HOST, "other.test"], &["!"]];
    let mut honoured = 0;
    for validation in &validations {
        for targets in [web(), web_port("main")] {
            for hostnames in hostnames {
                for listener in [None, Some(HOST), Some("*.test"), Some("other.test")] {
                    for rewrite in [None, Some(HOST), Some("other.test")] {
                        for protocol in [None, Some("kubernetes.io/wss"), Some("kubernetes.io/h2c")] {
                            let combination = Combination {
                                validation,
                                targets: &targets,
                                hostnames,
                                listener,
                                rewrite,
                                protocol,
                            };
                            honoured += usize::from(combination.check(&certificate));
                        }
                    }
                }
            }
        }
    }
    assert!(honoured > 100, "{honoured}");
}
