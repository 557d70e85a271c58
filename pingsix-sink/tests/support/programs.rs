//! Programs of other people that tests run when they are installed.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// With `required` in this variable, a test whose program is not there fails.
const DEMAND: &str = "PINGSIX_PROGRAMS";

/// The program of this name on the PATH; when there is none, prints that the test did not run, or fails if it should have.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
    if found.is_none() {
        let is_demanded = std::env::var_os(DEMAND).is_some_and(|demand| demand == "required");
        assert!(!is_demanded, "{name} is not on the PATH, and {DEMAND} says that it is required");
        skipped(&format!("{name} is not on the PATH"));
    }
    found
}

/// Says why a test, or a part of it, did not run; written past the capture of the test harness, so that it is seen.
pub(crate) fn skipped(why: &str) {
    let current = std::thread::current();
    let test = current.name().unwrap_or("a test");
    std::io::stderr().write_all(format!("{test}: NOT RUN: {why}\n").as_bytes()).unwrap();
}

/// What a program that ended said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a program to its end, which must come soon.
pub(crate) async fn run<A: AsRef<OsStr>>(program: &PathBuf, arguments: impl IntoIterator<Item = A>) -> Said {
    let mut command = Command::new(program);
    command.args(arguments).env("ETCDCTL_API", "3").stdin(Stdio::null()).kill_on_drop(true);
    let output =
        tokio::time::timeout(Duration::from_secs(20), command.output()).await.expect("it ends").unwrap();
    Said {
        ok: output.status.success(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
