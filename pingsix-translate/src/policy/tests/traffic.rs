//! BackendTrafficPolicies: settings of upstreams, verdicts, and the traffic that they leave alone.

use super::*;
use crate::fixture::{add_certificate, pem};
use crate::pingsix::{CheckType, HashOn, SelectionType, Timeout};
use crate::pipeline::Translator;

fn add_traffic_policy(objects: &mut Objects, name: &str, second: u32, targets: &Value, settings: &Value) {
    let mut spec = settings.clone();
    spec["targetRefs"] = targets.clone();
    objects.insert(Object::BackendTrafficPolicy(object(json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "BackendTrafficPolicy",
        "metadata": {
            "namespace": "infra", "name": name, "generation": 5,
            "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
        },
        "spec": spec,
    }))));
}

fn traffic_policy<'t>(translation: &'t Translation, name: &str) -> &'t Conditions {
    &translation.verdicts.policies[&ObjectKey::new(Kind::BackendTrafficPolicy, "infra", name)].conditions
}

/// The one upstream of Service `infra/web` under a policy, and the verdict on the policy.
fn under(settings: &Value) -> (Upstream, Vec<(ConditionType, Reason)>) {
    let mut objects = served();
    add_traffic_policy(&mut objects, "traffic", 0, &web(), settings);
    let translation = translated(&objects);
    let [upstream] = &*upstreams(&translation) else { panic!("one upstream: {settings}") };
    (upstream.clone(), refused(traffic_policy(&translation, "traffic")))
}

