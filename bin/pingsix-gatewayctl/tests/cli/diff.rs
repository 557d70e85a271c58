//! `diff`: the changes of a publication, for a file and a running server.

use std::ffi::OsStr;
use std::path::Path;

use bytes::Bytes;
use pingsix_sink::file::FileLocation;
use pingsix_sink::{Desired, Document, DocumentSet, FileSink, Key, OrderHint, Owner, Scope, Sink as _};

use crate::serve::Served;
use crate::support::{Manifests, Run, route, run};
use crate::translate::https;

pub(crate) fn diff(manifests: &Manifests, target: &str, arguments: &[&str]) -> Run {
    let base = [OsStr::new("diff"), manifests.path().as_os_str(), OsStr::new("--target"), OsStr::new(target)];
    run(base.into_iter().chain(arguments.iter().map(OsStr::new)))
}

/// Publishes manifests to a file.
pub(crate) fn publish(manifests: &Manifests, file: &Path) {
    let prefix = "/pingsix/shop/web";
    let pairs = manifests.translate(&["-o", "etcd-json"]).exits(0).json();
    let documents = pairs.as_object().unwrap().iter().map(|(key, value)| Document {
        key: Key::new(key.strip_prefix(&format!("{prefix}/")).unwrap()).unwrap(),
        value: Bytes::from(value.to_string()),
        order: OrderHint(0),
        owner: Owner::new("test"),
    });
    let desired = Desired::new(Scope::new(prefix).unwrap(), DocumentSet::new(documents).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let sink = FileSink::open(FileLocation::File(file.to_owned()), None).await.unwrap();
        sink.publish(&desired).await.unwrap();
    });
}

#[test]
fn a_file_is_compared_document_by_document_and_field_by_field() {
    let (manifests, key) = https();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.yaml");
    let target = format!("file:{}", file.display());
    let all = diff(&manifests, &target, &[]).exits(1);
    let all = all.prints("  # HTTPRoute shop/cart\n").prints("\n+ ssls/").prints(" updated, 0 deleted\n");
    assert!(all.out.lines().all(|line| line.starts_with(['+', ' ', 'd'])), "{}", all.out);
    assert!(!all.out.contains(&key) && all.out.contains("  + key: \"***\"\n"), "{}", all.out);
    assert!(!file.exists(), "nothing is written");

    publish(&manifests, &file);
    diff(&manifests, &target, &[])
        .exits(0)
        .prints("data plane shop/web, prefix /pingsix/shop/web: 0 created, 0 updated, 0 deleted\n");

    manifests.write("cart.yaml", &crate::support::CART.replace("10.0.0.1", "10.0.0.2"));
    manifests.write("gateway.yaml", crate::support::GATEWAY);
    let changed = diff(&manifests, &target, &[]).exits(1);
    let changed = changed.prints("\n~ upstreams/").prints("  # Service shop/cart\n").prints("\n- ssls/");
    let changed = changed.prints("  - nodes.10.0.0.1:8080: 1\n").prints("  + nodes.10.0.0.2:8080: 1\n");
    assert!(!changed.out.contains(&key));

    let json = diff(&manifests, &target, &["-o", "json"]).exits(1).json();
    let plane = &json["dataPlanes"][0];
    assert_eq!((&plane["dataPlane"], &plane["prefix"]), (&"shop/web".into(), &"/pingsix/shop/web".into()));
    let mut without_positions = plane["changes"].as_array().unwrap().iter();
    let update = without_positions.find(|change| change["change"] == "updated").unwrap();
    assert_eq!(update["owner"], "Service shop/cart");
    assert_eq!(update["fields"][0], serde_json::json!({"path": "nodes.10.0.0.1:8080", "before": 1}));
}

#[test]
fn a_running_server_is_compared_over_its_port() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let served = Served::start(&manifests, &[]);
    let published = served.wait_for("ready");
    let target = format!("embedded:?listen={}", served.etcd);
    let responder = ["--responder", &served.responder.to_string()];
    diff(&manifests, &target, &responder).exits(0);
    let other = Manifests::shop(&route("cart", "/basket", "cart"));
    let changed = diff(&other, &target, &responder).exits(1);
    changed.prints("  + uris: [/basket/, /basket, \"/basket/{*p}\"]\n").prints("- routes/");
    // A data plane that was never published would be new as a whole.
    let root = [&responder[..], &["--root", "/other"]].concat();
    diff(&manifests, &target, &root)
        .exits(1)
        .prints("prefix /other/shop/web: ")
        .prints(" 0 updated, 0 deleted\n");
    drop(published);
}

#[test]
fn an_unavailable_target_exits_with_2() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    diff(&manifests, "stdout:", &[]).exits(2).prints_error("begins with one of embedded:");
    diff(&manifests, "etcd://root:sesame@a", &[]).exits(2).prints_error("a URL is no place for a secret");
    diff(&manifests, "etcd://127.0.0.1:1", &[])
        .exits(2)
        .prints_error("cannot read data plane shop/web from etcd://127.0.0.1:1: etcd cannot be reached");
    diff(&manifests, "file:/no/such/file", &["--data-plane", "shop/other"])
        .exits(2)
        .prints_error("there is no data plane shop/other; known: shop/web");
    let (manifests, _) = https();
    let per_port = ["--layout", "per-port"];
    diff(&manifests, "file:/no/such/file", &per_port)
        .exits(2)
        .prints_error("is for one data plane; choose one with --data-plane: shop/web:80, shop/web:443");
    diff(&manifests, "file:/no/such/file", &[&per_port[..], &["--data-plane", "shop/web:80"]].concat())
        .exits(1);
    diff(&manifests, "file:/no/such/directory/", &per_port).exits(1).prints("shop/web:443");
    diff(&Manifests::new(&[]), "stdout:", &[]).exits(2);
}
