//! Loads of this program: how much a proxy passes on in a time, and what one unit costs.

use super::{backend, compare, with_cpu};
use crate::process::Load;
use crate::proxies::Service;
use crate::report::Figure;

pub(super) fn ping_pong() {
    let figures = [
        Figure { name: "exchanges/s", goal: ">= 0.9 x the best" },
        Figure { name: "p50, us", goal: "" },
        Figure { name: "p99, us", goal: "<= 1.2 x the best" },
        Figure { name: "CPU per exchange, us", goal: "" },
    ];
    run("64 B ping-pong, 100 connections", &figures, Service::Tcp, "exchanges");
}

pub(super) fn connections() {
    run("connections, one exchange each", &rate(), Service::Tcp, "connections");
}

pub(super) fn passthrough() {
    run("connections, TLS passthrough by SNI", &rate(), Service::Passthrough, "hellos");
}

fn rate() -> [Figure; 2] {
    [
        Figure { name: "connections/s", goal: ">= 0.85 x the best" },
        Figure { name: "CPU per connection, us", goal: "" },
    ]
}

pub(super) fn handshakes() {
    let figures = [
        Figure { name: "handshakes/s", goal: ">= 0.9 x the best" },
        Figure { name: "CPU per handshake, us", goal: "" },
    ];
    run("full handshakes, P-256, TLS 1.3", &figures, Service::Terminate, "handshakes");
}

pub(super) fn datagrams() {
    let (_backend, address) = backend("datagrams-echo");
    let figures = [
        Figure { name: "exchanges/s", goal: ">= 1.5 x nginx" },
        Figure { name: "CPU per exchange, us", goal: "" },
        Figure { name: "lost", goal: "0" },
    ];
    compare("UDP, 64 B, 25 clients", &figures, Service::Udp, address, |proxy| {
        let load = || Load::start("datagrams", &[proxy.address().to_string()]).numbers();
        let (numbers, cpu) = with_cpu(&[&proxy.process], load);
        vec![numbers[0] / numbers[1], cpu * 1e6 / numbers[0], numbers[2]]
    });
}

/// The figures are the number of units in a second, what else the load has, and the processor time of a unit.
fn run(workload: &str, figures: &[Figure], service: Service, load: &str) {
    let (_backend, address) = backend("echo");
    compare(workload, figures, service, address, |proxy| {
        let load = || Load::start(load, &[proxy.address().to_string()]).numbers();
        let (numbers, cpu) = with_cpu(&[&proxy.process], load);
        let (count, seconds, others) = (numbers[0], numbers[1], &numbers[2..]);
        [&[count / seconds], others, &[cpu * 1e6 / count]].concat()
    });
}
