//! Bad input of every kind: each problem is named with its location and costs no other object.

use crate::support::{CART, GATEWAY, Manifests, Run, route, run, run_with};

/// The routes file is at fault; `cart` must still be served.
fn still_serves_cart(manifests: &Manifests) {
    let path = manifests.path().to_str().unwrap();
    run(["explain", path, "GET", "http://a.test/cart"]).exits(0).prints("Service shop/cart port 80");
}

fn with_cart(other: &str) -> Manifests {
    let manifests = Manifests::shop(&format!("{}---\n{other}", route("cart", "/cart", "cart")));
    still_serves_cart(&manifests);
    manifests
}

#[test]
fn a_broken_document_costs_only_itself() {
    let manifests = with_cart("kind: [\n");
    manifests.check().exits(1).prints("routes.yaml:11").prints("not valid YAML").prints("1 error,");
}

#[test]
fn a_value_that_is_no_object_is_named() {
    with_cart("- just\n- a list\n").check().exits(1).prints("(document 2)").prints("A manifest is an object");
    with_cart("kind: Gateway\n").check().exits(1).prints("A manifest needs apiVersion");
    with_cart("apiVersion: v1\nkind: Service\nmetadata: {}\n")
        .check()
        .exits(1)
        .prints("metadata.name: The field name is required.");
}

#[test]
fn files_of_other_tools_beside_manifests_are_left_alone() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    manifests.write("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n");
    manifests.write("chart/values.yaml", "replicas: 2\n---\nreplicas: 3\n");
    manifests.write("package.json", "[]");
    manifests.write("kustomization.yaml", "resources: [routes.yaml]\n");
    let checked = run(["check", "--strict", manifests.path().to_str().unwrap()]).exits(0);
    assert_eq!(checked.out.matches("info: The file holds no manifest").count(), 4, "{}", checked.out);
    // A named file, or standard input, must be read.
    for name in ["chart/Chart.yaml", "package.json"] {
        run(["check", manifests.path().join(name).to_str().unwrap()]).exits(1).prints("[NotAManifest]");
    }
    let chart = manifests.path().join("chart");
    run(["check", chart.to_str().unwrap()]).exits(2).prints_error("no file holds a manifest in");
    run_with("replicas: 2\n", ["check", "-"]).exits(1).prints("kind: A manifest needs kind. [NotAManifest]");
    // A broken manifest is not taken for another file.
    manifests.write("forgotten.yaml", "apiVersion: v1\nmetadata: { name: cart, namespace: shop }\n");
    manifests.check().exits(1).prints("forgotten.yaml:1 shop/cart\n  error: kind: A manifest needs kind.");
}

#[test]
fn misspelled_kinds_of_gateway_api_and_old_groups_are_errors() {
    let wrong = "apiVersion: gateway.networking.k8s.io/v1\nkind: HttpRoute\nmetadata: { name: a, namespace: shop }\n\
        ---\napiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: { name: b, namespace: shop }\n";
    let run = with_cart(wrong).check().exits(1);
    let run = run.prints("HttpRoute shop/a\n  error: kind: Gateway API has no kind HttpRoute");
    run.prints("Ingress shop/b\n  error: apiVersion: Kind Ingress has apiVersion networking.k8s.io/v1, not extensions/v1beta1.");
}

#[test]
fn an_object_that_does_not_decode_is_named_with_its_field() {
    let wrong = route("wrong", "/x", "cart").replace("port: 80", "port: eighty");
    let run = with_cart(&wrong).check().exits(1);
    run.prints("HTTPRoute shop/wrong").prints("spec.rules[0].backendRefs[0].port").prints("[DoesNotDecode]");
}

#[test]
fn a_secret_that_does_not_decode_is_not_quoted() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: { name: s, namespace: shop }\ndata: { tls.key: [hunter2] }\n";
    let run = with_cart(secret).check().exits(1).prints("Secret shop/s").prints("data.tls.key");
    assert!(!run.out.contains("hunter2"), "{}", run.out);
    let broken =
        with_cart("apiVersion: v1\nkind: Secret\nstringData: { key: \"hunter2\nx: {\n").check().exits(1);
    assert!(!broken.out.contains("hunter2"), "{}", broken.out);
}

