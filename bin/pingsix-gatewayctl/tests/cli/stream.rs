//! TCPRoute, UDPRoute and TLSRoute.

use serde_json::{Value, json};

use crate::serve::Served;
use crate::support::{Manifests, run, run_with};

/// Gateway `shop/web` for HTTP, TCP, UDP and TLS, with a route for each.
fn manifests() -> Manifests {
    let listeners = r"  - { name: db, port: 5432, protocol: TCP }
  - { name: dns, port: 5353, protocol: UDP }
  - { name: tls, port: 443, protocol: TLS, hostname: '*.example.com', tls: { mode: Passthrough } }
";
    let manifests = Manifests::shop(&crate::support::route("cart", "/cart", "cart"));
    manifests.write("gateway.yaml", &format!("{}{listeners}", crate::support::GATEWAY));
    manifests.write(
        "streams.yaml",
        r"
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: { name: db, namespace: shop }
spec:
  parentRefs: [{ name: web, sectionName: db }]
  rules: [{ backendRefs: [{ name: cart, port: 80, weight: 3 }, { name: nowhere, port: 80 }] }]
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: UDPRoute
metadata: { name: dns, namespace: shop }
spec:
  parentRefs: [{ name: web, sectionName: dns }]
  rules: [{ backendRefs: [{ name: dns, port: 53 }] }]
---
apiVersion: v1
kind: Service
metadata: { name: dns, namespace: shop }
spec: { ports: [{ port: 53, protocol: UDP }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: dns, namespace: shop, labels: { kubernetes.io/service-name: dns } }
addressType: IPv4
ports: [{ port: 5354, protocol: UDP }]
endpoints: [{ addresses: [127.0.0.1] }, { addresses: [127.0.0.2] }]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: { name: site, namespace: shop }
spec:
  parentRefs: [{ name: web }]
  hostnames: [a.example.com, '*.example.com']
  rules: [{ backendRefs: [{ name: cart, port: 80 }] }]
",
    );
    manifests
}

/// The stream documents, with the nodes of upstreams in the place of their ids.
fn resolved(config: &Value) -> Vec<Value> {
    let nodes = |id: &Value| {
        let all = config["upstreams"].as_array().unwrap();
        all.iter().find(|upstream| upstream["id"] == *id).unwrap()["nodes"].clone()
    };
    let mut routes: Vec<Value> = config["stream_routes"].as_array().unwrap().clone();
    for route in &mut routes {
        route.as_object_mut().unwrap().remove("id").unwrap();
        for target in route["targets"].as_array_mut().unwrap() {
            if let Some(id) = target.as_object_mut().unwrap().remove("upstream_id") {
                target["nodes"] = nodes(&id);
            }
        }
    }
    routes.sort_by_key(|route| (route["server_port"].as_u64(), route["snis"].to_string()));
    routes
}

#[test]
fn stream_documents_are_printed_under_a_prefix_of_their_own() {
    let run = manifests()
        .translate(&["--stream", "-o", "json"])
        .exits(1)
        .prints_error("Service shop/nowhere does not exist");
    let planes = run.json()["dataPlanes"].as_array().unwrap().clone();
    let names: Vec<&str> = planes.iter().map(|plane| plane["dataPlane"].as_str().unwrap()).collect();
    assert_eq!(names, ["shop/web", "stream/shop/web"]);
    assert_eq!(planes[1]["prefix"], "/pingsix-stream/shop/web");
    let cart = planes[0]["config"]["upstreams"][0]["nodes"].clone();
    let to_cart = |weight: u32| json!({ "nodes": cart, "weight": weight });
    let expected = [
        json!({"server_port": 443, "protocol": "tls", "snis": ["*.example.com"], "tls": "passthrough",
            "targets": [to_cart(1)]}),
        json!({"server_port": 443, "protocol": "tls", "snis": ["a.example.com"], "tls": "passthrough",
            "targets": [to_cart(1)]}),
        json!({"server_port": 5353, "protocol": "udp",
            "targets": [{"nodes": {"127.0.0.1:5354": 1, "127.0.0.2:5354": 1}, "weight": 1}]}),
        json!({"server_port": 5432, "protocol": "tcp",
            "targets": [to_cart(3), {"reject": "invalid", "weight": 1}]}),
    ];
    assert_eq!(resolved(&planes[1]["config"]), expected);
}

#[test]
fn all_forms_agree() {
    let manifests = manifests();
    let yaml = manifests.translate(&["--stream", "--root", "/edge"]).exits(1);
    let yaml =
        yaml.prints("# data plane stream/shop/web, etcd prefix /edge-stream/shop/web\n# for a stream proxy");
    assert!(yaml.out.contains("stream_routes:"));
    let json = manifests.translate(&["--stream", "-o", "json"]).json();
    let etcd = manifests.translate(&["--stream", "-o", "etcd-json"]).json();
    for route in json["dataPlanes"][1]["config"]["stream_routes"].as_array().unwrap() {
        let key = format!("/pingsix-stream/shop/web/stream_routes/{}", route["id"].as_str().unwrap());
        assert_eq!(etcd[&key]["targets"], route["targets"], "{key}");
    }
}

#[test]
fn without_the_flag_no_data_plane_serves_streams() {
    let manifests = manifests();
    let run = manifests.check().exits(1);
    let run = run
        .prints("The data plane does not serve protocol TCP. [UnsupportedProtocol]")
        .prints("1 data plane)");
    // A refused listener is one problem. The TLSRoute names no listener, and the one for HTTP does not admit it.
    assert_eq!(run.out.matches("[NotAllowedByListeners]").count(), 1, "{}", run.out);
    let printed = manifests.translate(&["-o", "json"]).json();
    assert_eq!(printed["dataPlanes"].as_array().unwrap().len(), 1);
}

#[test]
fn check_reports_routes_and_their_parents() {
    let manifests = manifests();
    manifests.write(
        "lost.yaml",
        r"
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: { name: lost, namespace: shop }
spec:
  parentRefs: [{ name: missing }]
  rules: [{ backendRefs: [{ name: cart, port: 80 }] }]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: { name: late, namespace: shop }
spec:
  parentRefs: [{ name: web }]
  rules: [{ backendRefs: [{ name: cart, port: 80 }] }]
",
    );
    let path = manifests.path().display().to_string();
    let run = run(["check", &path, "--stream"]).exits(1);
    let run =
        run.prints("TCPRoute shop/lost").prints("Gateway shop/missing does not exist. [ParentNotFound]");
    let run = run.prints("TCPRoute shop/late").prints("goes to TCPRoute shop/db, which is older. [Shadowed]");
    run.prints("2 data planes)");
}

#[test]
fn serve_publishes_them_beside_what_pingsix_reads() {
    let manifests = manifests();
    let served = Served::start(&manifests, &["--stream"]);
    served.wait_for("published stream/shop/web revision");
    served.wait_for("ready");
    let keys = served.keys("/pingsix-stream/shop/web/").unwrap();
    let of_kind = |kind: &str| {
        let prefix = format!("/pingsix-stream/shop/web/{kind}/");
        keys.iter().filter(|key| key.starts_with(&prefix)).count()
    };
    assert_eq!((of_kind("stream_routes"), of_kind("upstreams"), keys.len()), (4, 2, 6), "{keys:?}");
    assert!(!served.keys("/pingsix/shop/web/").unwrap().is_empty());
    manifests.remove("streams.yaml");
    served.wait_for("published stream/shop/web revision");
    assert!(served.keys("/pingsix-stream/shop/web/").unwrap().is_empty());
    // A Gateway that goes takes its stream documents with it.
    manifests.remove("gateway.yaml");
    served.wait_for("published stream/shop/web (withdrawn)");
}

#[test]
fn status_has_a_verdict_for_every_route() {
    let run = manifests().translate(&["--stream", "-o", "status"]).exits(1);
    for kind in ["kind: TCPRoute", "kind: UDPRoute", "kind: TLSRoute"] {
        assert!(run.out.contains(kind), "{kind} in {}", run.out);
    }
    assert!(!run.out.contains("UnsupportedProtocol"), "{}", run.out);
}

#[test]
fn explain_follows_the_connection_to_a_port_for_streams() {
    let manifests = manifests();
    let path = manifests.path().display().to_string();
    let ask = |url: &str, more: &[&str]| run(["explain", &path, "GET", url, "--stream"].iter().chain(more));
    let tcp = ask("http://db.example.com:5432/", &[]).exits(0).prints("data plane  stream/shop/web\n");
    let tcp = tcp
        .prints("listener    db (TCP port 5432, any host)\n")
        .prints("1. TCPRoute shop/db spec.rules[0]: decides");
    let tcp = tcp.prints("3 of 4: Service shop/cart port 80\n").prints("1 of 4: closed (invalid)\n");
    let tcp = tcp
        .prints("TCPRoute shop/db: spec.rules[0].backendRefs[1].name: Service shop/nowhere does not exist.");
    assert!(!tcp.out.contains("HTTPRoute"), "{}", tcp.out);
    // The result does not depend on the request inside.
    ask("https://db.example.com:5432/", &[]).exits(0).prints("Service shop/cart port 80");
    let json = ask("https://a.example.com/", &["-o", "json"]).exits(0).json();
    assert_eq!(json.as_array().unwrap().len(), 1);
    assert_eq!(json[0]["answer"]["kind"], "connection");
    assert_eq!(json[0]["answer"]["backends"][0]["service"], "shop/cart");
    assert_eq!(json[0]["dataPlane"], "stream/shop/web");
    ask("https://a.example.org/", &[]).exits(1).prints("No route is for this server name");
    ask("http://a.example.com:443/", &[]).exits(1).prints("A connection without TLS is closed.");
    ask("http://a.example.com:5353/", &[])
        .exits(1)
        .prints("is for UDP")
        .prints("Nothing listens there for TCP.");
    // Ports of requests and unknown ports are answered as without streams.
    ask("http://shop.example.com/cart", &[]).exits(0).prints("data plane  shop/web\n");
    ask("http://shop.example.com:30080/cart", &[]).exits(0).prints("data plane  shop/web\n");
}

#[test]
fn explain_says_that_pingsix_does_not_serve_a_port_for_streams() {
    let manifests = manifests();
    let path = manifests.path().display().to_string();
    for url in ["http://db.example.com:5432/", "https://db.example.com:5432/cart"] {
        let refused = run(["explain", &path, "GET", url]).exits(1).prints("data plane  none\n");
        let refused = refused.prints("Port 5432 of Gateway shop/web is for TCP, so no request arrives there");
        let refused = refused
            .prints("is not served. spec.listeners[1].protocol: The data plane does not serve protocol TCP.");
        assert!(!refused.out.contains("HTTPRoute"), "{}", refused.out);
    }
}

#[test]
fn a_guard_of_server_names_closes_their_connections() {
    let manifests = manifests();
    let narrow = "  - { name: narrow, port: 443, protocol: TLS, hostname: b.example.com, tls: { mode: Passthrough } }\n";
    let with = |text: String| format!("{text}{narrow}");
    manifests.write(
        "gateway.yaml",
        &with(std::fs::read_to_string(manifests.path().join("gateway.yaml")).unwrap()),
    );
    let streams = std::fs::read_to_string(manifests.path().join("streams.yaml")).unwrap();
    manifests.write(
        "streams.yaml",
        &streams.replace("parentRefs: [{ name: web }]", "parentRefs: [{ name: web, sectionName: tls }]"),
    );
    let path = manifests.path().display().to_string();
    run(["explain", &path, "GET", "https://b.example.com/", "--stream"])
        .exits(1)
        .prints("No route is for this server name, and listeners with a wider hostname must not take it.");
}

#[test]
fn stream_documents_are_not_judged_as_those_of_pingsix() {
    let printed = manifests().translate(&["--stream"]).exits(1).out;
    let checked = run_with(&printed, ["check", "--pingsix", "-"]).exits(1);
    let checked = checked.prints("[StreamDocuments]").prints("These are stream documents").prints("1 error");
    assert!(!checked.out.contains("PingSIX refuses the whole configuration"), "{}", checked.out);
}
