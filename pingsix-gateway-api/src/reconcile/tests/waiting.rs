//! References about which the API server does not answer.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pingsix_translate::ObjectName;
use serde_json::Value;

use super::*;

fn owner() -> ObjectKey {
    ObjectKey::new(Kind::Gateway, "infra", "web")
}

fn set_key() -> ObjectKey {
    ObjectKey::new(Kind::ListenerSet, "infra", "shop")
}

fn plane() -> DataPlaneKey {
    DataPlaneKey::Gateway { gateway: ObjectName::new("infra", "web"), port: None }
}

fn secret_key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::Secret, "infra", name)
}

fn named(name: &str, version: u32, rest: &Value) -> Value {
    let mut object = rest.clone();
    object["metadata"]["name"] = json!(name);
    object["metadata"]["namespace"] = json!("infra");
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    object["metadata"]["generation"] = json!(version);
    object
}

fn https(name: &str, secret: &str) -> Value {
    json!({
        "name": name, "port": 443, "protocol": "HTTPS", "hostname": format!("{name}.test"),
        "tls": {"certificateRefs": [{"name": secret}]},
    })
}

/// The Gateway with a listener for HTTP, and one for HTTPS if there is a Secret; ListenerSets are allowed if asked for.
fn web(version: u32, secret: Option<&str>, allows: bool) -> Value {
    let mut listeners = vec![json!({"name": "http", "port": 80, "protocol": "HTTP"})];
    listeners.extend(secret.map(|secret| https("own", secret)));
    let mut spec = json!({"gatewayClassName": "pingsix", "listeners": listeners});
    if allows {
        spec["allowedListeners"] = json!({"namespaces": {"from": "Same"}});
    }
    named("web", version, &json!({"spec": spec}))
}

fn set(version: u32, secret: &str) -> Value {
    let spec = json!({"parentRef": {"name": "web"}, "listeners": [https("shop", secret)]});
    named("shop", version, &json!({"spec": spec}))
}

fn secret(name: &str, host: &str) -> Value {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new([host.to_owned()]).unwrap().self_signed(&key).unwrap();
    let [certificate, key] = [certificate.pem(), key.serialize_pem()].map(|pem| BASE64_STANDARD.encode(pem));
    named(name, 1, &json!({"type": "kubernetes.io/tls", "data": {"tls.crt": certificate, "tls.key": key}}))
}

impl Follower {
    /// With a route to a Service, and this Gateway.
    fn serving(gateway: Value) -> Self {
        let mut follower = Self::new();
        apply(&mut follower, Kind::GatewayClass, class());
        apply(&mut follower, Kind::Service, named("cart", 1, &json!({"spec": {"ports": [{"port": 80}]}})));
        let rules = json!([{"backendRefs": [{"name": "cart", "port": 80}]}]);
        let spec = json!({"parentRefs": [{"name": "web"}], "rules": rules});
        apply(&mut follower, Kind::HttpRoute, named("cart", 1, &json!({"spec": spec})));
        follower.scale(1);
        apply(&mut follower, Kind::Gateway, gateway);
        follower
    }

    /// The Service has one endpoint, at another address.
    fn scale(&mut self, version: u32) {
        let labels = json!({"kubernetes.io/service-name": "cart"});
        let slice = json!({
            "metadata": {"labels": labels}, "addressType": "IPv4", "ports": [{"port": 8080}],
            "endpoints": [{"addresses": [format!("10.0.0.{version}")]}],
        });
        apply(self, Kind::EndpointSlice, named("cart", version, &slice));
    }

    /// Whether the data plane has exactly this endpoint.
    fn is_at(&self, version: u32) -> bool {
        let held = self.held[&plane()].values();
        let addresses: Vec<&String> = held.filter(|text| text.contains("10.0.0.")).collect();
        !addresses.is_empty() && addresses.iter().all(|text| text.contains(&format!("10.0.0.{version}:8080")))
    }

    /// The certificates that are shown, as documents.
    fn shown(&self) -> Vec<&str> {
        let documents = self.held[&plane()].iter();
        documents.filter(|(key, _)| key.starts_with("ssls/")).map(|(_, text)| text.as_str()).collect()
    }

