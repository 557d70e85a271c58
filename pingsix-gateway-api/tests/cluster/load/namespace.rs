//! A network of its own for a test.
//!
//! An API server takes no address of loopback as an endpoint. So the test runs once more in a network namespace, whose
//! loopback interface has another address as well: nothing that is sent can leave it.

use std::net::Ipv4Addr;
use std::process::Stdio;

use pingsix_test_programs::program;
use tokio::process::Command;

use crate::test_env::pingsix::{binary, print_message};

/// The address of backends, from the network range for benchmarks, which no host has.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Tells the test that it runs inside.
const INSIDE_VARIABLE: &str = "LOAD_NAMESPACE";

/// A namespace of this user's, in which he is root.
const UNSHARE: [&str; 4] = ["--user", "--map-root-user", "--net", "--"];

/// Whether the test runs inside of a namespace and continues. Otherwise it has run there, or has printed the reason
/// for not running.
pub(crate) async fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE_VARIABLE).is_some() {
        return true;
    }
    // Without the namespace nothing has to be built, and within it the network is missing.
    if binary(test).is_none() {
        return false;
    }
    if !can_enter().await {
        print_message(&format!("{test}: NOT RUN: `unshare` and `ip` cannot make a network namespace here"));
        return false;
    }
    program("pingsix-gateway-controller").await;
    let name = format!("load::{test}");
    let status = inside(r#"exec "$0" "$@""#)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(INSIDE_VARIABLE, "1")
        .status();
    assert!(status.await.unwrap().success(), "{name} has failed in its namespace");
    false
}

async fn can_enter() -> bool {
    let status = inside("true").stderr(Stdio::null()).status().await;
    status.is_ok_and(|status| status.success())
}

/// A shell command inside of a new namespace, with the arguments that are added.
fn inside(command: &str) -> Command {
    let mut unshare = Command::new("unshare");
    unshare
        .args(UNSHARE)
        .args(["sh", "-c"])
        .arg(format!("ip link set lo up && ip address add {ADDRESS}/32 dev lo && {command}"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    unshare
}
