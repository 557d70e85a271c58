//! A cluster with the controllers of one test, their data planes, and backends.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use kube::Client;
use pingsix_test_cluster::{Process, TestCluster};

use crate::backend::{self, Backends};
use crate::contender::Contender;
use crate::description::Description;
use crate::objects;

/// The core of controllers and data planes.
pub(crate) const CORE: usize = 0;

/// Everything that one round of a test needs. Ends with this value.
pub(crate) struct Lab {
    contenders: Vec<Contender>,
    pub(crate) backends: Backends,
    pub(crate) cluster: TestCluster,
}

/// The distribution of processes to cores, for the head of a report.
pub(crate) fn cores() -> String {
    format!(
        "Controllers and data planes on core {CORE}; API server, etcd, backends and clients on {}.",
        others()
    )
}

/// The cores of the other processes, as `taskset` has them. A machine with one core has no others.
fn others() -> String {
    let count = available_parallelism().map_or(1, usize::from);
    if count == 1 { "the same".to_owned() } else { format!("{}-{}", CORE + 1, count - 1) }
}

impl Lab {
    /// Starts everything; `None`, with a message, without a built cluster.
    pub(crate) async fn start(descriptions: &[&Description]) -> Option<Self> {
        let cluster = TestCluster::builder().start_or_skip().await?;
        for process in [cluster.api_server(), cluster.etcd()] {
            move_to_others(process).await;
        }
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds");
        for file in yaml_files(&crds) {
            // The kustomization is no object.
            if !file.ends_with("kustomization.yaml") {
                cluster.apply(&fs::read_to_string(&file).unwrap()).await.unwrap();
            }
        }
        for description in descriptions {
            for file in description.manifests.iter().flat_map(|path| yaml_files(path)) {
                let applied = cluster.apply(&fs::read_to_string(&file).unwrap()).await;
                applied.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            }
        }
        cluster.apply(objects::OUR_CLASS).await.unwrap();
        let backends = Backends::start().await;
        let client = cluster.admin();
        for service in 0..objects::SERVICES {
            for object in objects::service(
                "default",
                &objects::service_name(service),
                &backend::endpoints(&[service % 4]),
            ) {
                objects::create(&client, object).await;
            }
        }
        let mut contenders = Vec::new();
        for (index, description) in descriptions.iter().enumerate() {
            objects::create(&client, objects::gateway(&description.gateway(), &description.class)).await;
            contenders.push(Contender::start(&cluster, description, index).await);
        }
        Some(Self { contenders, backends, cluster })
    }

    pub(crate) fn contenders(&self) -> &[Contender] {
        &self.contenders
    }

    /// The only controller.
    pub(crate) fn contender(&self) -> &Contender {
        &self.contenders[0]
    }

    pub(crate) fn client(&self) -> Client {
        self.cluster.admin()
    }

    /// The names of the Gateways, the parents of each route.
    pub(crate) fn gateways(&self) -> Vec<String> {
        self.contenders.iter().map(Contender::gateway).collect()
    }
}

/// Leaves the first core to controllers and data planes.
async fn move_to_others(process: &Process) {
    if others() == "the same" {
        return;
    }
    let pid = process.pid().await.unwrap().to_string();
    let output = pingsix_test_programs::run(Path::new("taskset"), ["-acp", &others(), &pid]).await;
    assert!(output.ok, "taskset: {}", output.err);
}

/// A file, or the YAML files of a folder and its folders, in the order of their names.
fn yaml_files(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let is_yaml = |path: &PathBuf| path.is_dir() || path.extension().is_some_and(|end| end == "yaml");
    paths.into_iter().filter(is_yaml).flat_map(|path| yaml_files(&path)).collect()
}