fn hash(r#type: &str, name: Option<&str>) -> Value {
    json!({"loadBalancer": {"type": "ConsistentHash", "consistentHash": {"type": r#type, "name": name}}})
}

#[test]
fn every_choice_of_endpoints_has_its_fields() {
    for (settings, selection, hash_on, key) in [
        (json!({"loadBalancer": {"type": "RoundRobin"}}), SelectionType::RoundRobin, HashOn::Vars, "uri"),
        (json!({"loadBalancer": {"type": "Random"}}), SelectionType::Random, HashOn::Vars, "uri"),
        (hash("SourceIP", None), SelectionType::Ketama, HashOn::Vars, "remote_addr"),
        (hash("Header", Some("X-User")), SelectionType::Ketama, HashOn::Head, "x-user"),
        (hash("Cookie", Some("User")), SelectionType::Ketama, HashOn::Cookie, "User"),
        (hash("QueryParam", Some("user")), SelectionType::Ketama, HashOn::Vars, "arg_user"),
        (hash("URI", None), SelectionType::Ketama, HashOn::Vars, "uri"),
    ] {
        let (upstream, refused) = under(&settings);
        let got = (upstream.r#type, upstream.hash_on, &*upstream.key, refused);
        assert_eq!(got, (selection, hash_on, key, vec![]), "{settings}");
    }
}

#[test]
fn a_check_has_its_fields() {
    let (upstream, refused) = under(&json!({"healthCheck": {"active": {
        "type": "HTTP", "interval": "5s", "healthyThreshold": 2, "unhealthyThreshold": 4, "port": 9000,
        "http": {"path": "/health?a=b", "hostname": "probe.test", "expectedStatuses": [200, 204]},
    }}}));
    let active = upstream.checks.unwrap().active;
    assert_eq!(
        (active.r#type, &*active.http_path, active.port),
        (CheckType::Http, "/health?a=b", Some(9000))
    );
    assert_eq!(active.host.as_deref(), Some("probe.test"));
    let (healthy, unhealthy) = (active.healthy.unwrap(), active.unhealthy.unwrap());
    assert_eq!((healthy.interval, healthy.successes, healthy.http_statuses), (5, 2, vec![200, 204]));
    assert_eq!((unhealthy.http_failures, unhealthy.tcp_failures, refused), (4, 4, vec![]));
    let (upstream, _) = under(&json!({"healthCheck": {"active": {"type": "TCP"}}}));
    let active = upstream.checks.unwrap().active;
    assert_eq!((active.r#type, active.healthy.unwrap().interval), (CheckType::Tcp, 3));
}

#[test]
fn a_probe_over_tls_sends_the_name_that_is_verified() {
    let mut objects = served();
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let check = json!({"type": "HTTP", "http": {"hostname": "probe.test"}});
    add_traffic_policy(&mut objects, "traffic", 0, &web(), &json!({"healthCheck": {"active": check}}));
    let upstream = upstreams(&translated(&objects)).remove(0);
    let active = upstream.checks.unwrap().active;
    assert_eq!((active.r#type, active.host.as_deref()), (CheckType::Https, Some(HOST)));
}

#[test]
fn timeouts_and_retries_of_a_route_win() {
    let settings = json!({
        "timeout": {"connect": "2s", "send": "20s", "read": "1m30s"}, "retry": {"numRetries": 3, "timeout": "10s"},
    });
    let (upstream, _) = under(&settings);
    assert_eq!(upstream.timeout, Some(Timeout { connect: 2, send: 20, read: 90 }));
    assert_eq!((upstream.retries, upstream.retry_timeout), (Some(3), Some(10)));
    let (upstream, _) = under(&json!({"timeout": {"read": "7s"}, "retry": {"numRetries": 0}}));
    assert_eq!((upstream.timeout, upstream.retries), (Some(Timeout { connect: 5, send: 30, read: 7 }), None));

    let mut objects = world();
    add_service(&mut objects, "web");
    let spec = json!({"parentRefs": [{"name": "public"}], "rules": [{
        "backendRefs": [{"name": "web", "port": 80}], "timeouts": {"request": "40s"}, "retry": {"attempts": 1},
    }]});
    add_route(&mut objects, "web", &spec);
    add_traffic_policy(&mut objects, "traffic", 0, &web(), &settings);
    let upstream = upstreams(&translated(&objects)).remove(0);
    assert_eq!(upstream.timeout, Some(Timeout { connect: 2, send: 40, read: 40 }));
    assert_eq!((upstream.retries, upstream.retry_timeout), (Some(1), Some(10)));
}

#[test]
fn a_policy_that_pingsix_cannot_honour_leaves_traffic_alone() {
    let without = upstreams(&translated(&served()));
    let active = |field: &str, value: Value| {
        let mut active = json!({"type": "HTTP"});
        active[field] = value;
        json!({"healthCheck": {"active": active}})
    };
    for (settings, field, reason) in [
        (json!({"loadBalancer": {"type": "LeastRequest"}}), "loadBalancer.type", Reason::UnsupportedValue),
        (json!({"loadBalancer": {"type": "ConsistentHash"}}), "loadBalancer.consistentHash", Reason::Invalid),
        (hash("Header", None), "loadBalancer.consistentHash.name", Reason::Invalid),
        (hash("Header", Some("a b")), "loadBalancer.consistentHash.name", Reason::Invalid),
        (hash("URI", Some("a")), "loadBalancer.consistentHash.name", Reason::Invalid),
        (hash("QueryParam", Some("a=b")), "loadBalancer.consistentHash.name", Reason::Invalid),
        (json!({"healthCheck": {"passive": {}}}), "healthCheck.passive", Reason::UnsupportedValue),
        (active("interval", json!("1500ms")), "healthCheck.active.interval", Reason::UnsupportedValue),
        (active("healthyThreshold", json!(0)), "healthCheck.active.healthyThreshold", Reason::Invalid),
        (active("http", json!({"path": "health"})), "healthCheck.active.http.path", Reason::Invalid),
        (active("http", json!({"hostname": "a b"})), "healthCheck.active.http.hostname", Reason::Invalid),
        (
            active("http", json!({"expectedStatuses": [99]})),
            "healthCheck.active.http.expectedStatuses",
            Reason::Invalid,
        ),
        (json!({"timeout": {"read": "500ms"}}), "timeout.read", Reason::UnsupportedValue),
        (json!({"timeout": {"send": "0s"}}), "timeout.send", Reason::UnsupportedValue),
        (json!({"timeout": {"connect": "25h"}}), "timeout.connect", Reason::UnsupportedValue),
        (json!({"timeout": {"connect": "soon"}}), "timeout.connect", Reason::Invalid),
        (json!({"retry": {"statusCodes": [503]}}), "retry.statusCodes", Reason::UnsupportedValue),
        (json!({"retry": {"numRetries": 17}}), "retry.numRetries", Reason::UnsupportedValue),
        (json!({"sessionPersistence": {}}), "sessionPersistence", Reason::UnsupportedValue),
    ] {
        let mut objects = served();
        add_traffic_policy(&mut objects, "traffic", 0, &web(), &settings);
        let translation = translated(&objects);
        assert_eq!(upstreams(&translation), without, "{settings}");
        assert!(refused(route(&translation, "web")).is_empty(), "{settings}");
        let (_, of_policy, message) =
            condition(traffic_policy(&translation, "traffic"), ConditionType::Accepted);
        assert_eq!(of_policy, reason, "{settings}");
        assert!(message.starts_with(&format!("spec.{field}: ")), "{settings}: {message}");
    }
}

#[test]
fn a_port_policy_precedes_a_service_policy_and_of_two_the_older_counts() {
    let mut objects = world();
    add_named_port(&mut objects, None);
    route_to(&mut objects, "web", &[HOST], &json!([{"name": "web", "port": 80}]));
    let retries = |retries: u32| json!({"retry": {"numRetries": retries}});
    add_traffic_policy(&mut objects, "whole", 0, &web(), &retries(2));
    add_traffic_policy(&mut objects, "younger", 1, &web_port("main"), &retries(4));
    add_traffic_policy(&mut objects, "older", 0, &web_port("main"), &retries(3));
    let translation = translated(&objects);
    assert_eq!(upstreams(&translation)[0].retries, Some(3));
    let accepted = |name| condition(traffic_policy(&translation, name), ConditionType::Accepted).1;
    assert_eq!(
        ["whole", "older", "younger"].map(accepted),
        [Reason::Accepted, Reason::Accepted, Reason::Conflicted]
    );
}

/// A Service that is reached over TLS, with a certificate in Secret `infra/client`.
fn encrypted() -> Objects {
    let mut objects = served();
    add_policy(&mut objects, "tls", 0, &web(), &system());
    add_certificate(&mut objects, "client", &pem::pair(&["client.test"]));
    objects
}

fn certificate_ref(name: &str) -> Value {
    json!({"tls": {"clientCertificateRef": {"name": name}}})
}

#[test]
fn a_client_certificate_is_shown_over_tls() {
    let mut objects = encrypted();
    add_traffic_policy(&mut objects, "traffic", 0, &web(), &certificate_ref("client"));
    let translation = translated(&objects);
    let upstream = upstreams(&translation).remove(0);
    assert!(upstream.tls.unwrap().client_cert.starts_with("-----BEGIN CERTIFICATE-----"));
    assert!(refused(traffic_policy(&translation, "traffic")).is_empty());
    assert!(!format!("{translation:?}").contains("PRIVATE KEY"));
}

#[test]
fn without_its_client_certificate_a_service_is_not_reached() {
    let mut plaintext = served();
    add_certificate(&mut plaintext, "client", &pem::pair(&["client.test"]));
    let with_a_refusal = json!({
        "loadBalancer": {"type": "LeastRequest"}, "tls": {"clientCertificateRef": {"name": "client"}},
    });
    let foreign = json!({"tls": {"clientCertificateRef": {"name": "client", "namespace": "other"}}});
    for (mut objects, settings, resolved) in [
        (encrypted(), certificate_ref("none"), Some(Reason::InvalidCertificateRef)),
        (encrypted(), foreign, Some(Reason::RefNotPermitted)),
        (encrypted(), with_a_refusal, None),
        (plaintext, certificate_ref("client"), None),
    ] {
        add_traffic_policy(&mut objects, "traffic", 0, &web(), &settings);
        let translation = translated(&objects);
        assert_eq!(upstreams(&translation), [], "{settings}");
        let conditions = traffic_policy(&translation, "traffic");
        let accepted = condition(conditions, ConditionType::Accepted);
        assert_eq!(accepted.0, ConditionStatus::False, "{settings}");
        let refs = condition(conditions, ConditionType::ResolvedRefs);
        assert_eq!(Some(refs.1).filter(|_| refs.0 == ConditionStatus::False), resolved, "{settings}");
    }
}

#[test]
fn each_change_of_a_policy_gives_what_a_fresh_translation_does() {
    let options = Options { responder: Some(([127, 0, 0, 1], 9000).into()), ..Options::default() };
    let mut objects = encrypted();
    let mut translator = Translator::new(options.clone());
    let mut ids = BTreeSet::new();
    let certificates = [pem::pair(&["one.test"]), pem::pair(&["two.test"])];
    let settings = [
        json!({}),
        hash("URI", None),
        certificate_ref("client"),
        certificate_ref("none"),
        json!({"loadBalancer": {"type": "LeastRequest"}}),
        json!({"timeout": {"read": "7s"}}),
    ];
    for step in 0..2 * settings.len() {
        add_certificate(&mut objects, "client", &certificates[step / settings.len()]);
        add_traffic_policy(&mut objects, "traffic", 0, &web(), &settings[step % settings.len()]);
        let got = translator.translate(&crate::fixture::snapshot(&objects));
        let fresh = run(&objects, &options);
        let documents = |translation: &Translation| -> Vec<String> {
            let planes = translation.data_planes.values();
            planes
                .flat_map(|plane| {
                    plane.config.iter().map(|(key, document)| format!("{key} {}", document.to_json()))
                })
                .collect()
        };
        assert_eq!(documents(&got), documents(&fresh), "step {step}");
        assert_eq!(got.verdicts.policies, fresh.verdicts.policies, "step {step}");
        ids.extend(documents(&got).into_iter().filter(|text| text.contains("10.0.0.1:8080")));
    }
    // Each effect has an upstream of its own: none, a hash, a timeout, and each certificate.
    assert_eq!(ids.len(), 5, "{ids:?}");
}
