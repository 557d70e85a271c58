//! Policies and HTTPRouteFilters in `check`, `translate`, `explain` and `diff`.

use serde_json::Value;

use crate::diff::{diff, publish};
use crate::support::{Manifests, Run, run};

const KEY: &str = "open-sesame";

/// A route with a rule for `/cart` and one with a filter for `/old`, and one object of each kind.
const OBJECTS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: cart, namespace: shop }
spec:
  parentRefs: [{ name: web }]
  rules:
  - matches: [{ path: { value: /cart } }]
    backendRefs: [{ name: cart, port: 80 }]
  - matches: [{ path: { value: /old } }]
    filters: [{ type: ExtensionRef, extensionRef: { group: pingsix.io, kind: HTTPRouteFilter, name: gone } }]
---
apiVersion: v1
kind: Secret
metadata: { name: keys, namespace: shop }
stringData: { alice: open-sesame }
---
apiVersion: pingsix.io/v1alpha1
kind: SecurityPolicy
metadata: { name: keys, namespace: shop }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart }]
  apiKeyAuth: { credentialRefs: [{ name: keys }] }
---
apiVersion: pingsix.io/v1alpha1
kind: TrafficPolicy
metadata: { name: limit, namespace: shop }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: web }]
  rateLimit: { local: { limit: { requests: 3, unit: Minute } } }
---
apiVersion: pingsix.io/v1alpha1
kind: BackendTrafficPolicy
metadata: { name: tries, namespace: shop }
spec:
  targetRefs: [{ group: '', kind: Service, name: cart }]
  retry: { numRetries: 2 }
---
apiVersion: pingsix.io/v1alpha1
kind: HTTPRouteFilter
metadata: { name: gone, namespace: shop }
spec: { directResponse: { statusCode: 410 } }
";

fn manifests() -> Manifests {
    Manifests::shop(OBJECTS)
}

/// The manifests with another text in place of one.
fn with(old: &str, new: &str) -> Manifests {
    assert_eq!(OBJECTS.matches(old).count(), 1, "{old}");
    Manifests::shop(&OBJECTS.replace(old, new))
}

fn shows_no_key(run: Run) -> Run {
    assert!(!run.out.contains(KEY) && !run.err.contains(KEY), "{run:?}");
    run
}

#[test]
fn check_names_the_field_of_each_kind_that_cannot_be_honoured() {
    shows_no_key(manifests().check().exits(0));
    for (old, new, expected) in [
        (
            "credentialRefs: [{ name: keys }]",
            "credentialRefs: [{ name: none }]",
            "SecurityPolicy shop/keys\n  error: spec.apiKeyAuth.credentialRefs[0].name: Secret shop/none does not exist. \
             [Invalid]",
        ),
        (
            "requests: 3",
            "requests: 0",
            "TrafficPolicy shop/limit\n  error: spec.rateLimit.local.limit.requests: 0 is not a number of requests",
        ),
        (
            "retry: { numRetries: 2 }",
            "loadBalancer: { type: LeastRequest }",
            "BackendTrafficPolicy shop/tries\n  error: spec.loadBalancer.type: PingSIX has RoundRobin, Random and \
             ConsistentHash, and no \"LeastRequest\". [UnsupportedValue]",
        ),
        (
            "statusCode: 410",
            "statusCode: 99",
            "HTTPRoute shop/cart\n  error: spec.rules[1].filters[0].extensionRef: HTTPRouteFilter shop/gone",
        ),
        (
            "name: gone, namespace",
            "name: other, namespace",
            "HTTPRoute shop/cart\n  error: spec.rules[1].filters[0].extensionRef: HTTPRouteFilter shop/gone does not exist.",
        ),
    ] {
        shows_no_key(with(old, new).check().exits(1).prints(expected));
    }
}

#[test]
fn check_refuses_policies_whose_targets_do_not_exist() {
    for (old, new, policy, target) in [
        (
            "kind: HTTPRoute, name: cart",
            "kind: HTTPRoute, name: lost",
            "SecurityPolicy shop/keys",
            "HTTPRoute shop/lost",
        ),
        (
            "kind: Gateway, name: web",
            "kind: Gateway, name: lost",
            "TrafficPolicy shop/limit",
            "Gateway shop/lost",
        ),
        (
            "kind: Service, name: cart",
            "kind: Service, name: lost",
            "BackendTrafficPolicy shop/tries",
            "Service shop/lost",
        ),
    ] {
        with(old, new)
            .check()
            .exits(1)
            .prints(policy)
            .prints(&format!("error: spec.targetRefs[0].name: {target} does not exist. [TargetNotFound]"));
    }
}

/// The reason and status of a condition of an object in a status of `translate`.
fn condition(statuses: &str, kind: &str, path: &str, condition: &str) -> String {
    let kind = format!("\nkind: {kind}\n");
    let status = statuses.split("---\n").find(|status| status.contains(&kind)).expect(statuses);
    let status: Value = serde_saphyr::from_str(status).unwrap();
    let conditions = status["status"].pointer(path).and_then(Value::as_array).expect(statuses);
    let found = conditions.iter().find(|found| found["type"] == condition).expect(statuses);
    format!("{}/{}", found["status"].as_str().unwrap(), found["reason"].as_str().unwrap())
}

