//! The output for manifests, file by file: `testdata/scenarios/<area>/<case>`; see `testdata/scenarios/README.md`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it wrote"
)]

mod case;
mod connection;
mod coverage;
mod diff;
mod sample;

use std::panic::{self, AssertUnwindSafe};
use std::thread;

use case::{Case, cases};

/// Runs a check on every case, and fails with the problems of all.
fn check_all(check: impl Fn(&Case) -> Vec<String> + Sync) {
    let cases = cases();
    assert!(!cases.is_empty(), "there are no scenarios");
    let workers = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut problems: Vec<(String, Vec<String>)> = thread::scope(|scope| {
        let (check, cases) = (&check, &cases);
        // Neighbours cost alike, so each worker has some of all areas.
        let running: Vec<_> = (0..workers)
            .map(|first| {
                let own = cases.iter().skip(first).step_by(workers);
                scope.spawn(move || {
                    own.map(|case| (case.name(), problems_of(case, check))).collect::<Vec<_>>()
                })
            })
            .collect();
        running.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    problems.retain(|(_, problems)| !problems.is_empty());
    problems.sort();
    if !problems.is_empty() {
        let names: Vec<&str> = problems.iter().map(|(name, _)| name.as_str()).collect();
        let without_positions: Vec<String> =
            problems.iter().map(|(name, problems)| format!("== {name}\n{}", problems.join("\n"))).collect();
        panic!(
            "{} of {} scenarios: {}\n\n{}",
            names.len(),
            cases.len(),
            names.join(", "),
            without_positions.join("\n\n")
        );
    }
}

/// A case that cannot be checked is a problem, and the others are checked nevertheless.
fn problems_of(case: &Case, check: &(impl Fn(&Case) -> Vec<String> + Sync)) -> Vec<String> {
    panic::catch_unwind(AssertUnwindSafe(|| check(case))).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied());
        vec![format!("the check panicked: {}", text.unwrap_or("without a message"))]
    })
}

#[test]
fn every_scenario_becomes_what_its_files_say() {
    let update = std::env::var_os("UPDATE_SCENARIOS").is_some_and(|value| !value.is_empty());
    check_all(|case| case.compare(update));
}

#[test]
fn there_are_enough_scenarios_to_learn_from() {
    assert!(cases().len() >= 120, "{} scenarios", cases().len());
}

#[test]
fn every_scenario_says_what_it_shows() {
    check_all(|case| {
        let first = case.input().lines().next().unwrap_or_default().to_owned();
        let sentence = first.strip_prefix("# Shows: ").unwrap_or_default();
        let good = sentence.len() > 20 && sentence.ends_with('.') && !sentence.contains(". ");
        let wrong = format!("input.yaml: the first line is \"# Shows: \" and one sentence, not {first:?}");
        if good { Vec::new() } else { vec![wrong] }
    });
}

#[test]
fn pingsix_accepts_the_documents_of_every_scenario_in_any_order() {
    check_all(Case::refused_by_pingsix);
}

#[test]
fn stream_proxies_accept_the_documents_of_every_scenario() {
    check_all(Case::refused_by_stream_proxies);
}

#[test]
fn every_sample_connection_ends_where_it_should() {
    check_all(|case| match case.read("connections.yaml") {
        Some(text) => connection::check(&text, &case.stream_documents()),
        None => Vec::new(),
    });
}

#[test]
fn every_sample_request_ends_where_it_should() {
    check_all(|case| {
        let Some(text) = case.read("requests.yaml") else { return Vec::new() };
        sample::check(&text, &|arguments| case.run(&["explain"], arguments))
    });
}

#[test]
fn no_private_key_is_ever_shown() {
    check_all(|case| {
        let shown = ["config.yaml", "status.yaml"].into_iter().filter(|file| {
            let text = case.read(file).unwrap_or_default();
            text.contains("PRIVATE KEY")
        });
        shown.map(|file| format!("{file} holds a private key")).collect()
    });
}