#[test]
fn old_versions_are_taken_or_named() {
    let beta = route("beta", "/beta", "cart").replace("k8s.io/v1", "k8s.io/v1beta1");
    with_cart(&beta).check().exits(0);
    let alpha = route("alpha", "/alpha", "cart").replace("k8s.io/v1", "k8s.io/v1alpha2");
    let run = with_cart(&alpha).check().exits(1).prints("HTTPRoute shop/alpha");
    run.prints("apiVersion gateway.networking.k8s.io/v1alpha2 of HTTPRoute is not supported; use gateway.networking.k8s.io/v1.");
    let core = route("core", "/core", "cart").replace("gateway.networking.k8s.io/v1", "v1");
    with_cart(&core)
        .check()
        .exits(1)
        .prints("Kind HTTPRoute has apiVersion gateway.networking.k8s.io/v1, not v1.");
}

#[test]
fn unknown_kinds_are_named_once_and_are_no_errors() {
    let two = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: a }\n---\napiVersion: apps/v1\nkind: Deployment\n\
               metadata: { name: b }\n";
    let run = with_cart(two).check().exits(0);
    assert_eq!(run.out.matches("[UnknownKind]").count(), 1, "{}", run.out);
    run.prints("info: Deployment (apps) is not read; 2 objects are ignored.");
    let foreign = "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: { name: a }\n";
    with_cart(foreign).check().exits(0).prints("kind Gateway of networking.istio.io");
}

#[test]
fn kinds_of_other_gateways_are_warnings_with_advice() {
    let object = |group: &str, kind: &str| {
        format!("apiVersion: {group}\nkind: {kind}\nmetadata: {{ name: a, namespace: shop }}\n---\n")
    };
    let apisix = object("apisix.apache.org/v2", "ApisixRoute");
    let run = with_cart(&apisix.repeat(2)).check().exits(0);
    run.prints(
        "warning: Objects of kind ApisixRoute of apisix.apache.org are for APISIX, so PingSIX does not serve them; 2 \
         objects are ignored. pingsix-gatewayctl migrate converts them. [KindOfOtherGateway]",
    );
    // `migrate` reads one version.
    let old = object("apisix.apache.org/v2beta3", "ApisixRoute");
    with_cart(&old).check().exits(0).prints("migrate converts those of apisix.apache.org/v2 only.");
    let dropped = "Of ApisixRoute, apisix.apache.org/v2 is converted, not apisix.apache.org/v2beta3.";
    run_with(&old, ["migrate", "-"]).exits(1).prints_error(dropped);
    let protection = object("security.istio.io/v1", "AuthorizationPolicy");
    with_cart(&protection).check().exits(0).prints("warning: ").prints("Their protection is not applied.");
    let of_mesh = object("networking.istio.io/v1", "DestinationRule");
    run_with(&format!("{of_mesh}{GATEWAY}"), ["check", "--strict", "-"])
        .exits(0)
        .prints("info: Objects of kind DestinationRule");
    let experiment = object("gateway.networking.x-k8s.io/v1alpha1", "XListenerSet");
    with_cart(&experiment).check().exits(0).prints("Use ListenerSet of gateway.networking.k8s.io/v1.");
    // Alone, no object is left to judge.
    run_with(&apisix, ["check", "-"])
        .exits(1)
        .prints("[KindOfOtherGateway]")
        .prints("[NothingToCheck]")
        .prints("1 error, 1 warning (0 objects, 0 data planes)");
}

#[test]
fn an_input_without_an_object_to_judge_is_an_error() {
    let class = GATEWAY.split("---").next().unwrap();
    for nothing in [CART, &class.replace("pingsix.io/gateway-controller", "example.com/other")] {
        run_with(nothing, ["check", "-"]).exits(1).prints("[NothingToCheck]");
    }
    let foreign = GATEWAY.replace("pingsix.io/gateway-controller", "example.com/other");
    let policy = "apiVersion: pingsix.io/v1alpha1\nkind: TrafficPolicy\nmetadata: { name: a, namespace: shop }\n\
                  spec: { targetRefs: [{ group: '', kind: Service, name: cart }], rateLimit: { local: { limit: { requests: 1, unit: Second } } } }\n";
    let of_foreign = format!("{foreign}---\n{}", route("cart", "/cart", "gone"));
    let of_mesh = route("cart", "/cart", "cart").replace("parentRefs: [{ name: web }]", "parentRefs: []");
    for unserved in [&*of_foreign, &of_mesh] {
        run_with(unserved, ["check", "-"])
            .exits(1)
            .prints("is served by controller pingsix.io/gateway-controller, so nothing was checked.")
            .prints("1 error, 1 warning");
    }
    // A policy with a kind that no TrafficPolicy may target is at fault itself.
    run_with(policy, ["check", "-"]).exits(1).prints("spec.targetRefs[0].kind: A TrafficPolicy may target");
    run_with(&foreign, ["check", "-", "--controller-name", "example.com/other"]).exits(0);
    let report = run_with(CART, ["check", "-", "-o", "json"]).exits(1).json();
    assert_eq!((&report["errors"], &report["findings"][0]["reason"]), (&1.into(), &"NothingToCheck".into()));
    for judged in [class, &route("cart", "/cart", "cart")] {
        let run = run_with(judged, ["check", "-"]);
        assert!(!run.out.contains("[NothingToCheck]"), "{}", run.out);
    }
    // An object that does not decode is an error itself.
    let run = run_with("apiVersion: v1\nkind: Service\nmetadata: {}\n", ["check", "-"]).exits(1);
    assert!(!run.out.contains("[NothingToCheck]"), "{}", run.out);
    run_with("pingsix: {}\n", ["check", "--pingsix", "-"]).exits(1).prints("[NothingToCheck]");
}

