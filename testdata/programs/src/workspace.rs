//! Programs of this workspace, as processes.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use tokio::process::Command;
use tokio::time::timeout;

/// The time limit of building a program with all dependencies.
const BUILD_TIMEOUT: Duration = Duration::from_mins(20);

/// The program of the package of its name, as [`program_of`].
///
/// # Panics
///
/// If it cannot be built.
pub async fn program(name: &str) -> PathBuf {
    program_of(name, name).await
}

/// A program of a package that is as new as its sources. Cargo has built it where it runs the tests of the whole workspace; where it
/// does not, this does.
///
/// # Panics
///
/// If it cannot be built.
pub async fn program_of(package: &str, name: &str) -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let program = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    if !is_fresh(package, &program) {
        build(package, name, &folder).await;
    }
    program
}

/// Whether a program is newer than the sources of its package and of the libraries. Cargo's file of dependencies is no
/// help, because `cargo test` does not write it.
fn is_fresh(package: &str, program: &Path) -> bool {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Some(built) = modified(program) else { return false };
    let crates =
        ["pingsix-translate", "pingsix-sink", "pingsix-gateway-api"].map(|name| workspace.join(name));
    let crates = crates.into_iter().chain([workspace.join("bin").join(package)]);
    crates.map(|root| newest(&root.join("src"))).all(|source| source <= Some(built))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// The modification time of the newest file below a path.
fn newest(path: &Path) -> Option<SystemTime> {
    let Ok(entries) = fs::read_dir(path) else { return modified(path) };
    entries.map(|entry| newest(&entry.unwrap().path())).max().flatten()
}

/// Builds a program into the folder of a profile.
async fn build(package: &str, name: &str, folder: &Path) {
    let profile = folder.file_name().unwrap().to_str().unwrap();
    let profile = if profile == "debug" { "dev" } else { profile };
    let _ = writeln!(io::stderr(), "building {name}, which `cargo test --workspace` would have done");
    let build = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", package, "--bin", name, "--profile", profile, "--target-dir"])
        .arg(folder.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(BUILD_TIMEOUT, build)
        .await
        .unwrap_or_else(|_| panic!("no {name} within {BUILD_TIMEOUT:?}"))
        .unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}
