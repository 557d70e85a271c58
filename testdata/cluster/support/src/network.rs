//! A network of its own for a test.
//!
//! A node makes links and takes addresses, which is nothing for the network that the machine is in. So a test runs once
//! more, in a network namespace, and in a user namespace where it is root and may do that. No root is needed outside.

use std::io::Write as _;
use std::process::Stdio;

use tokio::process::Command;

use crate::turn::Turn;

/// Says to the test that it is inside.
const INSIDE: &str = "PINGSIX_CLUSTER_NETWORK";

const UNSHARE: [&str; 4] = ["--user", "--map-root-user", "--net", "--"];

/// Whether the test is in a network of its own and goes on. Otherwise it has run there, or has said why it does not run.
///
/// The name is that by which the test harness knows the test, with its modules: `node::a_deployment_becomes_ready`.
///
/// # Panics
///
/// If the test fails in its network.
#[allow(clippy::panic, reason = "a test that fails inside has failed")]
pub async fn in_own_network(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    // The clusters of the other process count as those of this one.
    let _turn = Turn::take().await;
    if let Err(why) = can_enter().await {
        let _ = std::io::stderr().write_all(format!("\n{test}: NOT RUN: {why}\n").as_bytes());
        return false;
    }
    let status = match std::env::current_exe() {
        Ok(program) => {
            let mut again = inside(r#"exec "$0" "$@""#);
            again.arg(program).args(["--exact", test, "--nocapture", "--include-ignored"]).env(INSIDE, "1");
            again.status().await
        }
        Err(error) => Err(error),
    };
    match status {
        Ok(status) if status.success() => false,
        Ok(status) => panic!("{test} has failed in its network: {status}"),
        Err(error) => panic!("{test} could not be run in its network: {error}"),
    }
}

async fn can_enter() -> Result<(), String> {
    let tried = inside("true").output().await;
    let output = tried.map_err(|error| format!("`unshare` makes no network here: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`unshare` and `ip` make no network here: {}", said.trim_end()))
}

/// A shell command inside of a new namespace, with the arguments that are added.
fn inside(command: &str) -> Command {
    let mut unshare = Command::new("unshare");
    unshare
        .args(UNSHARE)
        .args(["sh", "-c"])
        .arg(format!("ip link set lo up && {command}"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    unshare
}