    fn answer(&mut self, key: ObjectKey) {
        let owners = self.reconciler.answered(key);
        self.reconcile(owners);
    }
}

#[test]
fn a_listener_set_without_an_answer_delays_nothing_else_allowed_or_not() {
    for allows in [false, true] {
        let mut follower = Follower::serving(web(1, None, allows));
        apply(&mut follower, Kind::ListenerSet, set(1, "unanswered"));
        for version in 2..5 {
            follower.scale(version);
            assert!(follower.is_at(version), "endpoints are stale, allowed: {allows}");
        }
        if follower.waiting.is_empty() {
            assert!(!allows, "who is not allowed need not be waited for");
            continue;
        }
        assert!(!follower.told.contains_key(&set_key()), "it counts as not there until then");
        follower.lose_patience();
        let said = &follower.told[&set_key()];
        let word = if allows {
            "The API server has not answered whether Secret infra/unanswered exists"
        } else {
            "NotAllowed"
        };
        assert!(said.contains(word), "{said}");
        follower.scale(9);
        assert!(follower.is_at(9) && follower.shown().is_empty());

        // The answer comes, however late.
        apply(&mut follower, Kind::Secret, secret("unanswered", "shop.test"));
        follower.answer(secret_key("unanswered"));
        assert_eq!(follower.shown().len(), usize::from(allows));
        let said = &follower.told[&set_key()];
        assert!(!said.contains("The API server has not answered"), "{said}");
    }
}

#[test]
fn fresh_names_every_ten_seconds_keep_nothing_from_being_published() {
    let mut follower = Follower::serving(web(1, Some("own"), true));
    apply(&mut follower, Kind::Secret, secret("own", "own.test"));
    follower.answer(secret_key("own"));
    let (start, own) = (Instant::now(), follower.shown().join(""));
    assert!(own.contains("own.test"));
    for version in 1..60 {
        apply(&mut follower, Kind::ListenerSet, set(version, &format!("fresh-{version}")));
        let now = start + std::time::Duration::from_secs(10) * version;
        let owners = follower.reconciler.end_waits(now, true);
        follower.reconcile(owners);
        follower.scale(version + 1);
        assert!(follower.is_at(version + 1), "endpoints are stale after {version} names");
        assert_eq!(follower.shown(), [own.as_str()]);
    }
    let said = &follower.told[&set_key()];
    assert!(
        said.contains("The API server has not answered"),
        "its author is told, whatever it asks for next: {said}"
    );
}

#[test]
fn a_certificate_is_shown_until_it_is_known_what_replaces_it() {
    let mut follower = Follower::serving(web(1, Some("old"), false));
    assert_eq!(follower.waiting[&owner()], [secret_key("old")].into());
    apply(&mut follower, Kind::Secret, secret("old", "own.test"));
    follower.answer(secret_key("old"));
    let before = follower.held[&plane()].clone();
    assert_eq!(follower.shown().len(), 1);

    // The Gateway names another Secret, whose watch begins; that of the first ends.
    apply(&mut follower, Kind::Gateway, web(2, Some("new"), false));
    assert_eq!(follower.waiting[&owner()], [secret_key("new")].into());
    assert_eq!(follower.reconciler.referenced(), [secret_key("new")].into());
    let effects = follower.reconciler.unwatched(&secret_key("old"));
    follower.reconcile(effects.owners);
    assert_eq!(follower.held[&plane()], before);
    follower.scale(2);
    assert!(follower.is_at(2));
    assert_eq!(follower.shown().len(), 1);

    // The certificate that replaces it is there.
    apply(&mut follower, Kind::Secret, secret("new", "new.test"));
    follower.answer(secret_key("new"));
    assert!(follower.waiting.is_empty());
    let shown = follower.shown();
    assert!(shown.len() == 1 && follower.held[&plane()] != before, "{shown:?}");

    // Another certificate never gets an answer: its own listener is served no longer, and its status says so.
    apply(&mut follower, Kind::Gateway, web(3, Some("never"), false));
    assert_eq!(follower.shown().len(), 1);
    follower.lose_patience();
    assert!(follower.shown().is_empty() && follower.is_at(2));
    let said = &follower.told[&owner()];
    assert!(said.contains("The API server has not answered whether Secret infra/never exists"), "{said}");
    // Not there is an answer too.
    follower.answer(secret_key("never"));
    let said = &follower.told[&owner()];
    assert!(said.contains("InvalidCertificateRef"), "{said}");
}

