use crate::support::{GATEWAY, Manifests, grpc_route, route, run, run_with};
use crate::translate::{backend_tls, https, https_until};

#[test]
fn findings_are_grouped_by_object_and_counted() {
    let routes = format!("{}---\n{}", route("bad", "/bad", "nowhere"), route("braces", "/{id}", "cart"));
    let run = Manifests::shop(&routes).check().exits(1);
    let bad = run.out.find("routes.yaml:9 HTTPRoute shop/bad\n  error: spec.rules[0]").expect(&run.out);
    assert!(bad < run.out.find("routes.yaml:18 HTTPRoute shop/braces\n  error: ").expect(&run.out));
    run.prints("2 errors, 0 warnings (6 objects, 1 data plane)");
}

#[test]
fn an_expired_certificate_is_served_and_named() {
    let (manifests, _) = https_until(2021);
    manifests
        .check()
        .exits(0)
        .prints(
            "Gateway shop/web\n  warning: spec.listeners[1].tls.certificateRefs[0]: The certificate of Secret",
        )
        .prints("that listener \"https\" shows for shop.example.com expired at 2021-01-01T00:00:00Z; clients refuse it. [InvalidCertificateRef]");
    assert!(!https().0.check().exits(0).out.contains("expired"));
}

#[test]
fn a_parent_that_is_not_there_is_an_error_of_every_kind_of_route() {
    let kinds = ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"];
    let routes = kinds.map(|kind| {
        let hostnames = if kind == "TLSRoute" { "  hostnames: [a.test]\n" } else { "" };
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: {kind}\nmetadata: {{ name: lost, namespace: shop }}\n\
             spec:\n  parentRefs: [{{ name: web, namespace: other }}, {{ kind: ListenerSet, name: more }}]\n\
             {hostnames}  rules: [{{ backendRefs: [{{ name: cart, port: 80 }}] }}]\n"
        )
    });
    let mut run = Manifests::shop(&routes.join("---\n")).check().exits(1).prints("10 errors, 0 warnings");
    for kind in kinds {
        run = run.prints(&format!(
            "{kind} shop/lost\n  \
             error: spec.parentRefs[0]: Gateway other/web does not exist. Namespace shop has one of this name. [ParentNotFound]\n  \
             error: spec.parentRefs[1]: ListenerSet shop/more does not exist. [ParentNotFound]\n"
        ));
    }
}

#[test]
fn a_route_without_parents_is_a_warning_of_every_kind() {
    let route =
        grpc_route("calls", "shop.v1.Cart", "cart").replace("parentRefs: [{ name: web }]", "parentRefs: []");
    Manifests::shop(&route)
        .check()
        .exits(0)
        .prints("GRPCRoute shop/calls\n  warning: spec.parentRefs: The route names no Gateway");
}

#[test]
fn json_has_file_object_field_and_reason() {
    let manifests = Manifests::shop(&route("bad", "/bad", "nowhere"));
    let run = run(["check", manifests.path().to_str().unwrap(), "-o", "json"]).exits(1);
    let report = run.json();
    assert_eq!(report["errors"], 1);
    let finding = &report["findings"][0];
    assert_eq!((&finding["object"], &finding["severity"]), (&"HTTPRoute shop/bad".into(), &"error".into()));
    assert_eq!(
        (&finding["reason"], &finding["line"], &finding["document"]),
        (&"BackendNotFound".into(), &9.into(), &1.into())
    );
    assert!(finding["file"].as_str().unwrap().ends_with("routes.yaml"));
    assert!(finding["field"].as_str().unwrap().starts_with("spec.rules[0].backendRefs[0]"));
}

