use crate::support::{GATEWAY, Manifests, grpc_route, route, run};
use crate::translate::https;

#[test]
fn port_gateway_and_scheme_choose_the_data_plane() {
    let (manifests, _) = https();
    let path = manifests.path().to_str().unwrap();
    let explain = |arguments: &[&str]| run(["explain", path].iter().chain(arguments));
    explain(&["GET", "https://shop.example.com/cart"])
        .exits(0)
        .prints("https (HTTPS port 443, shop.example.com)");
    explain(&["GET", "http://a.test/cart"]).exits(0).prints("http (HTTP port 80, any host)");
    explain(&["GET", "http://a.test/cart", "--port", "8080"]).exits(1).prints(
        "No listener serves HTTP on port 8080. Served: http (HTTP port 80, any host); https (HTTPS port 443",
    );
    // A mapped port is none of the Gateway's.
    explain(&["GET", "http://a.test:30080/cart"]).exits(0);
    let per_port = ["--layout", "per-port"];
    let run = explain(&["GET", "https://shop.example.com/cart", per_port[0], per_port[1]]).exits(0);
    assert_eq!(run.out.matches("data plane").count(), 1, "{}", run.out);
    run.prints("data plane  shop/web:443");
    explain(&["GET", "http://a.test/", "--gateway", "shop/other"])
        .exits(2)
        .prints_error("Gateway shop/other is not served");
}

#[test]
fn a_forgotten_url_is_not_taken_for_missing_manifests() {
    for arguments in [&["x.yaml"][..], &["x.yaml", "GET"], &["x.yaml", "y.yaml", "POST"]] {
        let run = run(["explain"].iter().chain(arguments)).exits(2);
        run.prints_error("explain needs METHOD and URL after the manifests or --cluster");
    }
    run(["explain", "GET", "http://a.test/"]).exits(2).prints_error("no input; name files or directories");
}

#[test]
fn a_503_names_the_endpoints_the_budget_or_the_annotation() {
    let cart = crate::support::CART.replace("[10.0.0.1]", "[10.0.0.1], conditions: { ready: false }");
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    manifests.write("cart.yaml", &cart);
    run(["explain", manifests.path().to_str().unwrap(), "GET", "http://a.test/cart"])
        .exits(1)
        .prints("HTTPRoute shop/cart spec.rules[0].matches[0] has no endpoint that takes traffic.");
    let explain = |scenario: &str, request: [&str; 2], more: &[&str]| {
        let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/scenarios");
        let path = format!("{scenarios}/{scenario}/input.yaml");
        let run = run(["explain", &path].iter().chain(&request).chain(more));
        run.exits(1).prints("503, given by PingSIX")
    };
    let budget = ["--budget-bytes", "42000"];
    explain("budget/namespace-share", ["GET", "http://old.example.com/four"], &budget).prints(
        "HTTPRoute old/old spec.rules[3].matches[0] is refused, because the data plane has no room for it.",
    );
    explain("annotation/apisix-csrf-key", ["POST", "http://shop.example.com/orders"], &[])
        .prints("is refused, because an annotation of the Ingress cannot be honoured.")
        .prints("problem     Ingress shop/orders: metadata.annotations: k8s.apisix.apache.org/enable-csrf: ");
}

/// Gateway `shop/web` with a port without routes, and one whose listener has no certificate.
fn refused() -> Manifests {
    let listeners = "  - { name: spare, port: 8080, protocol: HTTP, hostname: spare.test }
  - { name: https, port: 443, protocol: HTTPS, tls: { certificateRefs: [{ name: missing }] } }
";
    let only_http =
        route("cart", "/cart", "cart").replace("{ name: web }", "{ name: web, sectionName: http }");
    let manifests = Manifests::shop(&only_http);
    manifests.write("gateway.yaml", &format!("{GATEWAY}{listeners}"));
    manifests
}

#[test]
fn a_port_of_its_own_is_explained_by_its_own_data_plane() {
    let manifests = refused();
    let path = manifests.path().to_str().unwrap();
    let explain = |url: &str| run(["explain", path, "GET", url, "--layout", "per-port"]).exits(1);
    let only =
        |run: &crate::support::Run| assert_eq!(run.out.matches("data plane").count(), 1, "{}", run.out);
    // The listener exists for this host or for others, and no route exists.
    let spare = explain("http://spare.test:8080/cart").prints("data plane  shop/web:8080");
    only(&spare.prints("404\n").prints("No rule is for this host."));
    let other = explain("http://a.test:8080/cart").prints("data plane  shop/web:8080");
    only(
        &other
            .prints("404\n")
            .prints("No listener is for this host. Served: spare (HTTP port 8080, spare.test)."),
    );
    let closed = explain("https://a.test/cart").prints("data plane  shop/web:443");
    only(
        &closed
            .prints("No listener serves HTTPS on port 443. Served: none.")
            .prints("Secret shop/missing does not exist."),
    );
}

