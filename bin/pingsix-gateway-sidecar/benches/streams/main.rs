//! The stream role beside `HAProxy` and nginx on one machine.
//!
//! `cargo bench -p pingsix-gateway-sidecar --bench streams [-- WORKLOAD ...]`, with `STREAMS_ROUNDS` (5) and
//! `STREAMS_SECONDS` (3), the time of one measurement. Each proxy has one worker on processor 0; load and backends have
//! processor 1. Proxies take turns in each round. The output is a table in Markdown: medians of the rounds, and ratios of
//! the sidecar to another proxy, each as the median of the rounds with its extremes. A program that is missing is named
//! with its Debian package, and its figures are left out.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    reason = "a measurement that cannot go on fails"
)]

mod certificate;
mod documents;
mod load;
mod process;
mod programs;
mod proxies;
mod report;
mod workloads;

use std::time::{Duration, Instant};

/// The number of rounds.
fn rounds() -> usize {
    number("STREAMS_ROUNDS", 5)
}

/// The time of one measurement.
fn duration() -> Duration {
    Duration::from_secs(number("STREAMS_SECONDS", 3).try_into().unwrap())
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [first, load, arguments @ ..] = &arguments[..]
        && first == process::LOAD_ARGUMENT
    {
        load::run(load, arguments);
        return;
    }
    if std::thread::available_parallelism().unwrap().get() < 2 {
        eprintln!("NOT RUN: proxies and load need a processor each");
        return;
    }
    let all = workloads::all();
    if let Some(unknown) = arguments.iter().find(|argument| all.iter().all(|(name, _)| argument != name)) {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        eprintln!("There is no workload {unknown}, but {}.", names.join(", "));
        std::process::exit(2);
    }
    let started = Instant::now();
    for (name, run) in all {
        if arguments.is_empty() || arguments.iter().any(|argument| argument == name) {
            run();
        }
    }
    println!("\n{} rounds, {:.0?} in all.", rounds(), started.elapsed());
}