#[test]
fn an_input_without_an_object_to_translate_is_an_error() {
    let foreign = GATEWAY.replace("pingsix.io/gateway-controller", "example.com/other");
    for nothing in ["{ apiVersion: v1, kind: List, items: [] }", CART, &foreign] {
        run_with(nothing, ["translate", "-"]).exits(1).prints_error("[NothingToCheck]");
        run_with(nothing, ["diff", "-", "--target", "embedded:"])
            .exits(2)
            .prints_error("[NothingToCheck]")
            .prints_error("the manifests have no data plane");
    }
    let class = GATEWAY.split("---").next().unwrap();
    run_with(class, ["translate", "-"]).exits(0);
}

#[test]
fn a_field_the_api_does_not_have_is_named() {
    let typo = route("typo", "/typo", "cart").replace("backendRefs", "backendRef");
    with_cart(&typo)
        .check()
        .exits(1)
        .prints("error: spec.rules[0].backendRef: The API has no field")
        .prints("Did you mean backendRefs?");
}

#[test]
fn duplicates_are_named_with_both_places() {
    let run = with_cart(&route("cart", "/other", "cart"))
        .check()
        .exits(1)
        .prints("routes.yaml:12 HTTPRoute shop/cart");
    run.prints("already defined at").prints("routes.yaml:2; this one is ignored. [Duplicate]");
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    manifests.write("zz/again.yaml", GATEWAY);
    still_serves_cart(&manifests);
    manifests
        .check()
        .exits(1)
        .prints("again.yaml:7 Gateway shop/web")
        .prints("again.yaml:2 GatewayClass pingsix");
}

#[test]
fn a_class_that_is_unknown_or_not_ours_is_named() {
    let without = Manifests::new(&[(
        "g.yaml",
        &GATEWAY.replace("gatewayClassName: pingsix", "gatewayClassName: other"),
    )]);
    without.check().exits(1).prints("Gateway shop/web").prints("GatewayClass \"other\" does not exist");
    let foreign =
        Manifests::new(&[("g.yaml", &GATEWAY.replace("pingsix.io/gateway-controller", "example.com/other"))]);
    // Another controller may be meant to serve it, as with an Ingress of another's class. The error is that nothing else is
    // served.
    foreign
        .check()
        .exits(1)
        .prints("[NothingToCheck]")
        .prints("warning: spec.gatewayClassName")
        .prints("has controllerName example.com/other, not pingsix.io/gateway-controller");
    let path = foreign.path().to_str().unwrap();
    run(["check", path, "--controller-name", "example.com/other"]).exits(0);
    run(["explain", path, "GET", "http://a.test/"])
        .exits(1)
        .prints("No Gateway or IngressClass is served.")
        .prints("GatewayClassNotOurs");
}

#[test]
fn references_that_lead_nowhere_are_named() {
    let missing = with_cart(&route("missing", "/missing", "nowhere"));
    missing.check().exits(1).prints("spec.rules[0].backendRefs[0]").prints("nowhere");
    let path = missing.path().to_str().unwrap();
    run(["explain", path, "GET", "http://a.test/missing"]).exits(1).prints("500, given by PingSIX");
    let orphan = route("orphan", "/orphan", "cart").replace("name: web", "name: gone");
    with_cart(&orphan).check().exits(1).prints("spec.parentRefs[0]: Gateway shop/gone does not exist.");
    let stray = route("stray", "/stray", "cart").replace("parentRefs: [{ name: web }]", "parentRefs: []");
    with_cart(&stray).check().exits(0).prints("The route names no Gateway");
    let mesh = stray.replace("parentRefs: []", "parentRefs: [{ group: '', kind: Service, name: cart }]");
    with_cart(&mesh)
        .check()
        .exits(0)
        .prints("HTTPRoute shop/stray\n  warning: spec.parentRefs: The route names");
}