#[test]
fn explain_tells_how_pingsix_answers_at_the_port_of_a_refused_listener() {
    let manifests = refused();
    let path = manifests.path().to_str().unwrap();
    let explain =
        |more: &[&str]| run(["explain", path, "GET", "https://a.test/cart"].iter().chain(more)).exits(1);
    explain(&[])
        .prints("none: no listener accepts the connection")
        .prints("Listener https (HTTPS port 443, any host) is not served.")
        .prints("Secret shop/missing does not exist.")
        .prints("PingSIX cannot tell ports apart. If it has one open for this all the same, it answers:\n                Service shop/cart port 80");
    let answer = &explain(&["-o", "json"]).json()[0]["answer"];
    assert_eq!((&answer["kind"], &answer["ifOpen"]["kind"]), (&"closed".into(), &"forward".into()));
}

#[test]
fn a_redirect_of_plaintext_says_nothing_about_requests_over_tls() {
    let (manifests, _) = https();
    let to_https = r"
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: to-https, namespace: shop }
spec:
  parentRefs: [{ name: web, sectionName: http }]
  hostnames: [shop.example.com]
  rules: [{ filters: [{ type: RequestRedirect, requestRedirect: { scheme: https, statusCode: 301 } }] }]
";
    let cart = route("cart", "/cart", "cart").replace("{ name: web }", "{ name: web, sectionName: https }");
    manifests.write("routes.yaml", &format!("{cart}---{to_https}"));
    let path = manifests.path().to_str().unwrap();
    let explain = |url: &str| run(["explain", path, "GET", url]).exits(0);
    let over_tls = explain("https://shop.example.com/cart").prints("Service shop/cart port 80");
    assert!(!over_tls.out.contains("to-https"), "{}", over_tls.out);
    explain("http://shop.example.com/cart").prints("301, Location: https://shop.example.com/cart");
}

#[test]
fn a_rule_that_fails_for_its_listener_says_why() {
    let listeners = "  - { name: other, port: 8080, protocol: HTTP }\n";
    let only_http =
        route("cart", "/cart", "cart").replace("{ name: web }", "{ name: web, sectionName: http }");
    let manifests = Manifests::shop(&only_http);
    manifests.write("gateway.yaml", &format!("{GATEWAY}{listeners}"));
    run(["explain", manifests.path().to_str().unwrap(), "GET", "http://a.test/cart"])
        .exits(1)
        .prints("500, given by PingSIX")
        .prints("HTTPRoute shop/cart: spec.parentRefs[0]: PingSIX cannot tell ports apart");
}

#[test]
fn each_data_plane_that_may_be_meant_is_explained() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    manifests.write(
        "other.yaml",
        GATEWAY.split("---").nth(1).unwrap().replace("name: web", "name: other").as_str(),
    );
    let path = manifests.path().to_str().unwrap();
    let both = run(["explain", path, "GET", "http://a.test/cart"]).exits(0);
    both.prints("data plane  shop/web").prints("data plane  shop/other");
    let one = run(["explain", path, "GET", "http://a.test/cart", "--gateway", "shop/other"]).exits(1);
    assert!(!one.out.contains("shop/web"), "{}", one.out);
}

#[test]
fn calls_are_explained_beside_requests() {
    let routes = [
        route("pages", "/", "cart"),
        grpc_route("calls", "shop.v1.Cart", "cart"),
        grpc_route("broken", "shop.v1.Bill", "nowhere"),
    ];
    let manifests = Manifests::shop(&routes.join("---"));
    let path = manifests.path().to_str().unwrap();
    let explain = |url: &str| run(["explain", path, "POST", url, "--http2"]);
    explain("http://a.test/shop.v1.Cart/Add")
        .exits(0)
        .prints("path prefix /shop.v1.Cart")
        .prints("1. GRPCRoute shop/calls spec.rules[0].matches[0]: decides")
        .prints("Service shop/cart port 80")
        .prints("HTTPRoute shop/pages spec.rules[0].matches[0]: it matches, but comes after");
    explain("http://a.test/shop.v1.Bill/Pay")
        .prints("503, given by PingSIX")
        .prints("GRPCRoute shop/broken spec.rules[0].matches[0] cannot be honoured, or none of its backends")
        .prints(
            "GRPCRoute shop/broken: spec.rules[0].backendRefs[0].name: Service shop/nowhere does not exist.",
        );
}

