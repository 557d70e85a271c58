//! Properties of translation, checked on random tables against an independent reading of Gateway API.
//!
//! Every run checks a fixed set of seeds. A long run takes more of them, for example more than a million
//! requests with
//!
//! ```text
//! PROPERTY_CASES=6000 cargo test --release -p pingsix-translate --test properties -- --nocapture
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests fail by panicking and report what they did"
)]

mod answer;
mod case;
mod generate;
mod oracle;
mod probe;
mod shrink;
mod verdict;

use pingsix_translate::Layout;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::Value;

use self::case::{Case, Setting};
use self::generate::{Taste, probe, table};
use self::probe::Probe;

/// Tables per setting in every run.
const CASES: u64 = 60;

/// Tables per setting: `PROPERTY_CASES`, or few enough for every run.
#[expect(
    clippy::disallowed_methods,
    reason = "the fence is for the library; a test may be told to run longer"
)]
fn cases() -> u64 {
    std::env::var("PROPERTY_CASES").map_or(CASES, |text| text.parse().expect("PROPERTY_CASES is a number"))
}

/// Checks that every answer is the oracle's, and reports the smallest failing table otherwise.
fn check_routing(setting: Setting, requests: usize, orders: usize) {
    let mut checks = 0;
    for seed in 0..cases() {
        let mut rng = SmallRng::seed_from_u64(seed);
        // PerPort is exact with HTTPS as well; half of the tables are left without.
        let objects = table(&mut rng, Taste { https: seed % 2 == 1 });
        let probes: Vec<Probe> = (0..requests).map(|_| probe(&mut rng)).collect();
        match Case::new(&objects, setting).check(&probes, orders, seed) {
            Ok(done) => checks += done,
            Err(disagreement) => {
                let probes = [disagreement.probe.clone()];
                let fails = |objects: &[Value]| Case::new(objects, setting).check(&probes, 12, seed).is_err();
                let objects = if fails(&objects) { shrink::shrink(objects, fails) } else { objects };
                let after = Case::new(&objects, setting).check(&probes, 12, seed);
                println!("{}", objects.iter().map(|object| format!("{object}\n")).collect::<String>());
                panic!("seed {seed}, {setting:?}: {disagreement:#?}\nafter shrinking: {after:#?}");
            }
        }
    }
    println!("{checks} requests checked with {setting:?}");
}

#[test]
fn every_answer_of_a_shared_data_plane_is_the_oracles() {
    check_routing(Setting { layout: Layout::Shared, responder: true }, 150, 3);
}

#[test]
fn every_answer_of_a_data_plane_per_port_is_the_oracles() {
    check_routing(Setting { layout: Layout::PerPort, responder: true }, 150, 3);
}

#[test]
fn without_a_responder_every_answer_is_the_oracles_or_a_reported_500() {
    check_routing(Setting { layout: Layout::Shared, responder: false }, 100, 2);
    check_routing(Setting { layout: Layout::PerPort, responder: false }, 100, 2);
}

/// Shows the smallest table of a seed that still fails, and fails.
fn report(seed: u64, setting: Setting, objects: Vec<Value>, failure: impl Fn(&[Value]) -> Option<String>) {
    let first = failure(&objects);
    let objects = shrink::shrink(objects, |objects| failure(objects).is_some());
    println!("{}", objects.iter().map(|object| format!("{object}\n")).collect::<String>());
    let last = failure(&objects).unwrap_or_default();
    panic!("seed {seed}, {setting:?}: {}\nafter shrinking: {last}", first.unwrap_or_default());
}

/// Checks something about every table with both layouts.
fn check_tables(failure: impl Fn(&[Value], Setting) -> Option<String>) {
    for seed in 0..cases() {
        let mut rng = SmallRng::seed_from_u64(seed);
        let objects = table(&mut rng, Taste { https: seed % 2 == 1 });
        for layout in [Layout::Shared, Layout::PerPort] {
            let setting = Setting { layout, responder: true };
            if failure(&objects, setting).is_some() {
                report(seed, setting, objects, |objects| failure(objects, setting));
                return;
            }
        }
    }
}

#[test]
fn verdicts_are_the_oracles() {
    check_tables(|objects, setting| {
        let differences = verdict::differences(&Case::new(objects, setting));
        (!differences.is_empty()).then(|| differences.join("\n"))
    });
}
