use crate::support::{GATEWAY, Manifests, grpc_route, route, run};
use crate::translate::https;

#[test]
fn port_gateway_and_scheme_choose_the_data_plane() {
    let (manifests, _) = https();
    let path = manifests.path().to_str().unwrap();
    let explain = |arguments: &[&str]| run(["explain", path].iter().chain(arguments));
    explain(&["GET", "https://shop.example.com/cart"])
        .exits(0)
        .says("https (HTTPS port 443, shop.example.com)");
    explain(&["GET", "http://a.test/cart"]).exits(0).says("http (HTTP port 80, any host)");
    explain(&["GET", "http://a.test/cart", "--port", "8080"])
        .exits(1)
        .says("No listener serves this host and port");
    // A mapped port is none of the Gateway's.
    explain(&["GET", "http://a.test:30080/cart"]).exits(0);
    let per_port = ["--layout", "per-port"];
    let run = explain(&["GET", "https://shop.example.com/cart", per_port[0], per_port[1]]).exits(0);
    assert_eq!(run.out.matches("data plane").count(), 1, "{}", run.out);
    run.says("data plane  shop/web:443");
    explain(&["GET", "http://a.test/", "--gateway", "shop/other"])
        .exits(2)
        .warns("Gateway shop/other is not served");
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
    both.says("data plane  shop/web").says("data plane  shop/other");
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
        .says("path prefix /shop.v1.Cart")
        .says("1. GRPCRoute shop/calls spec.rules[0].matches[0]: decides")
        .says("Service shop/cart port 80")
        .says("HTTPRoute shop/pages spec.rules[0].matches[0]: it matches, but comes after");
    explain("http://a.test/shop.v1.Bill/Pay")
        .says("503, given by PingSIX")
        .says("GRPCRoute shop/broken spec.rules[0].matches[0] cannot be honoured, or none of its backends")
        .says(
            "GRPCRoute shop/broken: spec.rules[0].backendRefs[0].name: Service shop/nowhere does not exist.",
        );
}

#[test]
fn arguments_that_make_no_request_are_refused() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let path = manifests.path().to_str().unwrap();
    run(["explain", path, "GET"]).exits(2);
    run(["explain", path, "GE T", "http://a.test/"]).exits(2).warns("is not a method");
    run(["explain", path, "GET", "ftp://a.test/"]).exits(2).warns("neither an http nor an https URL");
    run(["explain", path, "GET", "http://a.test/", "-H", "no colon"]).exits(2).warns("expected NAME: VALUE");
    run(["explain", path, "GET", "a.test/cart", "-H", "Host: b.test", "--http2"])
        .exits(0)
        .says("http://b.test/cart (HTTP/2");
}
