use crate::support::{Manifests, grpc_route, route, run, run_with};
use crate::translate::{backend_tls, https, https_until};

#[test]
fn findings_are_grouped_by_object_and_counted() {
    let routes = format!("{}---\n{}", route("bad", "/bad", "nowhere"), route("braces", "/{id}", "cart"));
    let run = Manifests::shop(&routes).check().exits(1);
    let bad = run.out.find("routes.yaml:2 HTTPRoute shop/bad\n  error: spec.rules[0]").expect(&run.out);
    assert!(bad < run.out.find("routes.yaml:12 HTTPRoute shop/braces\n  error: ").expect(&run.out));
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
             error: spec.parentRefs[0]: Gateway other/web does not exist. [ParentNotFound]\n  \
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
        (&"BackendNotFound".into(), &2.into(), &1.into())
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
fn a_policy_without_a_target_is_an_error_and_one_that_no_route_has_to_do_with_a_warning() {
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
