//! The pages about a cluster, command by command, in a cluster with a node: the controller is the Deployment of the
//! manifests, as are all servers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::ListParams;
use pingsix_test_cluster::{CONTROLLERS, Channel, Node, TestCluster, in_own_network, tool_or_skip};
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

/// The images of our programs.
#[derive(Clone, Copy)]
enum Images<'a> {
    /// The programs of this workspace, among the folders of the machine.
    Programs,
    /// The OCI archives of a folder, with nothing beside them.
    Archives(&'a Path),
}

/// A node with images of our programs, and with PingSIX if there is one.
async fn node(images: Images<'_>, data_plane: Option<PathBuf>) -> Node {
    let mut node = Node::new();
    for name in ["pingsix-gateway-controller", "pingsix-gateway-sidecar"] {
        let image = match images {
            Images::Programs => program(name).await,
            Images::Archives(folder) => archive(folder, name).unwrap_or_else(|| panic!("no image of {name}")),
        };
        node = node.image(&format!("{name}:"), image);
    }
    match data_plane {
        Some(data_plane) => node.image("pingsix:", data_plane),
        None => node,
    }
}

/// The archive of an image, of whatever version.
fn archive(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|file| {
        let version = file.file_name().and_then(|file| file.to_str()?.strip_prefix(name)?.strip_prefix('-'));
        version.is_some_and(|version| version.starts_with(|character: char| character.is_ascii_digit()))
            && file.extension().is_some_and(|extension| extension == "tar")
    })
}

/// A cluster in a network of the test's own; `None` if something is missing.
async fn cluster_with(test: &str, node: Node) -> Option<TestCluster> {
    if !has_curl() {
        pingsix::print_message(&format!("{test}: NOT RUN: there is no curl"));
        return None;
    }
    if !in_own_network(test).await {
        return None;
    }
    TestCluster::builder().crds(None).controllers(CONTROLLERS).node(node).start_or_skip().await
}

/// A cluster with the programs of this workspace as images; `None` if something is missing.
async fn cluster(test: &str) -> Option<TestCluster> {
    let data_plane = PathBuf::from(pingsix::binary(test)?);
    // Before the test has a network of its own, from which no package could be fetched.
    let node = node(Images::Programs, Some(data_plane)).await;
    cluster_with(test, node).await
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
        let kubectl = tool_or_skip("kubectl").expect("it is built with the cluster");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = kubectl.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
        let variables = [
            ("PATH", std::env::join_paths(folders).unwrap()),
            ("KUBECONFIG", cluster.kubeconfig(cluster.administrator()).unwrap().into()),
            ("HOME", cluster.folder().into()),
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
            assert!(
                command.starts_with("kubectl ") || command.starts_with("helm "),
                "the output of {command}"
            );
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
    follow_the_tutorial(&cluster).await;
}

/// The controller and the sidecar have no files but those of their images. The sidecar finds the feed by its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_quick_start_runs_from_the_images() {
    const TEST: &str = "quickstart::the_quick_start_runs_from_the_images";
    let Some(folder) = std::env::var_os("PINGSIX_IMAGES").map(PathBuf::from) else {
        pingsix::print_message(&format!("{TEST}: NOT RUN: PINGSIX_IMAGES names no folder with images"));
        return;
    };
    let data_plane = archive(&folder, "pingsix").or_else(|| pingsix::binary(TEST).map(PathBuf::from));
    let with_data_plane = data_plane.is_some();
    let node = node(Images::Archives(&folder), data_plane).await;
    let Some(cluster) = cluster_with(TEST, node).await else { return };
    if with_data_plane {
        follow_the_tutorial(&cluster).await;
    } else {
        let mut reader = Reader::new(&cluster);
        let tutorial = page("tutorial/in-a-cluster.md");
        for command in commands(&tutorial).into_iter().take_while(|command| !command.contains("Programmed")) {
            reader.run(command).await;
        }
    }
    let pods = Api::<Pod>::namespaced(cluster.admin(), "pingsix-system");
    let statuses =
        pods.list(&ListParams::default()).await.unwrap().items.into_iter().filter_map(|pod| pod.status);
    let images: Vec<String> = statuses
        .flat_map(|status| status.container_statuses)
        .flatten()
        .map(|status| status.image_id)
        .collect();
    assert!(images.len() > 1 && images.iter().all(|image| image.starts_with("sha256:")), "{images:?}");
}

async fn follow_the_tutorial(cluster: &TestCluster) {
    let mut reader = Reader::new(cluster);
    for command in commands(&page("tutorial/in-a-cluster.md")) {
        reader.run(command).await;
        if command.starts_with("ADDRESS=") {
            assert_eq!(of_the_gateway(cluster).await, (1, 1), "a Deployment and a Service");
        }
    }
    assert!(reader.outputs > 1);
    eventually_async("the end of all that belongs to the Gateway", async || {
        of_the_gateway(cluster).await == (0, 0)
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chart_installs_upgrades_and_uninstalls_as_the_page_says() {
    const TEST: &str = "quickstart::the_chart_installs_upgrades_and_uninstalls_as_the_page_says";
    let Some(cluster) = cluster(TEST).await else { return };
    let mut reader = Reader::new(&cluster);
    for command in commands(&page("how-to/install-with-helm.md")) {
        reader.run(command).await;
    }
    assert_eq!(reader.outputs, 4);
}

#[test]
fn an_archive_has_the_name_of_its_image_and_a_version() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["pingsix-gateway-sidecar-0.1.0-amd64.tar", "pingsix-0.1.0-amd64.txt", "index.json"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    assert!(archive(folder.path(), "pingsix-gateway-sidecar").is_some());
    assert_eq!(archive(folder.path(), "pingsix"), None);
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
