//! Input from a cluster, on a real API server: the output is that of files with the same objects.

mod credentials;
mod definitions;
mod dump;
mod faults;
mod pages;
mod plugin;
mod scripted;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use pingsix_test_cluster::{Channel, TestCluster};

use crate::support::{CART, GATEWAY, Manifests, Run, route, run, run_with};
use dump::Dump;

/// A Secret to which no object refers.
const BYSTANDER: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: bystander, namespace: shop}\n\
    stringData: {key: sentinel-of-the-bystander}\n";

/// A route of a team, with a backend that does not exist.
const OF_A_TEAM: &str = r"
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: of-team-a, namespace: shop, labels: { team: a } }
spec:
  parentRefs: [{ name: web }]
  rules: [{ backendRefs: [{ name: gone, port: 80 }] }]
";

/// The kinds to which a label selector applies.
const SELECTED: [&str; 8] =
    ["Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "Ingress"];

/// Objects of APISIX: a protected route, and a consumer whose key is in a Secret.
const APISIX: &str = r"
apiVersion: v1
kind: Secret
metadata: { name: alice, namespace: shop }
stringData: { key: alices-key }
---
apiVersion: apisix.apache.org/v2
kind: ApisixConsumer
metadata: { name: alice, namespace: shop }
spec: { authParameter: { keyAuth: { secretRef: { name: alice } } } }
---
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata: { name: orders, namespace: shop }
spec:
  http:
  - name: orders
    match: { paths: [/orders] }
    backends: [{ serviceName: cart, servicePort: 80 }]
    authentication: { enable: true, type: keyAuth }
";

/// The definition of a kind of APISIX, which admits everything.
fn definition(kind: &str, plural: &str) -> String {
    format!(
        r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{ name: {plural}.apisix.apache.org }}
spec:
  group: apisix.apache.org
  scope: Namespaced
  names: {{ kind: {kind}, plural: {plural} }}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {{ openAPIV3Schema: {{ type: object, x-kubernetes-preserve-unknown-fields: true }} }}
"
    )
}

/// Files below a directory of the repository, in the order of their names.
fn texts_below(directory: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory);
    let mut folders = vec![root];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|path| path.extension() == Some(OsStr::new("yaml")));
    files.sort();
    let texts = files.iter().map(|path| std::fs::read_to_string(path).unwrap());
    texts.filter(|text| !text.contains("kind: Kustomization")).collect()
}

/// Applies manifests, after the namespaces that they name.
async fn apply(cluster: &TestCluster, text: &str) {
    let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(text).unwrap();
    for object in objects {
        if let Some(namespace) = object["metadata"]["namespace"].as_str() {
            cluster.namespace(namespace).await.unwrap();
        }
    }
    cluster.apply(text).await.unwrap();
}

/// A cluster with the definitions and objects of many kinds.
async fn rich_cluster() -> Option<TestCluster> {
    let builder = TestCluster::builder().crds(Channel::Experimental).user("reader", &[]);
    let cluster = builder.start_or_skip().await?;
    for text in texts_below("crds") {
        cluster.apply(&text).await.unwrap();
    }
    for (kind, plural) in [("ApisixRoute", "apisixroutes"), ("ApisixConsumer", "apisixconsumers")] {
        cluster.apply(&definition(kind, plural)).await.unwrap();
    }
    let examples =
        ["security", "tls-certificates", "cross-namespace", "ingress", "route-filters", "backend-tls"];
    for example in examples {
        for text in texts_below(&format!("testdata/examples/{example}")) {
            apply(&cluster, &text).await;
        }
    }
    for text in [GATEWAY, CART, &route("cart", "/cart", "cart"), OF_A_TEAM, BYSTANDER, APISIX] {
        apply(&cluster, text).await;
    }
    Some(cluster)
}

/// Runs a command on a cluster and on a dump, and compares everything but the places of objects.
fn assert_same(kubeconfig: &Path, command: &[&str], selection: &[&str], last: &[&str], dump: &Dump) -> Run {
    let kubeconfig = kubeconfig.to_str().unwrap();
    let (path, of_cluster) = (dump.path(), ["--cluster", "--kubeconfig", kubeconfig]);
    let live = run(command.iter().chain(&of_cluster).chain(selection).chain(last));
    let files = run(command.iter().chain(&[path]).chain(last));
    assert_eq!(live.code, files.code, "{command:?}: {}{}", live.out, live.err);
    assert_eq!(dump::normal(&live.out, path), dump::normal(&files.out, path), "{command:?} {selection:?}");
    assert_eq!(dump::normal(&live.err, path), dump::normal(&files.err, path), "{command:?} {selection:?}");
    assert!(!live.out.contains("sentinel") && !live.err.contains("sentinel"));
    live
}

