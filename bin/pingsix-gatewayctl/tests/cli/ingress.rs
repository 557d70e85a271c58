//! Ingresses on the command line.

use crate::serve::Served;
use crate::support::{CART, Manifests, run};

const CLASS: &str = r"
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: { name: pingsix }
spec: { controller: pingsix.io/gateway-controller }
";

const INGRESS: &str = r"
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: web, namespace: shop }
spec:
  ingressClassName: pingsix
  rules:
  - host: shop.example.com
    http:
      paths:
      - { path: /cart, pathType: Prefix, backend: { service: { name: cart, port: { name: http } } } }
      - { path: /gone, pathType: Exact, backend: { service: { name: gone, port: { number: 80 } } } }
";

fn shop(ingress: &str) -> Manifests {
    Manifests::new(&[("class.yaml", CLASS), ("cart.yaml", CART), ("ingress.yaml", ingress)])
}

#[test]
fn an_ingress_class_is_a_data_plane_of_its_own() {
    let manifests = shop(INGRESS);
    manifests
        .translate(&[])
        .exits(1)
        .prints("# data plane IngressClass/pingsix, etcd prefix /pingsix-ingress/pingsix")
        .prints("10.0.0.1:8080")
        .prints_error(
            "error: spec.rules[0].http.paths[1].backend.service.name: Service shop/gone does not exist.",
        );
    let keys = manifests.translate(&["-o", "etcd-json"]).exits(1).json();
    assert!(keys.as_object().unwrap().keys().all(|key| key.starts_with("/pingsix-ingress/pingsix/")));
}

#[test]
fn requests_to_ingresses_are_explained_with_and_without_tls() {
    let manifests = shop(INGRESS);
    let path = manifests.path().to_str().unwrap();
    let explain = |arguments: &[&str]| run(["explain", path].iter().chain(arguments));
    explain(&["GET", "http://shop.example.com/cart/1"])
        .exits(0)
        .prints("data plane  IngressClass/pingsix")
        .prints("http (HTTP port 80, any host)")
        .prints("Ingress shop/web spec.rules[0].http.paths[0]: decides")
        .prints("Service shop/cart port 80");
    explain(&["GET", "https://shop.example.com/cart"]).exits(0).prints("https (HTTPS port 443, any host)");
    // A mapped port is as good.
    explain(&["GET", "http://shop.example.com:30080/cart"]).exits(0);
    explain(&["GET", "http://shop.example.com/gone"])
        .exits(1)
        .prints("Ingress shop/web spec.rules[0].http.paths[1] cannot be honoured")
        .prints("Service shop/gone does not exist.");
    explain(&["GET", "http://shop.example.com/"]).exits(1).prints("No rule for this host matches the path.");
    explain(&["GET", "http://other.test/cart"]).exits(1).prints("No rule is for this host.");
}

#[test]
fn ingresses_that_no_class_of_ours_serves_are_named() {
    let check = |class: &str, ingress: &str| {
        let manifests =
            Manifests::new(&[("class.yaml", class), ("cart.yaml", CART), ("ingress.yaml", ingress)]);
        manifests.check()
    };
    let ingress = INGRESS.replace("name: gone", "name: cart");
    check(CLASS, &ingress).exits(0);
    let without = ingress.replace("  ingressClassName: pingsix\n", "");
    check(CLASS, &without).exits(1).prints("error: spec.ingressClassName: The Ingress names no IngressClass");
    let default = CLASS.replace(
        "{ name: pingsix }",
        "{ name: pingsix, annotations: { ingressclass.kubernetes.io/is-default-class: 'true' } }",
    );
    check(&default, &without).exits(0);
    check(CLASS, &ingress.replace("ClassName: pingsix", "ClassName: other"))
        .exits(1)
        .prints("error: spec.ingressClassName: IngressClass \"other\" does not exist");
    let annotated = without.replace(
        "namespace: shop }",
        "namespace: shop, annotations: { kubernetes.io/ingress.class: other } }",
    );
    check(CLASS, &annotated)
        .exits(1)
        .prints("error: metadata.annotations: IngressClass \"other\" does not exist");
    // The program judged no other object.
    check(&CLASS.replace("pingsix.io/", "example.com/"), &ingress)
        .exits(1)
        .prints("[NothingToCheck]")
        .prints("warning: spec.ingressClassName: IngressClass \"pingsix\" has controller \"example.com/gateway-controller\"");
    let parameters = CLASS.replace(
        "controller }",
        "controller, parameters: { apiGroup: pingsix.io, kind: PingsixProxy, name: p } }",
    );
    check(&parameters, &ingress)
        .exits(1)
        .prints("error: spec.parameters.scope: A PingsixProxy lives in a namespace")
        .prints("error: spec.ingressClassName: IngressClass \"pingsix\" is not served");
}

