//! Programs of this workspace, as processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use tokio::process::Command;
use tokio::time::timeout;

/// The time limit of building a program with all dependencies.
const BUILD: Duration = Duration::from_mins(20);

/// A program that is as new as its sources. Cargo has built it where it runs the tests of the whole workspace; where it
/// does not, this does.
pub(crate) async fn program(name: &str) -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let program = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    if !is_fresh(&program) {
        build(name, &folder).await;
    }
    program
}

/// Whether none of the files that cargo notes beside a program, its sources, is newer.
fn is_fresh(program: &Path) -> bool {
    let modified = |path: &Path| -> Option<SystemTime> { fs::metadata(path).ok()?.modified().ok() };
    let (Some(built), Ok(noted)) = (modified(program), fs::read_to_string(program.with_extension("d")))
    else {
        return false;
    };
    let Some((_, sources)) = noted.lines().next().unwrap_or_default().split_once(": ") else { return false };
    // A space that is part of a name has a backslash before it.
    let sources = sources.replace("\\ ", "\0");
    sources.split(' ').all(|source| {
        let source = source.replace('\0', " ");
        modified(Path::new(&source)).is_some_and(|modified| modified <= built)
    })
}

/// Builds a program into the folder of a profile.
async fn build(name: &str, folder: &Path) {
    let profile = folder.file_name().unwrap().to_str().unwrap();
    let profile = if profile == "debug" { "dev" } else { profile };
    eprintln!("building {name}, which `cargo test --workspace` would have done");
    let build = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", name, "--bin", name, "--profile", profile, "--target-dir"])
        .arg(folder.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output =
        timeout(BUILD, build).await.unwrap_or_else(|_| panic!("no {name} within {BUILD:?}")).unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}
