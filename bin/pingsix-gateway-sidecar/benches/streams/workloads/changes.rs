//! Changes of one route out of many, and starts with all of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pingsix_test_programs::free_port;

use crate::load::{PREFIX, ROUTES, name};
use crate::process::{Load, Process};
use crate::programs;
use crate::proxies::{Kind, nginx_names, sidecar_from_feed};
use crate::report::{Figure, Rounds, number, percentile, rows};
use crate::rounds;

/// The changes in one round.
const CHANGES_PER_ROUND: usize = 20;
/// The reloads of nginx in one round. The workers before a reload stay while they have connections.
const RELOADS_PER_ROUND: usize = 2;
/// The connections that are open during all changes.
const HELD_CONNECTIONS: usize = 1_000;
/// The certificates of a start.
const CERTIFICATES: usize = 1_000;
/// The pause between two changes.
const PAUSE_BETWEEN_CHANGES: Duration = Duration::from_millis(50);

/// A feed, with the addresses of its backends.
struct Feed {
    load: Load,
    address: String,
    backends: [SocketAddr; 2],
}

impl Feed {
    fn start(port: u16, certificates: usize) -> Self {
        let mut load = Load::start("changes", &[port.to_string(), certificates.to_string()]);
        let first = load.answer();
        let addresses: Vec<&str> = first.split(' ').collect();
        let backends = [addresses[1].parse().unwrap(), addresses[2].parse().unwrap()];
        Self { load, address: addresses[0].to_owned(), backends }
    }

    /// Waits until a client of a route reaches a backend.
    fn wait(&mut self, route: usize, backend: usize) {
        self.load.ask(&format!("await {route} {backend}"));
    }

    /// Waits until all is served, and opens connections.
    fn hold(&mut self) {
        self.wait(ROUTES - 1, 0);
        self.load.ask(&format!("hold {HELD_CONNECTIONS}"));
    }

    /// The connections that have ended.
    fn broken(&mut self) -> f64 {
        HELD_CONNECTIONS as f64 - self.load.ask("held").parse::<f64>().unwrap()
    }
}

/// The route of a change, which no other change has.
fn changed_route(change: usize) -> usize {
    ROUTES - 1 - change * 37 % (ROUTES / 2)
}

pub(super) fn change() {
    let figures = [
        Figure { name: "p50, ms", goal: "<= 2" },
        Figure { name: "p99, ms", goal: "<= 10" },
        Figure { name: "connections ended", goal: "0" },
    ];
    let mut measured = BTreeMap::from([(Kind::Sidecar, vec![of_sidecar()])]);
    if let Some(values) = of_nginx() {
        measured.insert(Kind::Nginx, vec![values]);
    }
    rows(&format!("one of {} routes changed; nginx: reload", number(ROUTES as f64)), &figures, &measured);
}

fn of_sidecar() -> Vec<f64> {
    let mut feed = Feed::start(free_port(), 0);
    let _sidecar = sidecar_from_feed(&feed.address, PREFIX);
    feed.hold();
    let times: Vec<f64> = (0..rounds() * CHANGES_PER_ROUND)
        .map(|change| {
            std::thread::sleep(PAUSE_BETWEEN_CHANGES);
            feed.load.ask(&format!("change {}", changed_route(change))).parse::<f64>().unwrap() / 1e3
        })
        .collect();
    vec![percentile(&times, 50), percentile(&times, 99), feed.broken()]
}

fn of_nginx() -> Option<Vec<f64>> {
    let program = programs::nginx()?;
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let mut feed = Feed::start(port, 0);
    let mut nodes = vec![feed.backends[0]; ROUTES];
    let all: Vec<String> = (0..ROUTES).map(name).collect();
    let configure = |nodes: &[SocketAddr]| {
        let names = all.iter().map(String::as_str).zip(nodes.iter().copied());
        nginx_names(&program, folder.path(), port, names)
    };
    let nginx = Process::start(&mut configure(&nodes));
    feed.hold();
    let times: Vec<f64> = (0..rounds() * RELOADS_PER_ROUND)
        .map(|change| {
            let route = changed_route(change);
            nodes[route] = feed.backends[1];
            configure(&nodes);
            let started = Instant::now();
            nginx.reload();
            feed.wait(route, 1);
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    Some(vec![percentile(&times, 50), percentile(&times, 99), feed.broken()])
}

pub(super) fn start() {
    let mut feed = Feed::start(free_port(), CERTIFICATES);
    let values: Rounds = (0..rounds())
        .map(|_| {
            let started = Instant::now();
            let sidecar = sidecar_from_feed(&feed.address, PREFIX);
            feed.wait(ROUTES - 1, 0);
            vec![
                started.elapsed().as_secs_f64() * 1e3,
                sidecar.cpu() * 1e3,
                sidecar.memory() / f64::from(1 << 20),
            ]
        })
        .collect();
    let figures = [
        Figure { name: "until a client is served, ms", goal: "<= 1,000" },
        Figure { name: "CPU, ms", goal: "" },
        Figure { name: "memory, MiB", goal: "" },
    ];
    let workload =
        format!("start with {} routes, {} certificates", number(ROUTES as f64), number(CERTIFICATES as f64));
    rows(&workload, &figures, &BTreeMap::from([(Kind::Sidecar, values)]));
}
