use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Manifests, route, run};
use crate::translate::https;

fn documents(text: &str) -> Vec<Value> {
    text.split("---\n")
        .filter(|text| !text.is_empty())
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect()
}

#[test]
fn a_plaintext_process_offers_h2c() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let path = manifests.path().to_str().unwrap();
    let arguments =
        ["--etcd", "10.0.0.9:2379", "--bind", "127.0.0.1", "--port-offset", "8000", "--threads", "3"];
    let run = run(["pingsix-config", path].iter().chain(&arguments)).exits(0);
    let [config] = documents(&run.out).try_into().unwrap();
    let config: Value = config;
    assert_eq!(config["pingsix"]["listeners"], json!([{ "address": "127.0.0.1:8080", "offer_h2c": true }]));
    assert_eq!(config["pingsix"]["etcd"]["host"], json!(["10.0.0.9:2379"]));
    assert_eq!(config["pingsix"]["etcd"]["prefix"], "/pingsix/shop/web");
    assert_eq!(config["pingora"]["threads"], 3);
    assert!(config["pingsix"]["etcd"].get("tls").is_none(), "{}", run.out);
    // PingSIX serves on without a feed, so its readiness stays.
    assert_eq!(config["pingsix"]["status"]["fail_readiness_when_stale"], false);
}

#[test]
fn a_feed_over_tls_is_verified_and_shown_a_certificate() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let print = |arguments: &[&str]| {
        run(["pingsix-config", manifests.path().to_str().unwrap()].iter().chain(arguments))
    };
    let tls_of = |arguments: &[&str]| {
        let [config] = documents(&print(arguments).exits(0).out).try_into().unwrap();
        let config: Value = config;
        config["pingsix"]["etcd"]["tls"].clone()
    };
    assert_eq!(tls_of(&["--etcd-ca", "/feed/ca.crt"]), json!({ "ca_cert": "/feed/ca.crt" }));
    let all = ["--etcd=https://feed.example:2379", "--etcd-ca=ca", "--etcd-cert=crt", "--etcd-key=key"];
    assert_eq!(
        tls_of(&[&all[..], &["--etcd-name=feed"]].concat()),
        json!({ "ca_cert": "ca", "client_cert": "crt", "client_key": "key", "domain": "feed" })
    );
    // PingSIX would refuse these, or connect without its certificate.
    print(&["--etcd-cert=crt", "--etcd-key=key"]).exits(2).prints_error("--etcd-ca");
    print(&["--etcd-ca=ca", "--etcd-cert=crt"]).exits(2).prints_error("--etcd-key");
    print(&["--etcd-ca=ca", "--etcd-key=key"]).exits(2).prints_error("--etcd-cert");
    print(&["--etcd-name=feed"]).exits(2).prints_error("--etcd-ca");
    print(&["--etcd=https://a:1"]).exits(2).prints_error("--etcd https://a:1 needs --etcd-ca");
    print(&["--etcd=http://a:1", "--etcd-ca=ca"]).exits(2).prints_error("is plaintext");
    print(&["--etcd=unix://a"]).exits(2).prints_error("neither http nor https");
}

#[test]
fn h2c_is_never_offered_beside_tls() {
    let (manifests, _) = https();
    let path = manifests.path().to_str().unwrap();
    let files = ["--cert", "/tls/crt", "--key", "/tls/key"];
    let shared = run(["pingsix-config", path].iter().chain(&files)).exits(0);
    assert!(!shared.out.contains("offer_h2c:"), "{}", shared.out);
    assert!(shared.out.contains("# Connections over HTTP/2 without TLS are closed"), "{}", shared.out);
    let only = |ports: &str| {
        let printed = run(["pingsix-config", path, "--ports", ports]).exits(0).out;
        let [config] = documents(&printed).try_into().unwrap();
        let config: Value = config;
        assert!(!printed.contains("HTTP/2"), "{printed}");
        assert_eq!(config["pingsix"]["etcd"]["prefix"], "/pingsix/shop/web");
        config["pingsix"]["listeners"].clone()
    };
    assert_eq!(only("plaintext"), json!([{ "address": "0.0.0.0:80", "offer_h2c": true }]));
    assert_eq!(only("tls")[0]["address"], "0.0.0.0:443");
    let tls = json!({ "cert_path": "/tls/crt", "key_path": "/tls/key" });
    let [shared] = documents(&shared.out).try_into().unwrap();
    let shared: Value = shared;
    assert_eq!(
        shared["pingsix"]["listeners"],
        json!([{ "address": "0.0.0.0:80" }, { "address": "0.0.0.0:443", "tls": tls, "offer_h2": true }])
    );
    let per_port = run(["pingsix-config", path, "--layout", "per-port"]).exits(0);
    let per_port = documents(&per_port.out);
    assert_eq!(per_port.len(), 2);
    assert_eq!(per_port[0]["pingsix"]["listeners"][0]["address"], "0.0.0.0:80");
    assert_eq!(per_port[0]["pingsix"]["listeners"][0]["offer_h2c"], true);
    // Two processes of one machine need two status addresses.
    assert_ne!(per_port[0]["pingsix"]["status"], per_port[1]["pingsix"]["status"]);
}

#[test]
fn a_data_plane_is_chosen_by_name() {
    let (manifests, _) = https();
    let path = manifests.path().to_str().unwrap();
    let one = run(["pingsix-config", path, "--layout", "per-port", "--data-plane", "shop/web:443"]).exits(0);
    assert_eq!(documents(&one.out).len(), 1);
    run(["pingsix-config", path, "--data-plane", "shop/other"]).exits(2).prints_error("known: shop/web");
    let offset = ["pingsix-config", path, "--port-offset", "363"];
    run(offset).exits(0);
}

#[test]
fn the_configuration_of_the_deployed_example_is_what_is_printed() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let path = |name: &str| deploy.join(name).display().to_string();
    let readme = std::fs::read_to_string(path("README.md")).unwrap();
    let command = readme.split_once("\npingsix-gatewayctl pingsix-config ").unwrap().1;
    let command = command.split_once("\n```").unwrap().0.replace("\\\n", " ");
    let arguments: Vec<String> = command
        .split_whitespace()
        .map(|argument| argument.strip_prefix("deploy/").map_or_else(|| argument.to_owned(), path))
        .collect();
    let printed = run(["pingsix-config"].into_iter().chain(arguments.iter().map(String::as_str))).exits(0);
    let [printed] = documents(&printed.out).try_into().unwrap();
    let map = std::fs::read_to_string(path("example/pingsix-config.yaml")).unwrap();
    let map: Value = serde_saphyr::from_str(&map).unwrap();
    let deployed: Value = serde_saphyr::from_str(map["data"]["config.yaml"].as_str().unwrap()).unwrap();
    assert_eq!(deployed, printed);
}