#[test]
fn a_pingsix_configuration_is_judged_by_pingsix_rules() {
    let config = r#"
pingsix:
  listeners: [{ address: "0.0.0.0:80" }]
routes:
- { id: good, uri: /, upstream: { nodes: { "10.0.0.1:80": 1 } } }
- { id: bad, uri: /x, plugins: { no-such-plugin: {} }, upstream_id: gone }
"#;
    let run = run_with(config, ["check", "--pingsix", "-"]).exits(1).prints("routes/bad");
    let run = run
        .prints("plugins.no-such-plugin")
        .prints("upstream_id")
        .prints("[reference]")
        .prints("[plugin-name]");
    assert!(!run.out.contains("routes/good"), "{}", run.out);
    let two = "routes: [{ id: a, uri: /, upstream: { nodes: { \"10.0.0.1:80\": 1 } } }]\n---\nroutes: [{ id: b }]\n";
    run_with(two, ["check", "--pingsix", "-"])
        .exits(1)
        .prints("<stdin>:3 routes/b")
        .prints("PingSIX refuses the whole");
    run_with("routes: [", ["check", "--pingsix", "-"]).exits(1).prints("not valid YAML");
    crate::support::run(["check", "--pingsix", "/no/such/file"]).exits(2);
}

#[test]
fn a_table_whose_answers_depend_on_luck_is_a_warning() {
    let config = r#"
upstreams: [{ id: u, nodes: { "10.0.0.1:80": 1 } }]
routes:
- { id: broad, uri: "/{*p}", upstream_id: u }
- { id: narrow, uri: "/foo/{*p}", upstream_id: u }
"#;
    run_with(config, ["check", "--pingsix", "-"]).exits(0).prints("warning").prints("[closure]");
    run_with(config, ["check", "--strict", "--pingsix", "-"]).exits(1);
}

#[test]
fn secrets_are_never_printed() {
    let (manifests, key) = https();
    let path = manifests.path().to_str().unwrap();
    let broken = std::fs::read_to_string(manifests.path().join("gateway.yaml"))
        .unwrap()
        .replace("tls.crt", "tls.cert");
    for text in [None, Some(broken)] {
        if let Some(text) = text {
            manifests.write("gateway.yaml", &text);
        }
        for arguments in [vec!["check", path], vec!["explain", path, "GET", "https://shop.example.com/cart"]]
        {
            let run = run(arguments);
            assert!(!run.out.contains(&key) && !run.err.contains(&key), "{run:?}");
        }
    }
}

#[test]
fn a_policy_without_a_target_is_an_error_and_without_a_route_a_warning() {
    let routes = route("cart", "/cart", "cart");
    let policy = backend_tls("carts", "cart.example.com");
    Manifests::shop(&format!("{routes}---\n{policy}")).check().exits(1).prints(
        "BackendTLSPolicy shop/tls\n  error: spec.targetRefs[0].name: Service shop/carts does not exist.",
    );
    let service = "apiVersion: v1\nkind: Service\nmetadata: { name: carts, namespace: shop }\n\
                   spec: { ports: [{ port: 80 }] }\n";
    Manifests::shop(&format!("{routes}---\n{policy}---\n{service}"))
        .check()
        .exits(0)
        .prints("BackendTLSPolicy shop/tls\n  warning: spec.targetRefs: The policy has no effect")
        .prints("(Service carts). [NoTarget]");
}

#[test]
fn a_missing_class_is_printed_as_a_manifest_to_add() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let gateway = GATEWAY.split_once("---").unwrap().1;
    manifests.write("gateway.yaml", gateway);
    let checked = manifests.check().exits(1).prints("[GatewayClassNotFound]");
    let added = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: \"pingsix\"}\n\
                 spec: {controllerName: \"pingsix.io/gateway-controller\"}\n";
    let text = checked.prints(added).out;
    // The text is a manifest as it is.
    let class = text.split_once("cluster:\n").unwrap().1.split_once("1 error").unwrap().0;
    manifests.write("class.yaml", class);
    manifests.check().exits(0);
    manifests.remove("class.yaml");
    let path = manifests.path().to_str().unwrap();
    let json = run(["check", path, "-o", "json"]).exits(1).json();
    assert_eq!(json["missingClasses"][0]["spec"]["controllerName"], "pingsix.io/gateway-controller");
    // A managed class needs no manifest, and has a data plane per port.
    run(["check", path, "--managed"]).exits(0).prints("2 data planes)");
    run(["explain", path, "GET", "http://a.test/cart", "--managed"])
        .exits(0)
        .prints("data plane  shop/web:80\n");
    let ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: { name: old, namespace: shop }\n\
                   spec: { ingressClassName: pingsix, defaultBackend: { service: { name: cart, port: { number: 80 } } } }\n";
    manifests.write("ingress.yaml", ingress);
    manifests
        .check()
        .exits(1)
        .prints("kind: IngressClass\n")
        .prints("spec: {controller: \"pingsix.io/gateway-controller\"}\n");
    run(["check", path, "--managed"]).exits(0);
}