#[test]
fn a_path_that_pingsix_cannot_hold_costs_its_rule() {
    let manifests = with_cart(&route("braces", "/{id}", "cart"));
    manifests.check().exits(1).prints("HTTPRoute shop/braces").prints("spec.rules[0].matches[0]");
    let translated = manifests.translate(&[]).exits(1);
    run_with(&translated.out, ["check", "--strict", "--pingsix", "-"]).exits(0);
}

#[test]
fn a_service_without_endpoints_is_named_once_and_can_be_given_some() {
    let bare = CART.split("---").next().unwrap();
    let routes = format!("{}---\n{}", route("cart", "/cart", "cart"), route("more", "/more", "cart"));
    let manifests =
        Manifests::new(&[("gateway.yaml", GATEWAY), ("cart.yaml", bare), ("routes.yaml", &routes)]);
    let path = manifests.path().to_str().unwrap();
    let checked = manifests.check().exits(0);
    assert_eq!(checked.out.matches("[NoEndpointSlices]").count(), 1, "{}", checked.out);
    run(["check", path, "--strict"]).exits(1);
    run(["explain", path, "GET", "http://a.test/cart"]).exits(1).prints("503");
    let supplied = ["--endpoints", "shop/cart:80=127.0.0.1:9001,[::1]:9002"];
    let explained = run(["explain", path, "GET", "http://a.test/cart", supplied[0], supplied[1]]).exits(0);
    explained.prints("127.0.0.1:9001").prints("[::1]:9002");
    run(["check", path, "--strict", supplied[0], supplied[1]]).exits(0);
    run(["check", path, "--endpoints", "shop/other=127.0.0.1:1"])
        .exits(1)
        .prints("there is no such Service. [NoService]");
    run(["check", path, "--endpoints", "shop/cart=nonsense"])
        .exits(2)
        .prints_error("is not an address with a port");
}

/// With `service-upstream`, the cluster IP of a Service is enough, and with `default-backend` another Service answers.
#[test]
fn annotations_decide_whether_a_service_needs_endpoints() {
    const CLASS: &str = "apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: { name: nginx }
spec:
  controller: pingsix.io/gateway-controller
  parameters: { apiGroup: pingsix.io, kind: PingsixProxy, name: nginx, scope: Namespace, namespace: infra }
---
apiVersion: pingsix.io/v1alpha1
kind: PingsixProxy
metadata: { name: nginx, namespace: infra }
spec: { attached: {}, ingress: { annotations: DIALECTS } }
";
    let service = |name: &str, cluster_ip: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{ name: {name}, namespace: shop }}\n\
             spec: {{ clusterIP: {cluster_ip}, ports: [{{ port: 80 }}] }}\n---\n"
        )
    };
    let services =
        service("cart", "10.96.0.1") + &service("headless", "None") + &service("sorry", "10.96.0.2");
    let check_with = |services: &str, annotations: &str, backend: &str, dialects: &str| {
        let ingress = format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\n\
             metadata: {{ name: web, namespace: shop, annotations: {{ {annotations} }} }}\n\
             spec: {{ ingressClassName: nginx, defaultBackend: {{ service: {{ name: {backend}, port: {{ number: 80 }} }} }} }}\n"
        );
        let class = CLASS.replace("DIALECTS", dialects);
        let files = [("class.yaml", &*class), ("services.yaml", services), ("ingress.yaml", &ingress)];
        Manifests::new(&files).check().exits(0)
    };
    let check = |annotations: &str, backend: &str, dialects: &str| {
        check_with(&services, annotations, backend, dialects)
    };
    let nginx = "[nginx.ingress.kubernetes.io]";
    let by_cluster_ip = "nginx.ingress.kubernetes.io/service-upstream: 'true'";
    let unnamed = |checked: &Run| !checked.out.contains("[NoEndpointSlices]");
    assert!(unnamed(&check(by_cluster_ip, "cart", nginx)));
    check(by_cluster_ip, "headless", nginx).prints("Service shop/headless").prints("[NoEndpointSlices]");
    check(by_cluster_ip, "cart", "[]")
        .prints("requests to this Service get 503")
        .prints("[NoEndpointSlices]");
    let default_backend = "nginx.ingress.kubernetes.io/default-backend: sorry";
    check(default_backend, "cart", nginx)
        .prints("Service shop/cart")
        .prints("requests to this Service get 503");
    let slice = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
                 metadata: { name: sorry, namespace: shop, labels: { kubernetes.io/service-name: sorry } }\n\
                 addressType: IPv4\nports: [{ port: 8080 }]\nendpoints: [{ addresses: [10.0.0.1] }]\n";
    let with_default = services.clone() + slice;
    check_with(&with_default, default_backend, "cart", nginx)
        .prints("the default backends of Ingresses answer in its place");
    check_with(&with_default, default_backend, "cart", "[]").prints("requests to this Service get 503");
}

