//! A network of its own for the benchmark: nothing that is sent can leave it.

use std::net::Ipv4Addr;
use std::process::Stdio;

use tokio::process::Command;

/// The addresses of backends, from the network range for benchmarks, which no host has.
pub(crate) const ADDRESSES: [Ipv4Addr; 4] = [
    Ipv4Addr::new(198, 18, 0, 1),
    Ipv4Addr::new(198, 18, 0, 2),
    Ipv4Addr::new(198, 18, 0, 3),
    Ipv4Addr::new(198, 18, 0, 4),
];

/// Tells the process that it runs inside.
const INSIDE_VARIABLE: &str = "GATEWAYS_NAMESPACE";

/// Whether this process is in the network. Otherwise the benchmark has run there, or has said why it does not run.
pub(crate) async fn is_inside() -> bool {
    if std::env::var_os(INSIDE_VARIABLE).is_some() {
        return true;
    }
    let possible = inside("true").stderr(Stdio::null()).status().await.is_ok_and(|status| status.success());
    if !possible {
        pingsix_test_programs::skipped("`unshare` and `ip` cannot make a network namespace here");
        return false;
    }
    let status = inside(r#"exec "$0" "$@""#)
        .arg(std::env::current_exe().unwrap())
        .args(std::env::args_os().skip(1))
        .env(INSIDE_VARIABLE, "1")
        .status()
        .await;
    assert!(status.unwrap().success(), "the benchmark has failed in its namespace");
    false
}

fn inside(command: &str) -> Command {
    let addresses = ADDRESSES.map(|address| format!("ip address add {address}/32 dev lo && ")).concat();
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--user", "--map-root-user", "--net", "--", "sh", "-c"])
        .arg(format!("ip link set lo up && {addresses}{command}"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    unshare
}
