//! The pages about a cluster, command by command, in a cluster with a node: the controller is the Deployment of the
//! manifests, as are all servers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::ListParams;
use pingsix_test_cluster::{CONTROLLERS, Channel, Node, TestCluster, in_own_network, kubectl_or_skip};
use pingsix_test_programs::{commands, program};

use crate::test_env::{eventually_async, pingsix};

/// The time limit of a command.
const COMMAND: Duration = Duration::from_mins(3);

/// The address of the definitions of Gateway API, with a version between the two parts.
const DEFINITIONS: (&str, &str) =
    ("https://github.com/kubernetes-sigs/gateway-api/releases/download/", "/standard-install.yaml");

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

/// A reader who types the commands of pages into a shell.
struct Reader {
    /// The environment of the shell, with the variables of the pages.
    variables: BTreeMap<String, OsString>,
    /// The folder with the definitions of Gateway API, which no test downloads.
    definitions: PathBuf,
    /// The number of outputs that were as expected.
    outputs: usize,
}

impl Reader {
    fn new(cluster: &TestCluster) -> Self {
        let kubectl = kubectl_or_skip().expect("it is built with the cluster");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = kubectl.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
        let variables = [
            ("PATH", std::env::join_paths(folders).unwrap()),
            ("KUBECONFIG", cluster.kubeconfig(cluster.administrator()).unwrap().into()),
            ("KUBECACHEDIR", cluster.folder().join("kubectl").into()),
            // A proxy of the machine is none for this network.
            ("NO_PROXY", "*".into()),
        ];
        Self {
            variables: variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            definitions: cluster.definitions(Channel::Standard),
            outputs: 0,
        }
    }

    /// Types a command. One with an expected output is typed until that comes, as after a change that PingSIX is about to
    /// take over; any other one succeeds.
    async fn run(&mut self, command: &str) {
        let (command, expected) = with_expectation(command);
        if let Some((name, value)) = assignment(command) {
            let value = self.succeed(&format!("echo \"{value}\"")).await;
            self.variables.insert(name.to_owned(), value.trim_end().into());
        } else if let Some(expected) = expected {
            eventually_async(&format!("{expected} of {command}"), async || {
                let (_, output) = self.shell(command).await;
                output.lines().next() == Some(expected) || output.lines().last() == Some(expected)
            })
            .await;
            self.outputs += 1;
        } else {
            assert!(command.starts_with("kubectl "), "the output of {command}");
            let output = self.succeed(&self.with_definitions(command)).await;
            self.outputs += usize::from(command.starts_with("kubectl get ") && !output.is_empty());
        }
    }

    /// The output of a command that succeeds.
    async fn succeed(&self, command: &str) -> String {
        let (is_success, output) = self.shell(command).await;
        assert!(is_success, "{command}\n{output}");
        output
    }

    /// Whether a command succeeds, and its output.
    async fn shell(&self, command: &str) -> (bool, String) {
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", command]).envs(&self.variables).current_dir(root()).kill_on_drop(true);
        let output = tokio::time::timeout(COMMAND, shell.output()).await;
        let output = output.unwrap_or_else(|_| panic!("no end within {COMMAND:?}: {command}")).unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// A command with the folder of definitions in place of their address, which has the version of that folder.
    fn with_definitions(&self, command: &str) -> String {
        let Some((before, version)) = command.split_once(DEFINITIONS.0) else { return command.to_owned() };
        let version =
            version.strip_suffix(DEFINITIONS.1).unwrap_or_else(|| panic!("no definitions: {command}"));
        let module = fs::read_to_string(root().join("testdata/cluster/go.mod")).unwrap();
        assert!(
            module.contains(&format!("sigs.k8s.io/gateway-api {version}\n")),
            "another version: {command}"
        );
        format!("{before}{}", self.definitions.display())
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
