//! Programs of other people that tests run when they are installed.

use std::ffi::OsStr;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs};

use tokio::process::Command;
use tokio::time::timeout;

/// With `required` in this variable, a test whose program is not there fails.
const DEMAND: &str = "PINGSIX_PROGRAMS";

/// Longer than a program takes that does one thing.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The program of this name on the PATH. When there is none, prints that the test did not run.
///
/// # Panics
///
/// If there is none and `PINGSIX_PROGRAMS=required`.
pub fn find(name: &str) -> Option<PathBuf> {
    let found = find_in(&env::var_os("PATH").unwrap_or_default(), name);
    if found.is_none() {
        let is_demanded = env::var_os(DEMAND).is_some_and(|demand| demand == "required");
        assert!(!is_demanded, "{name} is not on the PATH, and {DEMAND} says that it is required");
        skipped(&format!("{name} is not on the PATH"));
    }
    found
}

fn find_in(path: &OsStr, name: &str) -> Option<PathBuf> {
    env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The program that `PINGSIX_BIN` names. When it names none, prints that the test did not run.
pub fn pingsix() -> Option<PathBuf> {
    let named = env::var_os("PINGSIX_BIN").filter(|name| !name.is_empty());
    if named.is_none() {
        skipped("PINGSIX_BIN does not name a PingSIX binary");
    }
    named.map(PathBuf::from)
}

/// Writes the configuration of a PingSIX with one thread and one listener into a folder, and returns the file.
///
/// # Panics
///
/// If the file cannot be written.
pub fn pingsix_config(
    folder: &Path,
    listener: SocketAddr,
    (etcd, prefix): (&str, &str),
    status: SocketAddr,
) -> PathBuf {
    let (file, place) = (folder.join("pingsix.yaml"), folder.display());
    let config = format!(
        "
pingora: {{threads: 1, pid_file: {place}/pingsix.pid, upgrade_sock: {place}/pingsix.sock}}
pingsix:
  listeners: [{{address: '{listener}'}}]
  etcd: {{host: ['{etcd}'], prefix: {prefix}}}
  status: {{address: '{status}'}}
"
    );
    fs::write(&file, config).unwrap();
    file
}

/// Says why a test, or a part of it, did not run; written past the capture of the test harness, so that it is seen.
pub fn skipped(why: &str) {
    let current = std::thread::current();
    let test = current.name().unwrap_or("a test");
    // In one piece, because other tests speak at the same time.
    let _ = std::io::stderr().write_all(format!("\n{test}: NOT RUN: {why}\n").as_bytes());
}

/// The output of a program that ended.
#[derive(Debug)]
pub struct Output {
    /// Whether it ended well.
    pub ok: bool,
    /// The standard output.
    pub out: String,
    /// The standard error.
    pub err: String,
}

/// Runs a program to its end, which must come soon. If it is etcdctl, it speaks version 3 of the protocol.
///
/// # Panics
///
/// If it cannot be started, or runs for more than 20 seconds.
pub async fn run<A: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("ETCDCTL_API", "3").stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(WAIT_TIMEOUT, command.output()).await.expect("it ends").unwrap();
    Output {
        ok: output.status.success(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_the_first_file_of_its_name_on_the_path_and_is_heard() {
        let [none, folder, file] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        std::fs::create_dir(folder.path().join("program")).unwrap();
        std::fs::write(file.path().join("program"), "echo said; echo $1 >&2; exit 3").unwrap();
        let path = env::join_paths([none.path(), folder.path(), file.path()]).unwrap();
        let found = find_in(&path, "program").unwrap();
        assert_eq!(found, file.path().join("program"));
        assert_eq!(find_in(&path, "other"), None);

        let output = run(Path::new("/bin/sh"), [found.as_os_str(), "failed".as_ref()]).await;
        assert_eq!((output.ok, output.out.as_str(), output.err.as_str()), (false, "said\n", "failed\n"));
    }
}