#[test]
fn supplied_endpoints_replace_those_of_the_manifests() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let path = manifests.path().to_str().unwrap();
    let run = run(["explain", path, "GET", "http://a.test/cart", "--endpoints", "shop/cart=127.0.0.1:9001"]);
    let run = run.exits(0).prints("127.0.0.1:9001");
    assert!(!run.out.contains("10.0.0.1"), "{}", run.out);
}

#[test]
fn a_file_below_a_directory_that_cannot_be_read_costs_no_other_one() {
    let manifests = Manifests::shop(&route("cart", "/cart", "lost"));
    let folder = manifests.path();
    std::fs::write(folder.join("latin.yaml"), b"a: \xe9\n").unwrap();
    std::os::unix::fs::symlink("loop.yaml", folder.join("loop.yaml")).unwrap();
    // These have no end.
    std::os::unix::fs::symlink("/dev/zero", folder.join("zero.yaml")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(folder.join("pipe.yaml")).status().unwrap().success());
    let checked = manifests.check().exits(1).prints("latin.yaml").prints("Service shop/lost does not exist");
    let checked = checked.prints("loop.yaml");
    for other in ["zero.yaml", "pipe.yaml"] {
        assert!(!checked.out.contains(other), "{}", checked.out);
    }
}

#[test]
fn paths_that_cannot_be_read_are_errors_of_whoever_typed_them() {
    run(["check", "/no/such/file.yaml"]).exits(2).prints_error("cannot read /no/such/file.yaml");
    let empty = Manifests::new(&[("notes.txt", "nothing"), (".hidden.yaml", GATEWAY)]);
    empty.check().exits(2).prints_error("no manifests");
    run(["check"]).exits(2).prints_error("no input; name files or directories");
    // The output of a program that failed before the pipe.
    for (nothing, message) in [
        ("", "error: standard input is empty"),
        ("\n", "error: standard input is empty"),
        ("# only a comment\n---\n", "error: standard input holds no manifest"),
    ] {
        run_with(nothing, ["check", "-"]).exits(2).prints_error(message);
        run_with(nothing, ["check", "--pingsix", "-"])
            .exits(2)
            .prints_error("no PingSIX configuration in <stdin>");
    }
    // An empty answer of a cluster.
    run_with("{ apiVersion: v1, kind: List, items: [] }", ["check", "-"])
        .exits(1)
        .prints("input\n  error: The input has none of these to check: class of this controller, Gateway, ")
        .prints("1 error, 0 warnings (0 objects, 0 data planes)");
    run(["translate", "x", "--root", "no/slash"]).exits(2).prints_error("does not start with a slash");
}

#[test]
fn lists_json_and_standard_input_are_read() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let items: Vec<serde_json::Value> = ["gateway.yaml", "cart.yaml", "routes.yaml"]
        .iter()
        .flat_map(|name| {
            let text = std::fs::read_to_string(manifests.path().join(name)).unwrap();
            text.split("---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect::<Vec<_>>()
        })
        .collect();
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string();
    run_with(&list, ["explain", "-", "GET", "http://a.test/cart"])
        .exits(0)
        .prints("Service shop/cart port 80");
    let expected = manifests.translate(&["-o", "json"]).out;
    assert_eq!(run_with(&list, ["translate", "-", "-o", "json"]).exits(0).out, expected);
}

#[test]
fn a_missing_namespace_is_default() {
    let strip = |text: &str| text.replace(", namespace: shop", "");
    let routes = strip(&route("cart", "/cart", "cart"));
    let manifests =
        Manifests::new(&[("g.yaml", &strip(GATEWAY)), ("c.yaml", &strip(CART)), ("r.yaml", &routes)]);
    manifests.check().exits(0);
    manifests.translate(&[]).exits(0).prints("# data plane default/web");
}

#[test]
fn manifests_cannot_write_to_the_terminal() {
    let wrong = route("wrong", "/x", "cart").replace("port: 80", "port: \"\\e[2J\\r\\n\"");
    let run = with_cart(&wrong).check().exits(1).prints("[DoesNotDecode]");
    assert!(!run.out.contains(['\u{1b}', '\r']), "{:?}", run.out);
}