#[test]
fn translate_prints_the_status_of_each_policy_and_of_its_targets() {
    let statuses = manifests().translate(&["-o", "status"]).exits(0).out;
    for kind in ["SecurityPolicy", "TrafficPolicy", "BackendTrafficPolicy"] {
        assert_eq!(condition(&statuses, kind, "/ancestors/0/conditions", "Accepted"), "True/Accepted");
    }
    for (kind, path) in [("HTTPRoute", "/parents/0/conditions"), ("Gateway", "/conditions")] {
        assert_eq!(condition(&statuses, kind, path, "pingsix.io/PolicyAffected"), "True/PolicyAffected");
    }
    let overridden = OBJECTS.replace("  rateLimit:", "  strategy: Overrides\n  rateLimit:");
    let own = "
---
apiVersion: pingsix.io/v1alpha1
kind: TrafficPolicy
metadata: { name: own, namespace: shop }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart }]
  rateLimit: { local: { limit: { requests: 4, unit: Minute } } }
";
    let statuses = Manifests::shop(&format!("{overridden}{own}")).translate(&["-o", "status"]).exits(0).out;
    let own = statuses.split("---\n").find(|status| status.contains("  name: own\n")).expect(&statuses);
    assert_eq!(
        condition(own, "TrafficPolicy", "/ancestors/0/conditions", "pingsix.io/Overridden"),
        "True/Overridden"
    );
}

fn explain(manifests: &Manifests, path: &str, more: &[&str]) -> Run {
    let folder = manifests.path().to_str().unwrap();
    let url = format!("http://a.test{path}");
    shows_no_key(run(["explain", folder, "GET", &url].iter().chain(more)))
}

#[test]
fn explain_names_each_policy_and_filter() {
    let manifests = manifests();
    explain(&manifests, "/cart", &[])
        .exits(0)
        .prints("plugins of SecurityPolicy shop/keys: key-auth")
        .prints("plugins of TrafficPolicy shop/limit: limit-count")
        .prints("Service shop/cart port 80, with BackendTrafficPolicy shop/tries\n");
    let old = explain(&manifests, "/old", &[])
        .prints("410, given by PingSIX")
        .prints("with HTTPRouteFilter shop/gone\n");
    assert!(!old.out.contains("BackendTrafficPolicy"), "{}", old.out);
    let json = explain(&manifests, "/cart", &["-o", "json"]).exits(0).json();
    assert_eq!(json[0]["route"]["policies"][0]["policy"], "SecurityPolicy shop/keys");
    assert_eq!(json[0]["answer"]["backends"][0]["objects"][0], "BackendTrafficPolicy shop/tries");
    // A policy that is refused has no effect. A policy of another port has none either.
    for (old, new) in [
        ("retry: { numRetries: 2 }", "loadBalancer: { type: LeastRequest }"),
        ("kind: Service, name: cart", "kind: Service, name: cart, sectionName: other"),
    ] {
        let run = explain(&with(old, new), "/cart", &[]).prints("Service shop/cart port 80\n");
        assert!(!run.out.contains("BackendTrafficPolicy"), "{}", run.out);
    }
    // A rule that its policy closes names the policy.
    explain(&with("requests: 3", "requests: 0"), "/cart", &[])
        .exits(1)
        .prints("500, given by PingSIX")
        .prints("TrafficPolicy shop/limit applies to this rule and cannot be honoured");
}

#[test]
fn explain_prefers_the_policy_of_a_port() {
    let of_port = "
---
apiVersion: pingsix.io/v1alpha1
kind: BackendTrafficPolicy
metadata: { name: of-port, namespace: shop }
spec:
  targetRefs: [{ group: '', kind: Service, name: cart, sectionName: http }]
  retry: { numRetries: 5 }
";
    explain(&Manifests::shop(&format!("{OBJECTS}{of_port}")), "/cart", &[])
        .exits(0)
        .prints("Service shop/cart port 80, with BackendTrafficPolicy shop/of-port\n");
}

#[test]
fn diff_shows_the_policy_behind_each_change() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.yaml");
    let target = format!("file:{}", file.display());
    publish(&manifests(), &file);
    diff(&manifests(), &target, &[]).exits(0);
    let of_service = "  # SecurityPolicy shop/keys (key-auth), TrafficPolicy shop/limit (limit-count)\n";
    let of_upstream = "  # Service shop/cart, BackendTrafficPolicy shop/tries\n";
    for (old, new, header, fields) in [
        ("alice: open-sesame", "alice: other-sesame", of_service, &["plugins.key-auth"][..]),
        (
            "requests: 3",
            "requests: 4",
            of_service,
            &["- plugins.limit-count.count: 3", "+ plugins.limit-count.count: 4"],
        ),
        ("numRetries: 2", "numRetries: 3", of_upstream, &["+ retries: 3"]),
        (
            "statusCode: 410",
            "statusCode: 411",
            "  # HTTPRoute shop/cart, HTTPRouteFilter shop/gone\n",
            &["- service_id: status-410", "+ service_id: status-411"],
        ),
    ] {
        let mut run = shows_no_key(diff(&with(old, new), &target, &[]).exits(1)).prints(header);
        for field in fields {
            run = run.prints(field);
        }
        assert!(!run.out.contains("other-sesame"), "{}", run.out);
    }
    let json = diff(&with("requests: 3", "requests: 4"), &target, &["-o", "json"]).exits(1).json();
    assert_eq!(
        json["dataPlanes"][0]["changes"][0]["owner"],
        of_service.trim_start_matches("  # ").trim_end()
    );
}
