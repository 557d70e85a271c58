//! Loads of Debian packages: iperf3 and dnsperf.

use std::process::Stdio;
use std::time::Duration;

use pingsix_test_programs::free_address;
use serde_json::Value;

use super::{backend, compare, with_cpu};
use crate::process::{Process, Processor, pinned, tool};
use crate::programs;
use crate::proxies::Service;
use crate::report::Figure;

pub(super) fn bulk() {
    let Some(iperf3) = programs::find("iperf3", "iperf3") else { return };
    let server = free_address();
    let mut command = pinned(Processor::Load, &iperf3);
    command.args(["-s", "-B", "127.0.0.1", "-p", &server.port().to_string()]).stdout(Stdio::null());
    // It names clients that leave at once, such as those that look whether a proxy serves.
    command.stderr(Stdio::null());
    let _server = Process::start(&mut command);
    let figures = [
        Figure { name: "GB/s", goal: "" },
        Figure { name: "CPU per GB, ms", goal: "<= 1.1 x HAProxy, <= 1.0 x nginx" },
    ];
    let seconds = crate::duration().as_secs().to_string();
    compare("TCP, bulk", &figures, Service::Bulk, server, |proxy| {
        // The server takes the next client only after it has finished with the last one.
        std::thread::sleep(Duration::from_millis(300));
        let port = proxy.port.to_string();
        let arguments = ["-c", "127.0.0.1", "-p", &port, "-t", &seconds, "-J"];
        let (report, cpu) = with_cpu(&[&proxy.process], || tool(&iperf3, &arguments));
        let report: Value = serde_json::from_str(&report).unwrap();
        let received = &report["end"]["sum_received"];
        let gigabytes = received["bytes"].as_f64().unwrap() / 1e9;
        vec![gigabytes / received["seconds"].as_f64().unwrap(), cpu * 1e3 / gigabytes]
    });
}

pub(super) fn dns() {
    let Some(dnsperf) = programs::find("dnsperf", "dnsperf") else { return };
    let (_backend, address) = backend("dns");
    let folder = tempfile::tempdir().unwrap();
    let queries = folder.path().join("queries");
    std::fs::write(&queries, "one.example A\ntwo.example AAAA\n").unwrap();
    let figures = [
        Figure { name: "queries/s", goal: ">= 1.5 x nginx" },
        Figure { name: "CPU per query, us", goal: "" },
    ];
    let (queries, seconds) = (queries.to_str().unwrap(), crate::duration().as_secs().to_string());
    compare("DNS, 20 clients", &figures, Service::Udp, address, |proxy| {
        let port = proxy.port.to_string();
        let arguments =
            ["-s", "127.0.0.1", "-p", &port, "-d", queries, "-c", "20", "-q", "200", "-l", &seconds];
        let (report, cpu) = with_cpu(&[&proxy.process], || tool(&dnsperf, &arguments));
        let value = |name| {
            let line = report.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse::<f64>().unwrap()
        };
        vec![value("Queries per second:"), cpu * 1e6 / value("Queries completed:")]
    });
}
