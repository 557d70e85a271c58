//! Memory of idle connections.

use std::collections::BTreeMap;

use rustix::process::{Resource, getrlimit};

use super::backend;
use crate::load::{PLAIN, TLS};
use crate::process::Load;
use crate::proxies::{Proxy, Service};
use crate::report::{Figure, number, rows};

/// The most connections.
const MAX_CONNECTIONS: u64 = 9_000;

pub(super) fn plain() {
    run("idle connections", Service::Tcp, PLAIN, "<= 6");
}

pub(super) fn tls() {
    run("idle connections, TLS terminated", Service::Terminate, TLS, "");
}

/// One round: memory varies little.
fn run(workload: &str, service: Service, command: &str, goal: &'static str) {
    // A proxy needs two file descriptors for each, and some spare ones.
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let connections = MAX_CONNECTIONS.min((files - 500) / 2);
    let (_backend, address) = backend("echo");
    let measured = Proxy::all(service, address).into_iter().map(|proxy| {
        let mut load = Load::start("idle", &[proxy.address().to_string(), connections.to_string()]);
        let before = proxy.process.memory();
        load.ask(command);
        let each = (proxy.process.memory() - before) / connections as f64 / 1024.0;
        (proxy.kind, vec![vec![each]])
    });
    let measured: BTreeMap<_, _> = measured.collect();
    rows(
        &format!("{} {workload}", number(connections as f64)),
        &[Figure { name: "memory of a connection, KiB", goal }],
        &measured,
    );
}
