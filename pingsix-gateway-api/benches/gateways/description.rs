//! A controller and its data plane as programs.
//!
//! Another controller than ours is described by a YAML file:
//!
//! ```yaml
//! name: another
//! class: another                   # its GatewayClass, which is among the manifests
//! manifests: [definitions/, class.yaml]
//! controller:
//!   command: [/opt/another/controller, "--kubeconfig={kubeconfig}"]
//!   env: {LOG_LEVEL: warn}
//! dataPlane:                       # optional: without one, only statuses are measured
//!   command: [/opt/another/proxy, "--listen=127.0.0.1:9080"]
//!   address: 127.0.0.1:9080        # where it takes requests for the Gateway `default/bench-another`
//! ```
//!
//! In commands, `{kubeconfig}` is the file of a cluster administrator, and `{folder}` is a folder that ends with the lab.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use pingsix_test_programs::free_address;
use serde::Deserialize;

/// How a controller is installed and run.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Description {
    name: String,
    pub(crate) class: String,
    /// YAML files, and folders of them, before the controller starts.
    #[serde(default)]
    pub(crate) manifests: Vec<PathBuf>,
    pub(crate) controller: Program,
    pub(crate) data_plane: Option<DataPlane>,
    /// The addresses of our own data plane, which show how far a change has come.
    #[serde(skip)]
    pub(crate) ours: Option<Ours>,
}

/// A program with its arguments.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Program {
    pub(crate) command: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
}

/// The data plane of the measured Gateway.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DataPlane {
    #[serde(flatten)]
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
}

/// The addresses between our controller and PingSIX.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ours {
    pub(crate) feed: SocketAddr,
    pub(crate) responder: SocketAddr,
    /// PingSIX's status page.
    pub(crate) status: SocketAddr,
}

/// The name of our own class and controller.
pub(crate) const OUR_NAME: &str = "pingsix";

/// The prefix of the documents of our Gateway.
pub(crate) const PREFIX: &str = "/pingsix/default/bench-pingsix";

impl Description {
    /// Our controller with a stock PingSIX.
    pub(crate) fn ours(controller: &Path, pingsix: &Path) -> Self {
        let [feed, responder, status, health, address] = std::array::from_fn(|_| free_address());
        let command = [
            controller.display().to_string(),
            format!("--feed-address={feed}"),
            "--feed-state-file={folder}/revisions".to_owned(),
            format!("--health-address={health}"),
            format!("--responder={responder}"),
            format!("--status-url=default/bench-{OUR_NAME}=http://{status}"),
            "--kube-config={kubeconfig}".to_owned(),
            "--leader-namespace=default".to_owned(),
            "--log-filter=warn".to_owned(),
        ];
        // PingSIX would write a line for each document each time.
        let env = BTreeMap::from([("RUST_LOG".to_owned(), "warn".to_owned())]);
        let data_plane = Program {
            command: vec![pingsix.display().to_string(), "-c".to_owned(), "{folder}/pingsix.yaml".to_owned()],
            env,
        };
        Self {
            name: OUR_NAME.to_owned(),
            class: OUR_NAME.to_owned(),
            manifests: Vec::new(),
            controller: Program { command: command.into(), env: BTreeMap::new() },
            data_plane: Some(DataPlane { program: data_plane, address }),
            ours: Some(Ours { feed, responder, status }),
        }
    }

    /// Reads the description of another controller.
    pub(crate) fn read(path: &Path) -> Self {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut read: Self =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_ne!(read.name, OUR_NAME, "{}: this name is ours", path.display());
        let folder = path.parent().unwrap_or(Path::new("."));
        for manifest in &mut read.manifests {
            *manifest = folder.join(&*manifest);
        }
        read
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name of the Gateway that is measured.
    pub(crate) fn gateway(&self) -> String {
        format!("bench-{}", self.name)
    }
}

impl Program {
    /// The command with its environment and without placeholders, on one core.
    pub(crate) fn words(&self, core: usize, kubeconfig: &Path, folder: &Path) -> Vec<String> {
        let mut words = vec!["/usr/bin/env".to_owned()];
        words.extend(self.env.iter().map(|(name, value)| format!("{name}={value}")));
        words.extend(["taskset".to_owned(), "-c".to_owned(), core.to_string()]);
        let (kubeconfig, folder) = (kubeconfig.display().to_string(), folder.display().to_string());
        words.extend(
            self.command
                .iter()
                .map(|word| word.replace("{kubeconfig}", &kubeconfig).replace("{folder}", &folder)),
        );
        words
    }
}
