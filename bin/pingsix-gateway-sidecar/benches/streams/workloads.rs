//! The workloads.

mod changes;
mod exchanges;
mod fronted;
mod memory;
mod throughput;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::process::{Load, Process};
use crate::proxies::{Kind, Proxy, Service};
use crate::report::{Figure, Rounds, rows};
use crate::rounds;

/// The workloads by name, in the order of the table.
pub(crate) fn all() -> [(&'static str, fn()); 12] {
    [
        ("bulk", throughput::bulk),
        ("ping-pong", exchanges::ping_pong),
        ("connections", exchanges::connections),
        ("passthrough", exchanges::passthrough),
        ("handshakes", exchanges::handshakes),
        ("udp", exchanges::datagrams),
        ("dns", throughput::dns),
        ("memory", memory::plain),
        ("memory-tls", memory::tls),
        ("change", changes::change),
        ("start", changes::start),
        ("fronted", fronted::fronted),
    ]
}

/// A backend of this program, with its address.
fn backend(name: &str) -> (Load, SocketAddr) {
    let mut load = Load::start(name, &[]);
    let address = load.answer().parse().unwrap();
    (load, address)
}

/// Measures all proxies with a service in turns, and prints the figures. The first run of each is not counted.
fn compare(
    workload: &str,
    figures: &[Figure],
    service: Service,
    backend: SocketAddr,
    mut measure: impl FnMut(&Proxy) -> Vec<f64>,
) {
    let proxies = Proxy::all(service, backend);
    let mut measured: BTreeMap<Kind, Rounds> = BTreeMap::new();
    for round in 0..=rounds() {
        for proxy in &proxies {
            let values = measure(proxy);
            if round > 0 {
                measured.entry(proxy.kind).or_default().push(values);
            }
        }
    }
    rows(workload, figures, &measured);
}

/// Runs something, and returns its result with the processor time that processes have taken for it.
fn with_cpu<T>(processes: &[&Process], run: impl FnOnce() -> T) -> (T, f64) {
    let cpu = || processes.iter().map(|process| process.cpu()).sum::<f64>();
    let before = cpu();
    let result = run();
    (result, cpu() - before)
}