#[test]
fn parameters_that_are_not_in_the_input_are_a_warning_and_are_assumed() {
    let (manifests, _) = https();
    let gateway = std::fs::read_to_string(manifests.path().join("gateway.yaml")).unwrap();
    let reference =
        "parametersRef: { group: pingsix.io, kind: PingsixProxy, namespace: infra, name: elsewhere }";
    let controller = "controllerName: pingsix.io/gateway-controller";
    manifests.write("gateway.yaml", &gateway.replace(controller, &format!("{controller}, {reference}")));
    let path = manifests.path().to_str().unwrap();
    let check = |more: &[&str]| run(["check", path].iter().chain(more)).exits(0);
    let warning = "GatewayClass pingsix\n  warning: spec.parametersRef: PingsixProxy infra/elsewhere is not in the input; \
                   the check assumes";
    check(&[]).prints(warning).prints("1 data plane)").prints("0 errors, 1 warning");
    check(&["--layout", "per-port"]).prints(warning).prints("2 data planes)");
    check(&["--managed"]).prints("the check assumes managed data planes").prints("3 data planes)");
    // A publication needs the parameters themselves.
    run(["translate", path])
        .exits(1)
        .prints_error("There is no PingsixProxy infra/elsewhere that can be read");
}

#[test]
fn services_without_any_endpoint_slice_are_one_line() {
    let service = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{ name: {name}, namespace: shop }}\nspec: {{ ports: [{{ port: 80 }}] }}\n"
        )
    };
    let routes = ["a", "b", "c"]
        .map(|name| format!("{}---\n{}", route(name, &format!("/{name}"), name), service(name)));
    let manifests = Manifests::new(&[("gateway.yaml", GATEWAY), ("routes.yaml", &routes.join("---\n"))]);
    let run = manifests.check().exits(0);
    assert_eq!(run.out.matches("[NoEndpointSlices]").count(), 1, "{}", run.out);
    run.prints("The input has no EndpointSlice, so requests to its 3 Services get 503")
        .prints("--endpoints supplies endpoints, for example shop/a=IP:PORT.")
        .prints("0 errors, 1 warning");
}

#[test]
fn one_problem_is_one_finding() {
    let twice = route("cart", "/cart", "nowhere")
        .replace("{ name: nowhere, port: 80 }", "{ name: nowhere, port: 80 }, { name: nowhere, port: 81 }");
    let lost =
        route("lost", "/lost", "cart").replace("{ name: web }", "{ name: gone }, { name: gone, port: 80 }");
    let of_listener =
        route("broken", "/x", "cart").replace("{ name: web }", "{ name: web, sectionName: broken }");
    let manifests = Manifests::shop(&[twice, lost, of_listener].join("---"));
    manifests.write("gateway.yaml", &format!("{GATEWAY}  - {{ name: broken, port: 81, protocol: FOO }}\n"));
    let run = manifests.check().exits(1).prints("3 errors, 0 warnings");
    run.prints("Service shop/nowhere does not exist. The same at spec.rules[0].backendRefs[1].name. [BackendNotFound]")
        .prints("Gateway shop/gone does not exist. The same at spec.parentRefs[1]. [ParentNotFound]")
        .prints("The data plane does not serve protocol FOO. [UnsupportedProtocol]");
}

#[test]
fn a_rule_that_can_never_match_is_shadowed() {
    let twice = format!("{}---{}", route("a", "/cart", "cart"), route("b", "/cart", "cart"));
    Manifests::shop(&twice).check().exits(0).prints(
        "HTTPRoute shop/b\n  warning: spec.rules[0]: The rule gets no requests from Gateway shop/web: \
         spec.rules[0].matches[0] of HTTPRoute shop/a takes them first. [Shadowed]",
    );
}
