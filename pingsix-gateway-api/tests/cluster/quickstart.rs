//! The pages about a cluster, command by command, in a cluster with a node: the controller is the Deployment of the
//! manifests, as are all servers.
//!
//! [`Kubectl`] implements the commands of the pages in place of `kubectl`, and refuses every other one.

mod kubectl;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::ListParams;
use pingsix_test_cluster::{CONTROLLERS, Node, TestCluster, in_own_network};
use pingsix_test_programs::{commands, program};

use self::kubectl::Kubectl;
use crate::test_env::{eventually_async, pingsix};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A command, and the expected output in its comment.
fn with_expectation(command: &str) -> (&str, Option<&str>) {
    match command.split_once("   # ") {
        Some((command, expected)) => (command, Some(expected)),
        None => (command, None),
    }
}

/// The value of a variable that a page sets, and its name.
fn assignment(command: &str) -> Option<(&str, &str)> {
    let (name, value) = command.split_once('=')?;
    name.chars().all(|character| character.is_ascii_uppercase()).then_some((name, value))
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

/// A cluster with the programs of the pages as images; `None` if something is missing.
async fn cluster(test: &str) -> Option<TestCluster> {
    let data_plane = pingsix::binary(test)?;
    if !has_curl() {
        pingsix::print_message(&format!("{test}: NOT RUN: there is no curl"));
        return None;
    }
    // Before the test has a network of its own, from which no package could be fetched.
    let controller = program("pingsix-gateway-controller").await;
    let sidecar = program("pingsix-gateway-sidecar").await;
    if !in_own_network(test).await {
        return None;
    }
    let node = Node::new()
        .image("pingsix:", data_plane)
        .image("pingsix-gateway-controller:", controller)
        .image("pingsix-gateway-sidecar:", sidecar);
    TestCluster::builder().crds(None).controllers(CONTROLLERS).node(node).start_or_skip().await
}

/// A reader who types the commands of pages.
struct Reader<'a> {
    kubectl: Kubectl<'a>,
    /// The variables of the shell.
    variables: BTreeMap<String, String>,
    /// The number of outputs that were as expected.
    outputs: usize,
}

impl<'a> Reader<'a> {
    fn new(cluster: &'a TestCluster) -> Self {
        // A proxy of the machine is none for this network.
        let variables = [("NO_PROXY".to_owned(), "*".to_owned())].into();
        Self { kubectl: Kubectl::new(cluster, root()), variables, outputs: 0 }
    }

    /// Types a command until its output is as expected, as after a change that PingSIX is about to take over.
    async fn run(&mut self, command: &str) {
        let (command, expected) = with_expectation(command);
        if let Some((name, value)) = assignment(command) {
            let value = match value.strip_prefix("$(kubectl ").and_then(|rest| rest.strip_suffix(')')) {
                Some(command) => self.kubectl(command).await.expect("an output"),
                None => value.to_owned(),
            };
            self.variables.insert(name.to_owned(), value);
        } else if let Some(command) = command.strip_prefix("kubectl ") {
            assert_eq!(expected, None, "{command}");
            let (command, wanted) = command.split_once(" | grep ").unwrap_or((command, ""));
            if let Some(output) = self.kubectl(command).await {
                assert!(output.contains(wanted), "{command}\n{output}");
                self.outputs += 1;
            }
        } else {
            let expected = expected.unwrap_or_else(|| panic!("the output of {command}"));
            eventually_async(&format!("{expected} of {command}"), async || {
                let output = self.shell(command);
                output.lines().next() == Some(expected) || output.lines().last() == Some(expected)
            })
            .await;
            self.outputs += 1;
        }
    }

    /// Runs a command of `kubectl`, with the values of variables.
    async fn kubectl(&self, command: &str) -> Option<String> {
        let mut command = command.to_owned();
        for (name, value) in &self.variables {
            command = command.replace(&format!("${name}"), value);
        }
        self.kubectl.run(&command).await
    }

    /// The output of a command of the shell.
    fn shell(&self, command: &str) -> String {
        let output = Command::new("sh").args(["-c", command]).envs(&self.variables).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_quick_start_does_what_it_says() {
    const TEST: &str = "quickstart::the_quick_start_does_what_it_says";
    let Some(cluster) = cluster(TEST).await else { return };
    let mut reader = Reader::new(&cluster);
    for command in commands(&page("tutorial/in-a-cluster.md")) {
        reader.run(command).await;
        if command.starts_with("ADDRESS=") {
            assert_eq!(of_the_gateway(&cluster).await, (1, 1), "a Deployment and a Service");
        }
    }
    assert!(reader.outputs > 1);
    eventually_async("the end of all that belongs to the Gateway", async || {
        of_the_gateway(&cluster).await == (0, 0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_is_protected_as_the_page_says() {
    const TEST: &str = "quickstart::a_route_is_protected_as_the_page_says";
    let Some(cluster) = cluster(TEST).await else { return };
    let mut reader = Reader::new(&cluster);
    let tutorial = page("tutorial/in-a-cluster.md");
    let (before, _) = tutorial.split_once("## Clean up").unwrap();
    for command in commands(before) {
        reader.run(command).await;
    }
    let page = page("how-to/protect-a-route.md");
    let (_, in_a_cluster) = page.split_once("## In a cluster").unwrap();
    for command in commands(in_a_cluster) {
        reader.run(command).await;
    }
    assert!(reader.outputs > 8);
}

#[test]
fn commands_are_those_of_the_page() {
    let page =
        "# In a cluster\ntext\n```sh\none\ntwo   # 2\n```\n```text\nno\n```\n## Next\n```sh\nthree\n```";
    assert_eq!(commands(page), ["one", "two   # 2", "three"]);
    assert_eq!(with_expectation("two   # 2"), ("two", Some("2")));
    assert_eq!(assignment("NAME=value"), Some(("NAME", "value")));
    assert_eq!(assignment("curl -o x=y"), None);
}