#[test]
fn arguments_that_make_no_request_are_refused() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let path = manifests.path().to_str().unwrap();
    run(["explain", path, "GET"]).exits(2);
    run(["explain", path, "GE T", "http://a.test/"]).exits(2).prints_error("is not a method");
    run(["explain", path, "GET", "ftp://a.test/"]).exits(2).prints_error("neither an http nor an https URL");
    run(["explain", path, "GET", "http://a.test:80000/"]).exits(2).prints_error("is not between 0 and 65535");
    run(["explain", path, "GET", "http://me:secret@a.test/cart"]).exits(0).prints("GET http://a.test/cart (");
    run(["explain", path, "GET", "http://a.test/", "-H", "no colon"])
        .exits(2)
        .prints_error("expected NAME: VALUE");
    run(["explain", path, "GET", "a.test/cart", "-H", "Host: b.test", "--http2"])
        .exits(0)
        .prints("http://b.test/cart (HTTP/2");
}

#[test]
fn a_forgotten_method_is_named() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let path = manifests.path().to_str().unwrap();
    for url in ["http://a.test/cart", "https://a.test/cart"] {
        let message = format!("explain needs a METHOD before the URL, for example GET {url}");
        run(["explain", path, url]).exits(2).prints_error(&message);
        run(["explain", path, "get", url]).exits(2).prints_error(&message);
        run(["explain", url]).exits(2).prints_error(&message);
    }
    // A method of its own.
    run(["explain", path, "PURGE", "http://a.test/cart"])
        .exits(0)
        .prints("sends PURGE /cart to 10.0.0.1:8080");
}

/// A rule that changes requests, under policies that check them.
const CHECKED: &str = r"
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: checked, namespace: shop }
spec:
  parentRefs: [{ name: web }]
  rules:
  - matches: [{ path: { type: PathPrefix, value: /old } }]
    filters:
    - type: URLRewrite
      urlRewrite: { hostname: inner.example.com, path: { type: ReplacePrefixMatch, replacePrefixMatch: /new } }
    - type: RequestHeaderModifier
      requestHeaderModifier:
        set: [{ name: X-Env, value: prod }, { name: X-Api-Key, value: hidden-from-everybody }]
        remove: [X-Debug]
    backendRefs: [{ name: cart, port: 80 }]
---
apiVersion: v1
kind: Secret
metadata: { name: jwt, namespace: shop }
stringData: { key: a-secret-of-at-least-32-characters }
---
apiVersion: pingsix.io/v1alpha1
kind: SecurityPolicy
metadata: { name: tokens, namespace: shop }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: checked }]
  jwt: { issuer: https://login.example, audience: shop, algorithm: HS256, secretRef: { name: jwt } }
  authorization: { allow: [10.0.0.0/8] }
---
apiVersion: pingsix.io/v1alpha1
kind: TrafficPolicy
metadata: { name: limit, namespace: shop }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: checked }]
  rateLimit: { local: { limit: { requests: 100, unit: Minute } } }
";

#[test]
fn plugins_and_the_sent_request_are_shown_without_secrets() {
    let manifests = Manifests::shop(CHECKED);
    let path = manifests.path().to_str().unwrap();
    let explain = |more: &[&str]| {
        run(["explain", path, "GET", "http://a.test/old/abc?page=2", "-H", "X-Debug: 1"].iter().chain(more))
    };
    let run = explain(&[]).exits(0);
    assert!(!run.out.contains("hidden-from-everybody") && !run.out.contains("a-secret"), "{}", run.out);
    run.prints("  before      ip-restriction: 403 unless the client is in 10.0.0.0/8 (SecurityPolicy shop/tokens)\n")
        .prints("              jwt-auth: 401 without a token in header authorization")
        .prints("              limit-count: 429 after 100 requests of one address in 60 s (TrafficPolicy shop/limit)\n")
        .prints("sends GET /new/abc?page=2 to 10.0.0.1:8080, host inner.example.com\n")
        .prints("                with header x-env: prod\n")
        .prints("                with header x-api-key: <redacted>\n")
        .prints("                without header x-debug\n");
    let json = explain(&["-o", "json"]).exits(0).json();
    let sends = &json[0]["answer"]["backends"][0]["sends"];
    assert_eq!((&sends["target"], &sends["host"]), (&"/new/abc?page=2".into(), &"inner.example.com".into()));
    assert_eq!(sends["headers"][1], serde_json::json!({ "name": "x-debug", "values": [] }));
    let plugins: Vec<&str> =
        json[0]["before"].as_array().unwrap().iter().map(|check| check["plugin"].as_str().unwrap()).collect();
    assert_eq!(plugins, ["ip-restriction", "jwt-auth", "limit-count"]);
    assert_eq!(json[0]["before"][1]["policy"], "SecurityPolicy shop/tokens");
}