#[test]
fn ingresses_are_served_below_their_own_prefix_until_the_class_is_gone() {
    let manifests = shop(INGRESS);
    let served = Served::start(&manifests, &["--state", "none"]);
    served.wait_for("published IngressClass/pingsix revision");
    served.wait_for("ready");
    let keys = served.keys("/pingsix-ingress/pingsix/").unwrap();
    assert!(keys.iter().any(|key| key.contains("/routes/")), "{keys:?}");
    manifests.remove("class.yaml");
    served.wait_for("published IngressClass/pingsix (withdrawn)");
    assert_eq!(served.keys("/pingsix-ingress/pingsix/").unwrap(), [""; 0]);
}

#[test]
fn the_pingsix_of_an_ingress_class_listens_with_and_without_tls() {
    let manifests = shop(INGRESS);
    let path = manifests.path().to_str().unwrap();
    run(["pingsix-config", path, "--data-plane", "IngressClass/pingsix"])
        .exits(0)
        .prints("0.0.0.0:80")
        .prints("0.0.0.0:443")
        .prints("/pingsix-ingress/pingsix");
}

const PER_PORT: [&str; 2] = ["--layout", "per-port"];

#[test]
fn an_ingress_class_has_a_data_plane_for_each_port() {
    let manifests = shop(&INGRESS.replace("name: gone", "name: cart"));
    manifests
        .translate(&PER_PORT)
        .exits(0)
        .prints("# data plane IngressClass/pingsix:80, etcd prefix /pingsix-ingress/pingsix:80")
        .prints("# data plane IngressClass/pingsix:443, etcd prefix /pingsix-ingress/pingsix:443");
    let path = manifests.path().to_str().unwrap();
    let explain = |url: &str| run(["explain", path, "GET", url].iter().chain(&PER_PORT));
    let plaintext =
        explain("http://shop.example.com/cart").exits(0).prints("data plane  IngressClass/pingsix:80");
    assert!(!plaintext.out.contains("HTTPS") && !plaintext.out.contains("pingsix:443"), "{}", plaintext.out);
    explain("https://shop.example.com/cart")
        .exits(0)
        .prints("data plane  IngressClass/pingsix:443")
        .prints("https (HTTPS port 443, any host)");
}

#[test]
fn each_port_of_an_ingress_class_has_a_pingsix() {
    let manifests = shop(INGRESS);
    let path = manifests.path().to_str().unwrap();
    let config = |data_plane: &str| {
        let choice = ["--data-plane", data_plane];
        run(["pingsix-config", path].iter().chain(&PER_PORT).chain(&choice)).exits(0).out
    };
    let (plaintext, tls) = (config("IngressClass/pingsix:80"), config("IngressClass/pingsix:443"));
    assert!(
        plaintext.contains("/pingsix-ingress/pingsix:80") && plaintext.contains("offer_h2c"),
        "{plaintext}"
    );
    assert!(!plaintext.contains("cert_path") && !plaintext.contains("0.0.0.0:443"), "{plaintext}");
    assert!(tls.contains("/pingsix-ingress/pingsix:443") && tls.contains("cert_path"), "{tls}");
    assert!(!tls.contains("0.0.0.0:80") && !tls.contains("offer_h2c"), "{tls}");
}

#[test]
fn each_port_of_an_ingress_class_is_served_below_a_prefix_of_its_own() {
    let manifests = shop(INGRESS);
    let served = Served::start(&manifests, &["--state", "none", "--layout", "per-port"]);
    served.wait_for("published IngressClass/pingsix:80 revision");
    served.wait_for("published IngressClass/pingsix:443 revision");
    served.wait_for("ready");
    for port in [80, 443] {
        let keys = served.keys(&format!("/pingsix-ingress/pingsix:{port}/")).unwrap();
        assert!(keys.iter().any(|key| key.contains("/routes/")), "{keys:?}");
    }
}
