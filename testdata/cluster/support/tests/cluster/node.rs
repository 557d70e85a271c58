//! Pods run, as processes with addresses of their own.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use pingsix_test_cluster::{CONTROLLERS, Node, TestCluster, in_own_network};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::eventually;

const SHOP: &str = include_str!("node/shop.yaml");
const SINGLES: &str = include_str!("node/singles.yaml");

async fn cluster(test: &str) -> Option<TestCluster> {
    if !in_own_network(&format!("node::{test}")).await {
        return None;
    }
    TestCluster::builder().crds(None).controllers(CONTROLLERS).node(Node::new()).start_or_skip().await
}

/// The status and the body of an answer, if there is one.
async fn get(address: IpAddr, port: u16, path: &str) -> Option<(u16, String)> {
    let asked = async {
        let mut stream = TcpStream::connect(SocketAddr::new(address, port)).await.ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: test\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    };
    timeout(Duration::from_secs(10), asked).await.ok().flatten()
}

async fn says(address: IpAddr, path: &str) -> Option<String> {
    get(address, 8080, path).await.filter(|(status, _)| *status == 200).map(|(_, body)| body)
}

fn pods(cluster: &TestCluster) -> Api<Pod> {
    Api::default_namespaced(cluster.admin())
}

fn address(pod: &Pod) -> Option<IpAddr> {
    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// A Pod and its address, once it is ready.
async fn ready(cluster: &TestCluster, name: &str) -> (Pod, IpAddr) {
    let is_up = async || pods(cluster).get_opt(name).await.unwrap().is_some_and(|pod| is_ready(&pod));
    eventually(&format!("{name} is ready"), is_up).await;
    let pod = pods(cluster).get(name).await.unwrap();
    let address = address(&pod).unwrap();
    (pod, address)
}

async fn container(cluster: &TestCluster, name: &str) -> ContainerStatus {
    let status = pods(cluster).get(name).await.unwrap().status.unwrap();
    status.container_statuses.unwrap().remove(0)
}

async fn ready_endpoints(cluster: &TestCluster, service: &str) -> Vec<String> {
    let slices = Api::<EndpointSlice>::default_namespaced(cluster.admin());
    let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    let found = slices.list(&of_service).await.unwrap();
    let endpoints = found.items.into_iter().flat_map(|slice| slice.endpoints.unwrap_or_default());
    let ready = endpoints.filter(|one| one.conditions.as_ref().is_some_and(|is| is.ready == Some(true)));
    ready.flat_map(|endpoint| endpoint.addresses).collect()
}

/// Processes of this network that are called so; what runs in a container is among them.
fn processes(name: &str) -> Vec<u32> {
    let own = std::fs::read_link("/proc/self/ns/user").unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let of = |file: &str| PathBuf::from(format!("/proc/{id}/{file}"));
        let called = std::fs::read_to_string(of("comm")).unwrap_or_default();
        called.trim_end() == name && std::fs::read_link(of("ns/user")).is_ok_and(|user| user == own)
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_runs_and_its_service_answers() {
    let Some(cluster) = cluster("a_deployment_runs_and_its_service_answers").await else { return };
    cluster.apply(SHOP).await.unwrap();
    let deployments = Api::<Deployment>::default_namespaced(cluster.admin());
    eventually("both replicas are ready", async || {
        let status = deployments.get("shop").await.unwrap().status.unwrap_or_default();
        status.ready_replicas == Some(2)
    })
    .await;
    eventually("both are endpoints", async || ready_endpoints(&cluster, "shop").await.len() == 2).await;

    // From outside, on the port of the Service, from one replica or the other.
    let services = Api::<Service>::default_namespaced(cluster.admin());
    let outside = async || -> Option<IpAddr> {
        let status = services.get("shop").await.unwrap().status?;
        status.load_balancer?.ingress?.first()?.ip.as_ref()?.parse().ok()
    };
    eventually("the Service has an address", async || outside().await.is_some()).await;
    let outside = outside().await.unwrap();
    let names: Vec<String> = pods(&cluster)
        .list(&ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(kube::ResourceExt::name_any)
        .collect();
    assert_eq!(names.len(), 2);
    for name in &names {
        eventually(&format!("{name} answers"), async || {
            get(outside, 80, "/").await.is_some_and(|(_, said)| said == *name)
        })
        .await;
    }
    assert_eq!(get(outside, 81, "/").await, None);

    // From inside of a Pod, by name, and with the account of the Pod.
    let (_, pod) = ready(&cluster, &names[0]).await;
    for url in ["http://shop/", "http://shop.default.svc:80/", "http://shop.default.svc.cluster.local/"] {
        let said = says(pod, &format!("/get?url={url}")).await;
        assert!(said.as_ref().is_some_and(|said| names.contains(said)), "{url}: {said:?}");
    }
    assert_eq!(
        get(pod, 8080, "/get?url=http://none.default.svc/").await.map(|(status, _)| status),
        Some(502)
    );
    let said = says(pod, "/kubernetes").await.unwrap_or_default();
    assert!(said.contains("gitVersion") && said.contains("APIGroupList"), "{said}");

    // The log as the API server has it.
    let log = pods(&cluster).logs(&names[0], &LogParams::default()).await.unwrap();
    assert!(log.starts_with("started with [one two default-shop $(NONE)]\n"), "{log}");
    let none = LogParams { since_seconds: Some(1), ..LogParams::default() };
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(pods(&cluster).logs(&names[0], &none).await.unwrap(), "");

    // A Deployment that goes takes all of them along.
    assert_eq!(processes("test-pod").len(), 4, "two containers in each of two Pods");
    deployments.delete("shop", &DeleteParams::default()).await.unwrap();
    eventually("no Pod is left", async || {
        pods(&cluster).list(&ListParams::default()).await.unwrap().items.is_empty()
    })
    .await;
    assert_eq!(processes("test-pod"), Vec::<u32>::new());
    eventually("no endpoint is left", async || ready_endpoints(&cluster, "shop").await.is_empty()).await;
    assert_eq!(get(outside, 80, "/").await, None);
    let log = std::fs::read_to_string(cluster.container_log("default", &names[0], "shop")).unwrap();
    assert!(log.trim_end().ends_with(" asked to end"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_gets_what_its_pod_says() {
    let Some(cluster) = cluster("a_container_gets_what_its_pod_says").await else { return };
    cluster.apply(SINGLES).await.unwrap();

    // The Pod waits for its Secret.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let waiting = container(&cluster, "reader").await.state.unwrap().waiting.unwrap();
    assert!(waiting.message.is_some_and(|why| why.contains("\"late\" not found")));
    let secrets = Api::<Secret>::default_namespaced(cluster.admin());
    let secret = |text: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late"}, "stringData": {"key": text}});
    cluster.apply(&secret("first").to_string()).await.unwrap();
    let (_, reader) = ready(&cluster, "reader").await;

    for (name, value) in [
        ("POD_NAME", "reader"),
        ("NAMESPACE", "default"),
        ("ADDRESS", reader.to_string().as_str()),
        ("FROM_color", "blue"),
        ("COLOR", "blue"),
        ("BOTH", "reader is blue"),
        ("KUBERNETES_SERVICE_HOST", "10.96.0.1"),
    ] {
        assert_eq!(says(reader, &format!("/env/{name}")).await.as_deref(), Some(value), "{name}");
    }
    assert_eq!(get(reader, 8080, "/env/ABSENT").await.map(|(status, _)| status), Some(404));
    for (path, text) in [
        ("secret/key", "first"),
        ("secret/..data/key", "first"),
        ("settings/renamed", "blue"),
        ("one/color", "blue"),
        ("about/labels", "app=\"reader\""),
    ] {
        assert_eq!(says(reader, &format!("/file/{path}")).await.as_deref(), Some(text), "{path}");
    }
    // The container has the files of its programs, and no other file of the machine.
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert!(PathBuf::from(manifest).exists());
    assert_eq!(says(reader, &format!("/file{manifest}")).await, None);
    // Only the volumes of the Pod are writable.
    for (path, status) in [("scratch/file", 200), ("secret/key", 403), ("file", 403), ("usr/file", 403)] {
        assert_eq!(
            get(reader, 8080, &format!("/write/{path}")).await.map(|(status, _)| status),
            Some(status),
            "{path}"
        );
    }

    // A change reaches the file while the process runs.
    cluster.apply(&secret("second").to_string()).await.unwrap();
    eventually("the file has the new text", async || {
        says(reader, "/file/secret/key").await.as_deref() == Some("second")
    })
    .await;
    let more = json!({"data": {"key": null, "other": "dGhpcmQ="}});
    secrets.patch("late", &PatchParams::default(), &Patch::Merge(&more)).await.unwrap();
    eventually("the file is another one", async || says(reader, "/file/secret/other").await.is_some()).await;
    assert_eq!(says(reader, "/file/secret/key").await, None);
    assert_eq!(container(&cluster, "reader").await.restart_count, 0);

    // An image that no Pod runs.
    let (absent, _) = ready(&cluster, "absent").await;
    assert_eq!(absent.status.unwrap().phase.as_deref(), Some("Running"));
    // Work that ends.
    eventually("the work is done", async || {
        let status = pods(&cluster).get("work").await.unwrap().status.unwrap_or_default();
        status.phase.as_deref() == Some("Failed")
    })
    .await;
    let ended = container(&cluster, "work").await.state.unwrap().terminated.unwrap();
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (1, Some("Error")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_are_looked_after_until_they_end() {
    let Some(cluster) = cluster("containers_are_looked_after_until_they_end").await else { return };
    cluster.apply(SHOP).await.unwrap();
    cluster.apply(SINGLES).await.unwrap();
    let (pod, watched) = ready(&cluster, "watched").await;
    assert_eq!(ready_endpoints(&cluster, "watched").await, [watched.to_string()]);

    // One that is not ready is no endpoint.
    assert!(says(watched, "/unready").await.is_some());
    eventually("it is no endpoint", async || ready_endpoints(&cluster, "watched").await.is_empty()).await;
    assert!(says(watched, "/again").await.is_some());
    eventually("it is one again", async || ready_endpoints(&cluster, "watched").await.len() == 1).await;

    // One that crashes is started again, and is where it was.
    assert_eq!(says(watched, "/exit/3").await, None);
    eventually("it is started again", async || container(&cluster, "watched").await.restart_count == 1).await;
    let status = container(&cluster, "watched").await;
    assert_eq!(status.last_state.unwrap().terminated.unwrap().exit_code, 3);
    let (again, address) = ready(&cluster, "watched").await;
    assert_eq!((again.uid(), address), (pod.uid(), watched));

    // Before it is asked to end it may wait, and it serves meanwhile.
    let deleted = Instant::now();
    pods(&cluster).delete("watched", &DeleteParams::default()).await.unwrap();
    eventually("it is no endpoint", async || ready_endpoints(&cluster, "watched").await.is_empty()).await;
    assert!(says(watched, "/").await.is_some());
    eventually("it is gone", async || pods(&cluster).get_opt("watched").await.unwrap().is_none()).await;
    let took = deleted.elapsed();
    assert!(took > Duration::from_secs(3), "{took:?}");
    assert_eq!(says(watched, "/").await, None);

    // One that does not end when it is asked to is made to.
    let (_, stubborn) = ready(&cluster, "stubborn").await;
    let deleted = Instant::now();
    pods(&cluster).delete("stubborn", &DeleteParams::default()).await.unwrap();
    eventually("it is gone", async || pods(&cluster).get_opt("stubborn").await.unwrap().is_none()).await;
    let took = deleted.elapsed();
    assert!(took > Duration::from_millis(1900), "{took:?}");
    assert_eq!(says(stubborn, "/").await, None);
    let log = std::fs::read_to_string(cluster.container_log("default", "stubborn", "stubborn")).unwrap();
    assert!(log.trim_end().ends_with(" asked to end"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_end_with_their_node_and_are_run_by_the_next_one() {
    let test = "pods_end_with_their_node_and_are_run_by_the_next_one";
    let Some(cluster) = cluster(test).await else { return };
    cluster.apply(SHOP).await.unwrap();
    let two = async || {
        let found = pods(&cluster).list(&ListParams::default()).await.unwrap().items;
        found.len() == 2 && found.iter().all(is_ready)
    };
    eventually("both replicas are ready", two).await;
    let before = pods(&cluster).list(&ListParams::default()).await.unwrap().items;
    let node = cluster.node().unwrap();
    node.kill().await.unwrap();
    eventually("no process is left", async || processes("test-pod").is_empty()).await;
    node.start().await.unwrap();
    for pod in before {
        let (name, known) = (pod.name_any(), address(&pod).unwrap());
        eventually("it answers", async || says(known, "/").await == Some(name.clone())).await;
    }
}
