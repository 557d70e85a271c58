//! HTTPS: the sidecar as the TLS server before PingSIX, beside the TLS of PingSIX.
//!
//! Each PingSIX has one thread on the processor of the proxies, too. One that offers HTTP/2 in plaintext has no listener for
//! TLS, so there are two.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use pingsix_test_programs::free_address;
use tempfile::TempDir;

use super::{backend, with_cpu};
use crate::certificate::Certificate;
use crate::process::{Load, Process, Processor, pinned, tool};
use crate::programs;
use crate::proxies::{Kind, NAME, Proxy, Service};
use crate::report::{Figure, Rounds, print};
use crate::rounds;

/// The time in which PingSIX starts.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// PingSIX with one listener.
struct PingSix {
    address: SocketAddr,
    process: Process,
    _folder: TempDir,
}

impl PingSix {
    fn start(program: &Path, backend: SocketAddr, has_tls: bool) -> Self {
        let address = free_address();
        let folder = tempfile::tempdir().unwrap();
        let file = |name| folder.path().join(name);
        let certificate = Certificate::new(&[NAME]);
        std::fs::write(file("chain.pem"), certificate.chain).unwrap();
        std::fs::write(file("key.pem"), certificate.key).unwrap();
        let here = folder.path().display();
        let protocols = if has_tls {
            format!("offer_h2: true, tls: {{ cert_path: {here}/chain.pem, key_path: {here}/key.pem }}")
        } else {
            "offer_h2c: true".to_owned()
        };
        let configuration = format!(
            "pingora: {{ version: 1, threads: 1, pid_file: {here}/pid, upgrade_sock: {here}/socket }}\n\
             pingsix:\n  listeners: [ {{ address: '{address}', {protocols} }} ]\n\
             upstreams: [ {{ id: u, type: roundrobin, nodes: {{ '{backend}': 1 }} }} ]\n\
             routes: [ {{ id: r, uri: /, host: {NAME}, upstream_id: u }} ]\n"
        );
        std::fs::write(file("config.yaml"), configuration).unwrap();
        let log = std::fs::File::create(file("log")).unwrap();
        let mut command = pinned(Processor::Proxy, program);
        command.arg("-c").arg(file("config.yaml")).env("RUST_LOG", "warn");
        command.stdout(log.try_clone().unwrap()).stderr(Stdio::from(log));
        let process = Process::start(&mut command);
        let started = Instant::now();
        while std::net::TcpStream::connect(address).is_err() {
            assert!(started.elapsed() < START_TIMEOUT, "{}", std::fs::read_to_string(file("log")).unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { address, process, _folder: folder }
    }
}

pub(super) fn fronted() {
    let (Some(program), Some(wrk)) = (programs::pingsix(), programs::find("wrk", "wrk")) else { return };
    let (_backend, address) = backend("http");
    let h2load = programs::find("h2load", "nghttp2-client");
    let [behind, alone] = [false, true].map(|has_tls| PingSix::start(&program, address, has_tls));
    let sidecar = Proxy::start(Kind::Sidecar, Service::Https, behind.address).unwrap();
    let seconds = crate::duration().as_secs().to_string();
    let sides: [(u16, &[&Process]); 2] =
        [(sidecar.port, &[&sidecar.process, &behind.process]), (alone.address.port(), &[&alone.process])];
    let measure = |port: u16, processes: &[&Process]| {
        let url = format!("https://{NAME}:{port}/");
        let requests = |connections| {
            let arguments = ["-t", "1", "-c", connections, "-d", &seconds, "--latency", &url];
            with_cpu(processes, || tool(&wrk, &arguments))
        };
        let (many, cpu) = requests("50");
        let (one, _) = requests("1");
        let https = || Load::start("https", &[format!("127.0.0.1:{port}")]).numbers();
        let (handshakes, handshake_cpu) = with_cpu(processes, https);
        let over_http1 = vec![
            after(&many, "Requests/sec:"),
            cpu * 1e6 / first(many.lines().find(|line| line.contains(" requests in ")).unwrap()),
            microseconds(&one),
            handshakes[0] / handshakes[1],
            handshake_cpu * 1e6 / handshakes[0],
        ];
        let over_http2 = h2load.as_ref().map(|h2load| {
            let arguments = ["-t", "1", "-c", "10", "-m", "10", "-D", &seconds, &url];
            let (report, cpu) = with_cpu(processes, || tool(h2load, &arguments));
            let line = |begin: &str| report.lines().find_map(|line| line.strip_prefix(begin)).unwrap();
            let succeeded = line("requests: ").split(", ").find_map(|part| part.strip_suffix(" succeeded"));
            let (requests, rate) =
                (first(succeeded.unwrap()), line("finished in ").split(", ").nth(1).unwrap());
            vec![first(rate), cpu * 1e6 / requests]
        });
        [Some(over_http1), over_http2]
    };
    let mut measured: [[Rounds; 2]; 2] = Default::default();
    for round in 0..=rounds() {
        for (side, (port, processes)) in sides.iter().enumerate() {
            let figures = measure(*port, processes);
            for (of_protocol, figures) in measured.iter_mut().zip(figures) {
                of_protocol[side].extend(figures.filter(|_| round > 0));
            }
        }
    }
    let figures = [
        Figure { name: "requests/s, 50 connections", goal: ">= 0.7 x" },
        Figure { name: "CPU per request, us", goal: "" },
        Figure { name: "p50, one connection, us", goal: "<= 100 more" },
        Figure { name: "connections of one request/s", goal: ">= 1.0 x" },
        Figure { name: "CPU per connection, us", goal: "" },
    ];
    println!(
        "\n| workload | figure | sidecar before PingSIX | PingSIX alone | ratio | goal |\n|---|---|---|---|---|---|"
    );
    let [over_http1, over_http2] = &measured;
    print("HTTPS over HTTP/1.1", &figures, over_http1.each_ref().map(Some));
    if h2load.is_some() {
        let figures = [
            Figure { name: "requests/s, 10 connections", goal: ">= 0.7 x" },
            Figure { name: "CPU per request, us", goal: "" },
        ];
        print("HTTPS over HTTP/2", &figures, over_http2.each_ref().map(Some));
    }
}

/// The number behind a name in a report of wrk.
fn after(report: &str, name: &str) -> f64 {
    first(report.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap())
}

fn first(text: &str) -> f64 {
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// The median latency in a report of wrk.
fn microseconds(report: &str) -> f64 {
    let text = report.lines().find_map(|line| line.trim().strip_prefix("50%")).unwrap().trim();
    let (number, unit) = match text.strip_suffix("us") {
        Some(number) => (number, 1.0),
        None => (text.strip_suffix("ms").unwrap(), 1e3),
    };
    number.parse::<f64>().unwrap() * unit
}
