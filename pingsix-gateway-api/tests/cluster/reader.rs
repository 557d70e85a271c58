//! A reader of pages, who types their commands into a shell, in a cluster with a node: the controller is the Deployment of
//! the manifests, as are all servers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pingsix_test_cluster::{CONTROLLERS, Channel, Node, TestCluster, in_own_network, tool_or_skip};
use pingsix_test_programs::program;

use crate::test_env::{eventually_async, pingsix};

/// The time limit of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(3);

/// The address of the definitions of Gateway API, with a version between the two parts.
const DEFINITIONS: (&str, &str) =
    ("https://github.com/kubernetes-sigs/gateway-api/releases/download/", "/standard-install.yaml");

pub(crate) fn root() -> PathBuf {
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

/// The images of our programs.
#[derive(Clone, Copy)]
pub(crate) enum Images<'a> {
    /// The programs of this workspace, among the folders of the machine.
    Programs,
    /// The OCI archives of a folder, with nothing beside them.
    Archives(&'a Path),
}

/// A node with images of our programs, and with PingSIX if there is one.
pub(crate) async fn node(images: Images<'_>, data_plane: Option<PathBuf>) -> Node {
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
pub(crate) fn archive(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|file| {
        let version = file.file_name().and_then(|file| file.to_str()?.strip_prefix(name)?.strip_prefix('-'));
        version.is_some_and(|version| version.starts_with(|character: char| character.is_ascii_digit()))
            && file.extension().is_some_and(|extension| extension == "tar")
    })
}

/// A cluster with the programs of this workspace as images; `None` if something is missing.
pub(crate) async fn cluster(test: &str) -> Option<TestCluster> {
    let data_plane = PathBuf::from(pingsix::binary(test)?);
    cluster_with(test, node(Images::Programs, Some(data_plane)).await).await
}

/// A cluster with a node. The programs of its images are built before, because the test gets a network of its own, from
/// which no package could be fetched.
pub(crate) async fn cluster_with(test: &str, node: Node) -> Option<TestCluster> {
    if !has_curl() {
        pingsix::print_message(&format!("{test}: NOT RUN: there is no curl"));
        return None;
    }
    let backend = tool_or_skip("go-httpbin")?;
    if !in_own_network(test).await {
        return None;
    }
    let node = node.image("mccutchen/go-httpbin:", backend);
    TestCluster::builder().crds(None).controllers(CONTROLLERS).node(node).start_or_skip().await
}

/// A reader who types the commands of pages into a shell.
pub(crate) struct Reader {
    /// The environment of the shell, with the variables of the pages.
    pub(crate) variables: BTreeMap<String, OsString>,
    /// The folder with the definitions of Gateway API, which no test downloads.
    definitions: PathBuf,
    /// The number of outputs that were as expected.
    pub(crate) outputs: usize,
}

impl Reader {
    pub(crate) fn new(cluster: &TestCluster) -> Self {
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

    /// The reader has these definitions of Gateway API instead of those that the pages name.
    pub(crate) fn with_definitions_of(mut self, cluster: &TestCluster, channel: Channel) -> Self {
        self.definitions = cluster.definitions(channel);
        self
    }

    /// The reader has installed this plugin of kubectl.
    pub(crate) fn with_plugin(mut self, plugin: &Path, folder: &Path) -> Self {
        let plugins = folder.join("plugins");
        fs::create_dir_all(&plugins).unwrap();
        std::os::unix::fs::symlink(plugin, plugins.join("kubectl-pingsix")).unwrap();
        let path = std::env::split_paths(&self.variables["PATH"]).collect::<Vec<_>>();
        let path = std::env::join_paths([plugins].into_iter().chain(path)).unwrap();
        self.variables.insert("PATH".to_owned(), path);
        self
    }

    /// The output of a command that only looks. The plugin may end with 1, for a problem or another answer than 200.
    pub(crate) async fn look(&self, command: &str) -> String {
        let command = if command.starts_with("kubectl pingsix ") {
            format!("{command}; test $? -le 1")
        } else {
            command.to_owned()
        };
        self.succeed(&command).await
    }

    /// Types a command. One with an expected output is typed until that comes, as after a change that PingSIX is about to
    /// take over; any other one succeeds.
    pub(crate) async fn run(&mut self, command: &str) {
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

    /// Types a command that may fail.
    pub(crate) async fn attempt(&self, command: &str) {
        self.shell(command).await;
    }

    /// The output of a command that succeeds.
    pub(crate) async fn succeed(&self, command: &str) -> String {
        let (is_success, output) = self.shell(command).await;
        assert!(is_success, "{command}\n{output}");
        output
    }

    /// Whether a command succeeds, and its output.
    async fn shell(&self, command: &str) -> (bool, String) {
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", command]).envs(&self.variables).current_dir(root()).kill_on_drop(true);
        let output = tokio::time::timeout(COMMAND_TIMEOUT, shell.output()).await;
        let output =
            output.unwrap_or_else(|_| panic!("no end within {COMMAND_TIMEOUT:?}: {command}")).unwrap();
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

pub(crate) fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

#[test]
fn a_command_may_have_an_expectation() {
    assert_eq!(with_expectation("two   # 2"), ("two", Some("2")));
    assert_eq!(assignment("NAME=value"), Some(("NAME", "value")));
    assert_eq!(assignment("curl -o x=y"), None);
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
