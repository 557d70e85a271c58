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
}

#[test]
fn h2c_is_never_offered_beside_tls() {
    let (manifests, _) = https();
    let path = manifests.path().to_str().unwrap();
    let files = ["--cert", "/tls/crt", "--key", "/tls/key"];
    let shared = run(["pingsix-config", path].iter().chain(&files)).exits(0);
    assert!(!shared.out.contains("offer_h2c"), "{}", shared.out);
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
    run(["pingsix-config", path, "--data-plane", "shop/other"]).exits(2).warns("known: shop/web");
    let offset = ["pingsix-config", path, "--port-offset", "363"];
    run(offset).exits(0);
}
