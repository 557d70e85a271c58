//! The tutorial for a cluster, command by command, in a cluster with a node: the controller is the Deployment of the
//! manifests, as are all servers.
//!
//! [`Kubectl`] implements the commands of the page in place of `kubectl`, and refuses every other one.

mod kubectl;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::ListParams;
use pingsix_test_cluster::{CONTROLLERS, Node, TestCluster, in_own_network};

use self::kubectl::Kubectl;
use crate::test_env::programs::program;
use crate::test_env::{eventually_async, pingsix};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The commands of the page, a line each, in their order.
fn commands(page: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            command if inside => commands.push(command),
            _ => {}
        }
    }
    commands
}

/// A command, and the expected output in its comment.
fn with_expectation(command: &str) -> (&str, Option<&str>) {
    match command.split_once("   # ") {
        Some((command, expected)) => (command, Some(expected)),
        None => (command, None),
    }
}

/// The output of `curl`, which needs the address from an earlier command.
fn curl(command: &str, address: &str) -> String {
    // A proxy of the machine is none for this network.
    let variables = [("ADDRESS", address), ("NO_PROXY", "*")];
    let output = Command::new("sh").args(["-c", command]).envs(variables).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn has_curl() -> bool {
    Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The objects of a Gateway.
async fn of_the_gateway(cluster: &TestCluster) -> (usize, usize) {
    let of_gateway = ListParams::default().labels("gateway.networking.k8s.io/gateway-name=web");
    let deployments = Api::<Deployment>::namespaced(cluster.admin(), "quickstart");
    let services = Api::<Service>::namespaced(cluster.admin(), "quickstart");
    let deployments = deployments.list(&of_gateway).await.unwrap().items.len();
    (deployments, services.list(&of_gateway).await.unwrap().items.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_quick_start_does_what_it_says() {
    const TEST: &str = "quickstart::the_quick_start_does_what_it_says";
    let Some(data_plane) = pingsix::binary(TEST) else { return };
    if !has_curl() {
        return pingsix::print_message(&format!("{TEST}: NOT RUN: there is no curl"));
    }
    // Before the test has a network of its own, from which no package could be fetched.
    let controller = program("pingsix-gateway-controller").await;
    let responder = program("pingsix-gateway-responder").await;
    if !in_own_network(TEST).await {
        return;
    }
    let node = Node::new()
        .image("pingsix:", data_plane)
        .image("pingsix-gateway-controller:", controller)
        .image("pingsix-gateway-responder:", responder);
    let builder = TestCluster::builder().crds(None).controllers(CONTROLLERS).node(node);
    let Some(cluster) = builder.start_or_skip().await else { return };

    let page = fs::read_to_string(root().join("docs/tutorial/in-a-cluster.md")).unwrap();
    let kubectl = Kubectl::new(&cluster, root());
    let (mut address, mut answers) = (None, 0);
    for command in commands(&page) {
        let (command, expected) = with_expectation(command);
        if let Some(command) =
            command.strip_prefix("ADDRESS=$(kubectl ").and_then(|rest| rest.strip_suffix(')'))
        {
            address = kubectl.run(command).await;
            assert_eq!(of_the_gateway(&cluster).await, (1, 1), "a Deployment and a Service");
        } else if let Some(command) = command.strip_prefix("kubectl ") {
            assert_eq!(kubectl.run(command).await, None, "what {command} says is not used");
        } else {
            assert!(command.starts_with("curl "), "{command}");
            let (address, expected) = (address.as_deref().expect("an address"), expected.expect("a status"));
            let answer = curl(command, address);
            assert_eq!(answer.lines().next(), Some(expected), "{command}\n{answer}");
            answers += 1;
        }
    }
    assert!(answers > 1);
    eventually_async("the end of all that belongs to the Gateway", async || {
        of_the_gateway(&cluster).await == (0, 0)
    })
    .await;
}

#[test]
fn commands_are_those_of_the_page() {
    let page =
        "# In a cluster\ntext\n```sh\none\ntwo   # 2\n```\n```text\nno\n```\n## Next\n```sh\nthree\n```";
    assert_eq!(commands(page), ["one", "two   # 2", "three"]);
    assert_eq!(with_expectation("two   # 2"), ("two", Some("2")));
}