#[tokio::test]
async fn a_cluster_is_read_as_a_dump_of_its_objects() {
    let Some(cluster) = rich_cluster().await else { return };
    let kubeconfig = cluster.kubeconfig(cluster.administrator()).unwrap();
    // Without the objects to which no other refers.
    let is_bystander = |object: &serde_json::Value| {
        let is_of_the_system = object["metadata"]["namespace"] == "kube-system";
        object["metadata"]["name"] == "bystander" || (object["kind"] == "ConfigMap" && is_of_the_system)
    };
    let all = Dump::of(&cluster, |object| !is_bystander(object)).await;
    let of_apisix = ["ApisixRoute", "ApisixConsumer"];
    let is_of_apisix = |object: &serde_json::Value| {
        of_apisix.contains(&object["kind"].as_str().unwrap()) || object["metadata"]["name"] == "alice"
    };
    let translated = all.filtered(|object| !is_of_apisix(object));
    let target = tempfile::tempdir().unwrap();
    let target = format!("file:{}/", target.path().display());
    for command in [
        &["check"][..],
        &["check", "-o", "json"],
        &["translate"],
        &["translate", "-o", "status"],
        &["translate", "-o", "etcd-json"],
        &["translate", "-o", "review"],
        &["diff", "--target", &target],
        &["diff", "-o", "json", "--target", &target],
    ] {
        assert_same(&kubeconfig, command, &[], &[], &translated);
    }
    // A migration reads no endpoints, and Services and Namespaces only for other objects.
    let is_of_kubernetes = |object: &serde_json::Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        object["kind"] == "Namespace" && (name == "default" || name.starts_with("kube-"))
            || name == "kubernetes"
    };
    let has_no_part =
        |object: &serde_json::Value| object["kind"] == "EndpointSlice" || is_of_kubernetes(object);
    let migrated = all.filtered(|object| !has_no_part(object));
    for report in ["text", "json", "markdown"] {
        let command = ["migrate", "--only-converted", "--report", report];
        let migrated = assert_same(&kubeconfig, &command, &[], &[], &migrated);
        assert!(migrated.out.contains("kind: SecurityPolicy"), "{}", migrated.out);
    }
    for url in ["http://a.test/cart", "http://a.test/orders", "https://archive.museum.example/"] {
        assert_same(&kubeconfig, &["explain"], &[], &["GET", url], &translated);
    }
    let checked = assert_same(&kubeconfig, &["check"], &[], &[], &translated);
    checked.prints("<cluster> HTTPRoute shop/of-team-a\n").prints("Service shop/gone does not exist.");
    let migrated = run(["migrate", "--from-cluster", "--kubeconfig", kubeconfig.to_str().unwrap()]);
    let migrated = migrated.prints("kind: SecurityPolicy").prints("name: cart");
    assert!(
        !migrated.out.contains("name: kubernetes") && !migrated.out.contains("bystander"),
        "{}",
        migrated.out
    );

    // Namespaces.
    let is_chosen = |object: &serde_json::Value| {
        let namespace = object["metadata"]["namespace"].as_str();
        namespace.is_none_or(|namespace| ["shop", "museum"].contains(&namespace))
    };
    let some = translated.filtered(is_chosen);
    let selection = ["-n", "shop", "--namespace", "museum"];
    assert_same(&kubeconfig, &["check"], &selection, &[], &some);
    assert_same(&kubeconfig, &["translate", "-o", "etcd-json"], &selection, &[], &some);

    // Labels.
    let has_label = |object: &serde_json::Value| object["metadata"]["labels"]["team"] == "a";
    let is_selected = |object: &serde_json::Value| {
        has_label(object) || !SELECTED.contains(&object["kind"].as_str().unwrap_or_default())
    };
    let some = translated.filtered(is_selected);
    // Without Gateways and Ingresses, nothing refers to most Secrets, which are then not read.
    assert_same(&kubeconfig, &["translate", "-o", "status"], &["-l", "team=a"], &[], &some);

    faults::forbidden_kinds(&cluster).await;
    plugin::input_is_the_cluster(&kubeconfig, &translated);
    plugin::commands_of_the_page_run(&kubeconfig);
    faults::parameters_elsewhere(&cluster, kubeconfig.to_str().unwrap()).await;
    definitions::are_judged_as_by_the_api_server(&cluster).await;
}

#[tokio::test]
async fn kinds_without_definition_count_as_absent_and_long_lists_are_whole() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let kubeconfig = cluster.kubeconfig(cluster.administrator()).unwrap();
    let kubeconfig = kubeconfig.to_str().unwrap();
    // More than a page has.
    for number in 0..510 {
        cluster.namespace(&format!("n{number}")).await.unwrap();
    }
    // Namespaces alone give nothing to check.
    let checked = run(["check", "--cluster", "--kubeconfig", kubeconfig]).exits(1);
    let checked = checked.prints("[NothingToCheck]").prints("1 error, 0 warnings (51");
    let note =
        "note: the API server does not serve these kinds, so they count as absent: GatewayClass, Gateway, ";
    let checked = checked.prints_error(note);
    assert!(!checked.err.contains("Ingress"), "{}", checked.err);
    run(["migrate", "--from-cluster", "--kubeconfig", kubeconfig])
        .exits(2)
        .prints_error("note: the API server serves no kind of apisix.apache.org")
        .prints_error("error: the cluster has no object to convert");
}

#[test]
fn files_and_a_cluster_exclude_each_other() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let path = manifests.path().to_str().unwrap();
    run(["check", path, "--cluster"])
        .exits(2)
        .prints_error("--cluster is about a cluster, and the input is files");
    run(["translate", path, "-n", "shop"]).exits(2).prints_error("--namespace is about a cluster");
    run(["check", "--selector", "team=a"]).exits(2).prints_error("--selector needs --cluster");
    run(["check"]).exits(2).prints_error("no input; name files or directories");
    run(["check", "--cluster", "-n", "a/b"]).exits(2).prints_error("expected the name of a namespace");
    run_with("", ["explain", "GET", "http://a.test/"]).exits(2).prints_error("no input");
}
