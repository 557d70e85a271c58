use std::ffi::OsStr;

use crate::support::{GATEWAY, Manifests, grpc_route, route, run, run_with};

/// An HTTPS Gateway with its certificate, and the private key in base64 as it stands in the Secret.
pub(crate) fn https() -> (Manifests, String) {
    https_until(4000)
}

/// The same with a certificate that is valid until a year begins.
pub(crate) fn https_until(year: i32) -> (Manifests, String) {
    let mut params = rcgen::CertificateParams::new(vec!["shop.example.com".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    let indent = |pem: &str| format!("    {}\n", pem.trim_end().replace('\n', "\n    "));
    let key = signing_key.serialize_pem();
    let secret = format!(
        "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {{ name: tls, namespace: shop }}\nstringData:\n  \
         tls.crt: |\n{}  tls.key: |\n{}",
        indent(&cert.pem()),
        indent(&key)
    );
    let tls = "  - { name: https, port: 443, protocol: HTTPS, hostname: shop.example.com, tls: { certificateRefs: [{ name: tls }] } }\n";
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    manifests.write("gateway.yaml", &format!("{GATEWAY}{tls}---\n{secret}"));
    let line = key.lines().nth(1).unwrap().to_owned();
    (manifests, line)
}

#[test]
fn each_data_plane_is_a_document_that_pingsix_accepts() {
    let (manifests, key) = https();
    let shared =
        manifests.translate(&[]).exits(0).prints("# data plane shop/web, etcd prefix /pingsix/shop/web\n");
    assert!(shared.out.contains(&key), "the key is part of the configuration");
    run_with(&shared.out, ["check", "--pingsix", "-"]).exits(0);
    let per_port = manifests.translate(&["--layout", "per-port", "--root", "/edge"]).exits(0);
    let per_port =
        per_port.prints("etcd prefix /edge/shop/web:80\n").prints("etcd prefix /edge/shop/web:443\n");
    run_with(&per_port.out, ["check", "--pingsix", "-"]).exits(0);
}

#[test]
fn routes_of_every_kind_get_a_status() {
    let routes = [route("pages", "/", "cart"), grpc_route("calls", "shop.v1.Cart", "cart")];
    let run = Manifests::shop(&routes.join("---")).translate(&["-o", "status"]).exits(0);
    let statuses: Vec<serde_json::Value> =
        run.out.split("---\n").skip(1).map(|text| serde_saphyr::from_str(text).unwrap()).collect();
    let kinds: Vec<&str> = statuses.iter().map(|status| status["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["GatewayClass", "Gateway", "HTTPRoute", "GRPCRoute"]);
    let accepted = &statuses[3]["status"]["parents"][0]["conditions"][0];
    assert_eq!((&accepted["type"], &accepted["status"]), (&"Accepted".into(), &"True".into()));
    assert_eq!(statuses[1]["status"]["listeners"][0]["attachedRoutes"], 2);
}

#[test]
fn all_forms_agree() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let yaml: serde_json::Value = serde_saphyr::from_str(&manifests.translate(&[]).exits(0).out).unwrap();
    let json = manifests.translate(&["-o", "json"]).exits(0).json();
    assert_eq!(json["dataPlanes"][0]["config"], yaml);
    assert_eq!(json["dataPlanes"][0]["prefix"], "/pingsix/shop/web");
    let etcd = manifests.translate(&["-o", "etcd-json"]).exits(0).json();
    let routes = yaml["routes"].as_array().unwrap();
    for route in routes {
        let key = format!("/pingsix/shop/web/routes/{}", route["id"].as_str().unwrap());
        assert_eq!(etcd[&key]["priority"], route["priority"]);
    }
}

#[test]
fn the_output_does_not_depend_on_the_order_of_files() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let path = |name: &str| manifests.path().join(name).display().to_string();
    let one =
        run(["translate", &path("gateway.yaml"), &path("cart.yaml"), &path("routes.yaml")]).exits(0).out;
    let other =
        run(["translate", &path("routes.yaml"), &path("cart.yaml"), &path("gateway.yaml")]).exits(0).out;
    assert_eq!(one, other);
}

#[test]
fn status_names_every_object_and_never_a_key() {
    let (manifests, key) = https();
    let run = manifests.translate(&["-o", "status"]).exits(0);
    for text in
        ["kind: GatewayClass", "kind: Gateway\n", "kind: HTTPRoute", "type: Accepted", "reason: Pending"]
    {
        assert!(run.out.contains(text), "{text} in {}", run.out);
    }
    assert!(!run.out.contains(&key));
}

#[test]
fn a_review_has_documents_and_statuses_and_never_a_key() {
    let (manifests, key) = https();
    let run = manifests.translate(&["-o", "review"]).exits(0);
    assert!(!run.out.contains(&key) && !run.out.contains("PRIVATE KEY"), "{}", run.out);
    let (config, status) = run.out.split_once("\n---\n").unwrap();
    let read = |text: &str| serde_saphyr::from_str::<serde_json::Value>(text).unwrap();
    let etcd = manifests.translate(&["-o", "etcd-json"]).json();
    let mut shown = 0;
    for (key, document) in read(config)["/pingsix/shop/web"].as_object().unwrap() {
        let stored = &etcd[format!("/pingsix/shop/web/{key}")];
        for (field, value) in stored.as_object().unwrap() {
            let secret = key.starts_with("ssls/") && field == "key";
            assert_eq!(document[field], if secret { "<redacted>".into() } else { value.clone() });
        }
        shown += 1;
    }
    assert_eq!(shown, etcd.as_object().unwrap().len());
    assert_eq!(read(status)["status"]["HTTPRoute shop/cart"]["parents"][0]["parentRef"]["name"], "web");
    let problems = Manifests::shop(&route("bad", "/bad", "nowhere")).translate(&["-o", "review"]).exits(1);
    problems.prints("- {object: HTTPRoute shop/bad, severity: error, reason: BackendNotFound");
}

#[test]
fn problems_go_to_standard_error_and_what_can_be_served_is_printed() {
    let routes = format!("{}---\n{}", route("cart", "/cart", "cart"), route("bad", "/bad", "nowhere"));
    let run = Manifests::shop(&routes)
        .translate(&[])
        .exits(1)
        .prints("uri")
        .prints_error("HTTPRoute shop/bad")
        .prints_error("1 error");
    assert!(!run.out.contains("HTTPRoute shop/bad"));
}

#[test]
fn budgets_are_kept() {
    let routes = format!("{}---\n{}", route("cart", "/cart", "cart"), route("more", "/more", "cart"));
    let run = Manifests::shop(&routes).translate(&["--budget-entries", "4"]).exits(1);
    run.prints_error("[BudgetExceeded]");
}

#[test]
fn without_a_responder_what_needs_one_is_refused() {
    let conditional = route("cart", "/cart", "cart")
        .replace("value: \"/cart\" } }", "value: /cart }, headers: [{ name: a, value: b }] }");
    let manifests = Manifests::shop(&conditional);
    manifests.check().exits(0);
    manifests.translate(&["--responder", "off"]).exits(1).prints_error("needs a responder");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_pingsix-gatewayctl"))
        .args(["translate", manifests.path().to_str().unwrap()])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn completions_and_help_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        run(["completions", shell]).exits(0).prints("pingsix-gatewayctl");
    }
    for command in ["translate", "check", "explain", "serve", "pingsix-config", "completions", "man"] {
        run([command, "--help"]).exits(0).prints("Usage: pingsix-gatewayctl");
    }
    run(["--version"]).exits(0).prints("pingsix-gatewayctl 0.");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    run([OsStr::new("man"), pages.as_os_str()]).exits(0);
    let page = std::fs::read_to_string(pages.join("pingsix-gatewayctl-check.1")).unwrap();
    assert!(page.contains(".SH SYNOPSIS") && page.contains("\\-\\-strict"), "{page}");
    let mut names: Vec<_> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let help = run(["--help"]).out;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let listed = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let commands = listed.map(|line| line.split_whitespace().next().unwrap()).filter(|name| *name != "help");
    let mut expected: Vec<_> = commands.map(|name| format!("pingsix-gatewayctl-{name}.1")).collect();
    expected.push("pingsix-gatewayctl.1".to_owned());
    expected.sort();
    assert_eq!(names, expected);
    // A file is in the place of the directory.
    let file = pages.join("pingsix-gatewayctl.1");
    run([OsStr::new("man"), file.as_os_str()]).exits(2).prints_error("cannot write the manual pages into");
}

/// A policy for this Service of namespace `shop` with this verified hostname.
pub(crate) fn backend_tls(service: &str, hostname: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {{ name: tls, namespace: shop }}\n\
         spec:\n  targetRefs: [{{ group: \"\", kind: Service, name: {service} }}]\n  \
         validation: {{ wellKnownCACertificates: System, hostname: {hostname} }}\n"
    )
}

#[test]
fn the_status_of_a_policy_has_the_gateway_through_which_it_counts() {
    let routes = route("cart", "/cart", "cart");
    let manifests = Manifests::shop(&format!("{routes}---\n{}", backend_tls("cart", "other.example.com")));
    let run = manifests.translate(&["-o", "status"]).exits(1);
    let policy =
        run.out.split("---\n").find(|status| status.contains("kind: BackendTLSPolicy")).expect(&run.out);
    let policy: serde_json::Value = serde_saphyr::from_str(policy).unwrap();
    let ancestor = &policy["status"]["ancestors"][0];
    let gateway = serde_json::json!({
        "group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "shop", "name": "web",
    });
    assert_eq!(ancestor["ancestorRef"], gateway);
    assert_eq!(ancestor["controllerName"], "pingsix.io/gateway-controller");
    assert_eq!(ancestor["conditions"][0]["reason"], "UnsupportedValue");
    run.prints_error("BackendTLSPolicy shop/tls\n  error: spec.validation.hostname: ").prints_error(
        "HTTPRoute shop/cart\n  error: spec.rules[0].backendRefs[0]: BackendTLSPolicy shop/tls ",
    );
}
