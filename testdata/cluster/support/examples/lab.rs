//! A test cluster with a node, for a command.
//!
//! ```text
//! lab [--image NAME=PROGRAM]... [--apply FILE|FOLDER]... [--logs FOLDER] -- COMMAND [ARGUMENT...]
//! ```
//!
//! Starts a cluster whose node runs Pods of these images, applies manifests in the order in which they are given (a
//! folder by its kustomization), and runs the command with `KUBECONFIG` set. Ends with the command's exit code, and
//! nothing is left then but the logs. It has to run in a network of its own, such as `tools/conformance` makes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::{fs, io};

use pingsix_test_cluster::{CONTROLLERS, Node, TestCluster};
use serde_json::Value;
use tokio::process::Command;

type Failure = Box<dyn std::error::Error>;

const USAGE: &str =
    "lab [--image NAME=PROGRAM]... [--apply FILE|FOLDER]... [--logs FOLDER] -- COMMAND [ARGUMENT...]";

#[derive(Default)]
struct Arguments {
    node: Node,
    manifests: Vec<PathBuf>,
    logs: Option<PathBuf>,
    command: Vec<OsString>,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut arguments = Self::default();
        while let Some(argument) = given.next() {
            match argument.to_str()? {
                "--image" => {
                    let image = given.next()?;
                    let (name, program) = image.to_str()?.split_once('=')?;
                    // The node has another working directory.
                    arguments.node = arguments.node.image(name, std::path::absolute(program).ok()?);
                }
                "--apply" => arguments.manifests.push(given.next()?.into()),
                "--logs" => arguments.logs = Some(given.next()?.into()),
                "--" => arguments.command = given.by_ref().collect(),
                _ => return None,
            }
        }
        (!arguments.command.is_empty()).then_some(arguments)
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let Some(arguments) = Arguments::parse(std::env::args_os().skip(1)) else { return Err(USAGE.into()) };
    let cluster = TestCluster::builder().controllers(CONTROLLERS).node(arguments.node).start().await?;
    let outcome = run(&cluster, &arguments.manifests, &arguments.command).await;
    if let Some(logs) = &arguments.logs {
        keep(cluster.folder(), logs)?;
    }
    outcome
}

async fn run(
    cluster: &TestCluster,
    manifests: &[PathBuf],
    command: &[OsString],
) -> Result<ExitCode, Failure> {
    for path in manifests {
        apply(cluster, path).await?;
    }
    let kubeconfig = cluster.kubeconfig(cluster.administrator())?;
    let Some((program, arguments)) = command.split_first() else { return Err(USAGE.into()) };
    let mut command = Command::new(program);
    command.args(arguments).env("KUBECONFIG", kubeconfig).stdin(Stdio::null()).kill_on_drop(true);
    let status = command.status().await?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Applies the objects of a file, or of a folder by its kustomization. Deployments come last, as kubectl sorts them: their
/// Pods read ConfigMaps at their start.
async fn apply(cluster: &TestCluster, path: &Path) -> Result<(), Failure> {
    let mut objects = objects(path)?;
    objects.sort_by_key(|object| object["kind"] == "Deployment");
    for object in objects {
        cluster.apply(&object.to_string()).await?;
    }
    Ok(())
}

fn objects(path: &Path) -> Result<Vec<Value>, Failure> {
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    if !path.is_dir() {
        return Ok(serde_saphyr::from_multiple(&read(path)?)?);
    }
    let kustomization: Value = serde_saphyr::from_str(&read(&path.join("kustomization.yaml"))?)?;
    let mut all = Vec::new();
    for resource in kustomization["resources"].as_array().into_iter().flatten() {
        let Some(resource) = resource.as_str() else { return Err("a resource that is no path".into()) };
        all.extend(objects(&path.join(resource))?);
    }
    Ok(all)
}

/// Copies the logs of the cluster's processes and of all containers.
fn keep(cluster: &Path, into: &Path) -> io::Result<()> {
    fs::create_dir_all(into)?;
    for entry in fs::read_dir(cluster)? {
        let path = entry?.path();
        if let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|end| end == "log")) {
            fs::copy(&path, into.join(name))?;
        }
    }
    copy(&cluster.join("node/logs"), &into.join("containers"))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