#[test]
fn http2_without_tls_is_closed_beside_tls_alone() {
    let (manifests, _) = https();
    manifests.write("routes.yaml", &grpc_route("calls", "shop.v1.Cart", "cart"));
    let path = manifests.path().to_str().unwrap();
    let call = |url: &str, more: &[&str]| {
        let url = format!("{url}/shop.v1.Cart/Get");
        run(["explain", path, "POST", &url, "--http2"].iter().chain(more))
    };
    call("http://a.test", &[])
        .exits(1)
        .prints("none: the connection is closed\n")
        .prints("PingSIX closes connections over HTTP/2 without TLS, because its process also has ports with TLS, such as 443.")
        .prints("A process of PingSIX without ports with TLS answers:");
    let json = call("http://a.test", &["-o", "json"]).json();
    let answer = &json[0]["answer"];
    assert_eq!((&answer["kind"], &answer["cause"]), (&"closed".into(), &"http2WithoutTls".into()));
    assert_eq!(answer["ifOpen"]["kind"], "forward");
    call("http://a.test", &["--layout", "per-port"]).exits(0);
    // Only listener `http` has the host of the other requests.
    run(["explain", path, "POST", "http://a.test/shop.v1.Cart/Get"]).exits(0);
    let warning =
        "warning: spec.parentRefs[0]: PingSIX closes connections over HTTP/2 without TLS on port 80";
    manifests.check().exits(0).prints(warning);
    let per_port = run(["check", path, "--layout", "per-port"]).exits(0);
    assert!(!per_port.out.contains("HTTP/2"), "{}", per_port.out);
}

#[test]
fn a_rule_without_backends_is_named_by_check_and_explain() {
    let backends = "backendRefs: [{ name: cart, port: 80 }]";
    let misspelt = route("cart", "/cart", "cart").replace("backendRefs", "backendRef");
    Manifests::shop(&misspelt).check().exits(1).prints("Did you mean backendRefs? [UnknownField]");
    let without = route("cart", "/cart", "cart").replace(backends, "backendRefs: []");
    let manifests = Manifests::shop(&without);
    let message = "The rule has no backendRefs, so every request gets 500.";
    manifests.check().exits(1).prints(&format!("error: spec.rules[0].backendRefs: {message} [NoBackends]"));
    run(["explain", manifests.path().to_str().unwrap(), "GET", "http://a.test/cart"])
        .exits(1)
        .prints("500, given by PingSIX\n")
        .prints("HTTPRoute shop/cart spec.rules[0].matches[0] has no backend that takes requests.\n")
        .prints(&format!("problem     HTTPRoute shop/cart: spec.rules[0].backendRefs: {message}\n"));
    let redirect = route("cart", "/cart", "cart")
        .replace(backends, "filters: [{ type: RequestRedirect, requestRedirect: { scheme: https } }]");
    let run = Manifests::shop(&redirect).check().exits(0);
    assert!(!run.out.contains("NoBackends"), "{}", run.out);
}

#[test]
fn matches_of_another_scheme_are_left_out() {
    let (manifests, _) = https();
    let for_tls = route("tls", "/cart", "cart")
        .replace("{ name: web }", "{ name: web, sectionName: https }")
        .replace("spec:\n", "spec:\n  hostnames: [shop.example.com]\n");
    let plain = route("plain", "/", "cart").replace("{ name: web }", "{ name: web, sectionName: http }");
    manifests.write("routes.yaml", &format!("{plain}---\n{for_tls}"));
    let path = manifests.path().to_str().unwrap();
    let run = run(["explain", path, "GET", "http://a.test/cart"]).exits(0).prints("HTTPRoute shop/plain");
    assert!(!run.out.contains("HTTPRoute shop/tls"), "{}", run.out);
}