#[test]
fn after_a_restart_an_owner_waits_for_a_bounded_time_despite_fresh_names() {
    let mut follower = Follower::serving(web(1, Some("unanswered"), true));
    let start = Instant::now();
    assert!(follower.held.is_empty(), "what an earlier process has published stays");
    follower.reconciler.end_waits(start, true);
    // Others keep adding names, and the API server is away for a while.
    let away = start + std::time::Duration::from_secs(50);
    assert!(follower.reconciler.end_waits(away, false).is_empty());
    for version in 1..9 {
        apply(&mut follower, Kind::ListenerSet, set(version, &format!("fresh-{version}")));
        assert!(follower.held.is_empty());
        let now = away + ANSWER_TIMEOUT / 9 * version;
        assert!(follower.reconciler.end_waits(now, true).is_empty(), "nobody waits while it is away");
    }
    let owners = follower.reconciler.end_waits(away + ANSWER_TIMEOUT, true);
    assert_eq!(owners, [owner()].into());
    follower.reconcile(owners);
    // All objects with known references are published.
    assert!(follower.is_at(1) && follower.shown().is_empty());
    for key in [owner(), set_key()] {
        let said = &follower.told[&key];
        assert!(said.contains("The API server has not answered whether Secret infra/"), "{said}");
    }
    apply(&mut follower, Kind::Secret, secret("unanswered", "own.test"));
    follower.answer(secret_key("unanswered"));
    assert_eq!(follower.shown().len(), 1);
    follower.answer_everything();
    assert_eq!(follower.result(), rebuilt(&follower).result());
}

#[test]
fn an_unanswered_ingress_stays_as_it_was_and_a_new_policy_fails_closed() {
    let mut follower = Follower::serving(web(1, None, false));
    let controller = json!({"controller": "pingsix.io/gateway-controller"});
    let class = json!({"metadata": {"name": "web", "resourceVersion": "1"}, "spec": controller});
    apply(&mut follower, Kind::IngressClass, class);
    let ingress = |version: u32, secret: Option<&str>, path: &str| {
        let backend = json!({"service": {"name": "cart", "port": {"number": 80}}});
        let paths = json!([{"path": path, "pathType": "Prefix", "backend": backend}]);
        let mut spec =
            json!({"ingressClassName": "web", "rules": [{"host": "a.test", "http": {"paths": paths}}]});
        if let Some(secret) = secret {
            spec["tls"] = json!([{"hosts": ["a.test"], "secretName": secret}]);
        }
        named("shop", version, &json!({"spec": spec}))
    };
    apply(&mut follower, Kind::Ingress, ingress(1, None, "/one"));
    let plane = DataPlaneKey::Ingress { class: "web".into(), port: None };
    let text = |follower: &Follower| follower.held[&plane].values().cloned().collect::<String>();
    apply(&mut follower, Kind::Ingress, ingress(2, Some("unanswered"), "/two"));
    assert!(text(&follower).contains("/one") && !text(&follower).contains("/two"));
    follower.scale(2);
    assert!(text(&follower).contains("10.0.0.2"));
    follower.lose_patience();
    assert!(text(&follower).contains("/two"));
    let problems = follower.reconciler.problems(&plane.owner());
    assert!(problems.iter().any(|problem| problem.reason == Reason::Pending), "{problems:?}");

    let policy = json!({
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": "cart"}],
            "validation": {
                "hostname": "cart.test", "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "roots"}],
            },
        },
    });
    apply(&mut follower, Kind::BackendTlsPolicy, named("cart", 1, &policy));
    follower.scale(3);
    let held = |follower: &Follower| follower.held[&self::plane()].values().cloned().collect::<String>();
    assert!(!held(&follower).contains("10.0.0."), "a backend is reached without its policy");
    follower.lose_patience();
    let key = ObjectKey::new(Kind::BackendTlsPolicy, "infra", "cart");
    assert!(follower.told[&key].contains("The API server has not answered"), "{}", follower.told[&key]);
    assert!(!held(&follower).contains("10.0.0."), "{}", held(&follower));
}
