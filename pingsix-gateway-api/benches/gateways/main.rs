//! The tests of gateway-api-bench, the public benchmark of gateways, in the test cluster: from a change of a Kubernetes
//! object to the answer that a client gets.
//!
//! `just bench-gateways [OPTIONS] [TEST ...]`, with these tests: `attached`, `propagation`, `scale`, `changes`, `endpoints`,
//! `failover`, `listener-sets`. Options:
//!
//! - `--beside FILE`: another controller, which runs in turn with ours (`description.rs` has the format);
//! - `--rounds N`: how often each test runs for each controller (3);
//! - `--routes N`: the largest number of routes (3,000).
//!
//! Needs Linux, the test cluster (`just cluster`) and PingSIX (`PINGSIX_BIN`), and says so when one is missing. Everything
//! runs in a network namespace, because an API server takes no address of loopback as an endpoint. Controllers and data
//! planes share one core. The API server, its etcd, the backends and the clients have the others.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement that cannot go on fails"
)]

mod attached;
mod backend;
mod changes;
mod client;
mod contender;
mod description;
mod endpoints;
mod failover;
mod figures;
mod floor;
mod lab;
mod listener_sets;
mod network;
mod objects;
#[path = "../live/process.rs"]
mod process;
mod propagation;
#[path = "../live/reader.rs"]
mod reader;
#[path = "../live/samples.rs"]
mod samples;
mod scale;

use std::path::PathBuf;

use description::Description;
use figures::{Figures, Table};
use lab::Lab;

/// The options of the command line.
#[derive(Clone, Debug)]
struct Arguments {
    beside: Option<PathBuf>,
    rounds: usize,
    routes: usize,
    tests: Vec<Test>,
}

/// A test of the public benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    Attached,
    Propagation,
    Scale,
    Changes,
    Endpoints,
    Failover,
    ListenerSets,
}

const TESTS: [(&str, Test); 7] = [
    ("attached", Test::Attached),
    ("propagation", Test::Propagation),
    ("scale", Test::Scale),
    ("changes", Test::Changes),
    ("endpoints", Test::Endpoints),
    ("failover", Test::Failover),
    ("listener-sets", Test::ListenerSets),
];

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self { beside: None, rounds: 3, routes: 3_000, tests: Vec::new() };
        while let Some(argument) = given.next() {
            let mut value = || given.next().ok_or_else(|| format!("{argument} needs a value"));
            let number = |text: String| text.parse().map_err(|_| format!("{text} is no number"));
            match argument.as_str() {
                "--bench" => {}
                "--beside" => arguments.beside = Some(value()?.into()),
                "--rounds" => arguments.rounds = number(value()?)?,
                "--routes" => arguments.routes = number(value()?)?,
                name => match TESTS.iter().find(|(known, _)| *known == name) {
                    Some((_, test)) => arguments.tests.push(*test),
                    None => return Err(format!("there is no test {name}")),
                },
            }
        }
        if arguments.tests.is_empty() {
            arguments.tests = TESTS.map(|(_, test)| test).into();
        }
        Ok(arguments)
    }
}

fn main() {
    let arguments = Arguments::parse(std::env::args().skip(1)).unwrap_or_else(|error| panic!("{error}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let Some(pingsix) = pingsix_test_programs::pingsix() else { return };
        let controller = pingsix_test_programs::program("pingsix-gateway-controller").await;
        if !network::is_inside().await {
            return;
        }
        let mut descriptions = vec![Description::ours(&controller, &pingsix)];
        descriptions.extend(arguments.beside.as_deref().map(Description::read));
        println!("{}", lab::cores());
        for test in &arguments.tests {
            run(*test, &arguments, &descriptions).await;
        }
    });
}

/// Runs a test for each controller in turn, and prints a table.
async fn run(test: Test, arguments: &Arguments, descriptions: &[Description]) {
    let name = TESTS.iter().find(|(_, known)| *known == test).unwrap().0;
    println!("\n## {name}\n");
    let mut table = Table::default();
    for _ in 0..arguments.rounds {
        for description in descriptions {
            let Some(lab) = Lab::start(&[description]).await else { return };
            let figures = Box::pin(measure(test, arguments, &lab)).await;
            table.add(description.name(), figures);
        }
        // Each route has a parent of each controller.
        if test == Test::Attached && descriptions.len() > 1 {
            let Some(lab) = Lab::start(&descriptions.iter().collect::<Vec<_>>()).await else { return };
            for (contender, figures) in lab.contenders().iter().zip(attached::measure_all(&lab).await) {
                table.add(&format!("{}, both", contender.name()), figures);
            }
        }
    }
    println!("{table}");
}

async fn measure(test: Test, arguments: &Arguments, lab: &Lab) -> Figures {
    match test {
        Test::Attached => attached::measure_all(lab).await.remove(0),
        Test::Propagation => propagation::measure(lab, arguments.routes).await,
        Test::Scale => scale::measure(lab).await,
        Test::Changes => changes::measure(lab, arguments.routes).await,
        Test::Endpoints => endpoints::measure(lab, arguments.routes).await,
        Test::Failover => failover::measure(lab).await,
        Test::ListenerSets => listener_sets::measure(lab).await,
    }
}
