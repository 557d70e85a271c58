//! An upgrade under load, as `docs/how-to/upgrade.md` has it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pingsix_test_cluster::Node;
use pingsix_test_programs::{commands, program};
use tokio::process::Command;

use crate::reader::{Reader, cluster_with, page};
use crate::test_env::pingsix;

/// The environment variable with a folder of the programs of an earlier version. Without it, both versions are the same
/// programs, and only their images differ.
const EARLIER: &str = "PINGSIX_EARLIER_PROGRAMS";

async fn earlier(name: &str) -> PathBuf {
    match std::env::var_os(EARLIER) {
        Some(folder) => PathBuf::from(folder).join(name),
        None => program(name).await,
    }
}

/// Clients that send requests until they are told to stop.
struct Load {
    is_over: Arc<AtomicBool>,
    answers: Arc<AtomicUsize>,
    clients: Vec<tokio::task::JoinHandle<Vec<String>>>,
}

impl Load {
    fn start(address: &str, clients: usize) -> Self {
        let (is_over, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let url = format!("http://{address}/get");
        let client = |_| {
            let (is_over, answers, url) = (is_over.clone(), answers.clone(), url.clone());
            tokio::spawn(async move {
                let mut failures = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let output = Command::new("curl")
                        .args(["-s", "-o", "/dev/null", "--noproxy", "*", "--max-time", "10"])
                        .args(["-w", "%{http_code} %{errormsg}", "-H", "Host: hello.example", &url])
                        .output()
                        .await
                        .unwrap();
                    answers.fetch_add(1, Ordering::Relaxed);
                    let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                    if answer != "200" {
                        failures.push(answer);
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                failures
            })
        };
        let clients = (0..clients).map(client).collect();
        Self { is_over, answers, clients }
    }

    /// The number of answers, and those that are not 200.
    async fn stop(self) -> (usize, Vec<String>) {
        self.is_over.store(true, Ordering::Relaxed);
        let mut failures = Vec::new();
        for client in self.clients {
            failures.extend(client.await.unwrap());
        }
        (self.answers.load(Ordering::Relaxed), failures)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_all_programs_are_replaced() {
    const TEST: &str = "upgrade::no_request_fails_while_all_programs_are_replaced";
    let Some(data_plane) = pingsix::binary(TEST) else { return };
    let node = Node::new()
        .image("pingsix:next", data_plane.clone())
        .image("pingsix:", data_plane)
        .image("pingsix-gateway-controller:next", program("pingsix-gateway-controller").await)
        .image("pingsix-gateway-sidecar:next", program("pingsix-gateway-sidecar").await)
        .image("pingsix-gateway-controller:", earlier("pingsix-gateway-controller").await)
        .image("pingsix-gateway-sidecar:", earlier("pingsix-gateway-sidecar").await);
    let Some(cluster) = cluster_with(TEST, node).await else { return };
    let mut reader = Reader::new(&cluster);
    let tutorial = page("tutorial/in-a-cluster.md");
    let (before, _) = tutorial.split_once("## Clean up").unwrap();
    for command in commands(before) {
        reader.run(command).await;
    }
    let address = reader.variables["ADDRESS"].to_str().unwrap().to_owned();
    let load = Load::start(&address, 4);
    let images =
        r#"{"spec":{"managed":{"image":"pingsix:next","sidecar":{"image":"pingsix-gateway-sidecar:next"}}}}"#;
    for command in [
        // Helm and an overlay change the image in this way, too.
        "kubectl -n pingsix-system set image deployment/pingsix-gateway-controller '*=pingsix-gateway-controller:next'",
        "kubectl -n pingsix-system rollout status deployment/pingsix-gateway-controller --timeout=2m",
        &format!("kubectl -n pingsix-system patch pingsixproxy quickstart --type merge -p '{images}'"),
        "kubectl -n quickstart wait --timeout=1m --for=jsonpath='{.spec.template.spec.containers[0].image}'=pingsix:next deployment/web-pingsix",
        "kubectl -n quickstart rollout status deployment/web-pingsix --timeout=3m",
        // A change that the new programs deliver.
        "kubectl -n quickstart annotate httproute hello pingsix.io/test=upgrade",
        "kubectl -n quickstart wait --timeout=2m --for=condition=Programmed gateway/web",
    ] {
        reader.run(command).await;
    }
    // The Pods before are told to stop, and have their time to do so.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (answers, failures) = load.stop().await;
    assert!(answers > 500, "{answers}");
    assert!(failures.is_empty(), "{} of {answers} answers: {failures:?}", failures.len());
    println!("{TEST}: {answers} answers during the upgrade, none of them a failure");
}
