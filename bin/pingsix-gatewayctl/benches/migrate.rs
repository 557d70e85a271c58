//! `migrate` and `check` of many objects, by the time for each of them.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program that prints what it measures")]

/// The inputs of the test that counts allocations.
#[allow(dead_code, reason = "the test has more of them")]
#[path = "../tests/growth/shapes.rs"]
mod shapes;

use std::ffi::OsString;
use std::time::{Duration, Instant};

use pingsix_gatewayctl::{Program, main_with};
use shapes::{apisix, routes, shared_host, tenants};

/// The numbers of Ingresses of three paths, or of other objects.
const COUNTS: [usize; 2] = [1_250, 5_000];

/// The second number, in multiples of the first one.
const GROWTH_FACTOR: f64 = 4.0;

/// An input of a size.
type Shape = fn(usize) -> String;

/// The number of runs, of which the shortest one counts.
const RUNS: usize = 5;

fn shortest(command: &[&str], input: &str) -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("input.yaml");
    std::fs::write(&file, input).unwrap();
    let run = || {
        let words = std::iter::once("pingsix-gatewayctl").chain(command.iter().copied()).map(OsString::from);
        let arguments: Vec<OsString> = words.chain([file.clone().into_os_string()]).collect();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let start = Instant::now();
        let _ = main_with(Program::Gatewayctl, arguments, &mut out, &mut err);
        start.elapsed()
    };
    (0..RUNS).map(|_| run()).min().unwrap()
}

fn main() {
    println!(
        "| command | input | {} | {} | growth per object |\n|---|---|---|---|---|",
        COUNTS[0], COUNTS[1]
    );
    let inputs: [(&str, Shape); 4] =
        [("tenants", tenants), ("shared host", shared_host), ("APISIX", apisix), ("routes", routes)];
    for (name, input) in inputs {
        for command in [&["migrate"][..], &["migrate", "--keep-ingress"], &["check"]] {
            let [few, many] = COUNTS.map(|count| shortest(command, &input(count)));
            let per = many.as_secs_f64() / few.as_secs_f64() / GROWTH_FACTOR;
            println!("| {} | {name} | {few:.0?} | {many:.0?} | {per:.2} |", command.join(" "));
        }
    }
}
