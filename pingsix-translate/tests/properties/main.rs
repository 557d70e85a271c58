//! Properties of translation, checked on random tables against an independent reading of Gateway API.
//!
//! Every run checks a fixed set of seeds. A long run takes more of them, for example more than a million
//! requests with
//!
//! ```text
//! PROPERTY_CASES=1000 cargo test --release -p pingsix-translate --test properties -- --nocapture
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests fail by panicking and report what they did"
)]

mod accepted;
mod adversary;
mod answer;
mod audience;
mod case;
mod certificate;
mod effect;
mod evaluate;
mod fronted;
mod garbage;
mod gateways;
mod generate;
mod incremental;
mod ingress;
mod listener_set;
mod locality;
mod names;
mod oracle;
mod order;
mod precedence;
mod probe;
mod protection;
mod regressions;
mod security;
mod shadow;
mod shrink;
mod traffic;
mod verdict;

use std::cell::Cell;
use std::collections::BTreeSet;

use pingsix_translate::Layout;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use serde_json::Value;

use self::case::{Case, Setting, Tally};
use self::generate::{Taste, hosts, probe, table, table_of_sets, table_of_two};
use self::locality::Changes;
use self::probe::Probe;

/// A random table of some kind.
type Tables = fn(&mut SmallRng, Taste) -> Vec<Value>;

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
fn check_routing(tables: Tables, setting: Setting, requests: usize, orders: usize) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..cases() {
        let mut rng = SmallRng::seed_from_u64(seed);
        // PerPort is exact with HTTPS as well; half of the tables are left without.
        let objects = tables(&mut rng, Taste { https: seed % 2 == 1 });
        let hosts = hosts(&objects);
        let probes: Vec<Probe> = (0..requests).map(|_| probe(&mut rng, &hosts)).collect();
        match Case::new(&objects, setting).check(&probes, orders, seed) {
            Ok(done) => tally.add(done),
            Err(disagreement) => {
                let probes = [disagreement.probe.clone()];
                println!("{disagreement}");
                report(seed, setting, objects, |objects| {
                    let again = Case::new(objects, setting).check(&probes, 12, seed);
                    again.err().map(|disagreement| disagreement.to_string())
                });
            }
        }
    }
    println!("{setting:?}: {tally:?}");
    // A generator that hardly ever gets somewhere would make all this pass.
    let kinds = [tally.not_found, tally.errors, tally.one_service, tally.shares];
    assert!(kinds.iter().all(|count| count * 50 > tally.checks), "the requests are all alike: {tally:?}");
    assert!(tally.calls * 50 > tally.checks, "hardly anybody gets to a GRPCRoute: {tally:?}");
    assert_eq!(tally.refused == 0, setting.responder, "refusals are for want of a responder: {tally:?}");
    tally
}

#[test]
fn every_answer_of_a_shared_data_plane_is_the_oracles() {
    check_routing(table, Setting { layout: Layout::Shared, responder: true }, 150, 3);
}

#[test]
fn every_answer_of_a_data_plane_per_port_is_the_oracles() {
    check_routing(table, Setting { layout: Layout::PerPort, responder: true }, 150, 3);
}

#[test]
fn without_a_responder_every_answer_is_the_oracles_or_a_reported_500() {
    check_routing(table, Setting { layout: Layout::Shared, responder: false }, 100, 2);
    check_routing(table, Setting { layout: Layout::PerPort, responder: false }, 100, 2);
}

#[test]
fn every_answer_beside_listener_sets_is_the_oracles() {
    for layout in [Layout::Shared, Layout::PerPort] {
        let tally = check_routing(table_of_sets, Setting { layout, responder: true }, 150, 3);
        let (checks, of_sets) = (tally.checks, tally.of_listener_sets);
        assert!(
            of_sets * 10 > checks && of_sets * 10 < checks * 9,
            "listeners of one owner alone: {tally:?}"
        );
    }
}

#[test]
fn rules_in_quarantine_answer_an_error_and_all_others_are_the_oracles() {
    for layout in [Layout::Shared, Layout::PerPort] {
        let setting = Setting { layout, responder: true };
        let (mut refused, mut tally) = (0_u64, Tally::default());
        for seed in 0..cases() {
            let mut rng = SmallRng::seed_from_u64(seed);
            let objects = table(&mut rng, Taste { https: seed % 2 == 1 });
            let hosts = hosts(&objects);
            let probes: Vec<Probe> = (0..100).map(|_| probe(&mut rng, &hosts)).collect();
            // Rules that decide about something, so that it matters.
            let free = Case::new(&objects, setting);
            let decisive = probes.iter().filter_map(|probe| free.world.decide(None, probe).rule);
            let rules: BTreeSet<(String, usize)> = decisive.filter(|_| rng.random_bool(0.2)).collect();
            let check = |objects: &[Value], orders| {
                Case::with_quarantine(objects, &rules, setting).check(&probes, orders, seed)
            };
            let held = Case::with_quarantine(&objects, &rules, setting);
            let of_rule = |probe: &&Probe| {
                held.world.decide(None, probe).rule.is_some_and(|rule| rules.contains(&rule))
            };
            refused += probes.iter().filter(of_rule).count() as u64;
            match check(&objects, 2) {
                Ok(done) => tally.add(done),
                Err(_) => report(seed, setting, objects, |objects| {
                    check(objects, 12).err().map(|disagreement| disagreement.to_string())
                }),
            }
        }
        println!("{setting:?}: {refused} requests to rules in quarantine, {tally:?}");
        assert!(refused * 50 > cases() * 100, "hardly any rule was refused: {refused}");
    }
}

/// The first line, without the numbers that change as a table gets smaller.
fn without_numbers(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// Shows the smallest table of a seed that still fails, and fails.
fn report(seed: u64, setting: Setting, objects: Vec<Value>, failure: impl Fn(&[Value]) -> Option<String>) {
    let first = failure(&objects);
    // A table that says something else fails only because what it needs was dropped.
    let objects = shrink::shrink(objects, |objects| match (failure(objects), &first) {
        (Some(smaller), Some(first)) => without_numbers(&smaller) == without_numbers(first),
        _ => false,
    });
    for object in &objects {
        println!("{object}");
    }
    let last = failure(&objects).unwrap_or_default();
    panic!("seed {seed}, {setting:?}: {}\nafter shrinking: {last}", first.unwrap_or_default());
}

/// Checks something about every table with both layouts.
fn check_tables(tables: Tables, failure: impl Fn(&[Value], Setting) -> Option<String>) {
    for seed in 0..cases() {
        let mut rng = SmallRng::seed_from_u64(seed);
        let objects = tables(&mut rng, Taste { https: seed % 2 == 1 });
        for layout in [Layout::Shared, Layout::PerPort] {
            let setting = Setting { layout, responder: true };
            if failure(&objects, setting).is_some() {
                report(seed, setting, objects, |objects| failure(objects, setting));
                return;
            }
        }
    }
}

fn wrong_verdicts(objects: &[Value], setting: Setting) -> Option<String> {
    let differences = verdict::differences(&Case::new(objects, setting));
    (!differences.is_empty()).then(|| differences.join("\n"))
}

#[test]
fn verdicts_are_the_oracles() {
    check_tables(table, wrong_verdicts);
}

#[test]
fn verdicts_on_listener_sets_and_beside_them_are_the_oracles() {
    let seen = Cell::new(listener_set::Seen::default());
    check_tables(table_of_sets, |objects, setting| {
        let mut all = seen.get();
        all.add(&Case::new(objects, setting));
        seen.set(all);
        wrong_verdicts(objects, setting)
    });
    println!("{:?}", seen.get());
    assert!(seen.get().is_everything(), "some rule never decided anything: {:?}", seen.get());
}

fn refused_by_pingsix(objects: &[Value], setting: Setting) -> Option<String> {
    for setting in [setting, Setting { responder: false, ..setting }] {
        let violations = accepted::violations(&Case::new(objects, setting).translation, &setting.options());
        if !violations.is_empty() {
            return Some(violations.join("\n"));
        }
    }
    None
}

#[test]
fn everything_emitted_is_accepted_by_pingsix() {
    check_tables(table, refused_by_pingsix);
    check_tables(table_of_sets, refused_by_pingsix);
}

fn wrong_certificates(objects: &[Value], setting: Setting) -> Option<String> {
    let violations = certificate::violations(&Case::new(objects, setting));
    (!violations.is_empty()).then(|| violations.join("\n"))
}

#[test]
fn a_client_gets_a_certificate_of_the_listener_it_asks_for() {
    check_tables(table, wrong_certificates);
    check_tables(table_of_sets, wrong_certificates);
}

#[test]
fn listener_sets_that_must_not_serve_change_nothing() {
    check_tables(table, listener_set::harm);
}

#[test]
fn it_does_not_matter_in_whose_spec_a_listener_stands() {
    check_tables(table, listener_set::difference);
}

#[test]
fn no_message_names_an_object_of_another_namespace() {
    let hidden = Cell::new(0);
    check_tables(table, |objects, setting| names::foreign(objects, setting, &hidden));
    check_tables(table_of_sets, |objects, setting| names::foreign(objects, setting, &hidden));
    assert!(hidden.get() > 20, "hardly any message had a name to hide: {}", hidden.get());
}

#[test]
fn the_order_of_objects_changes_nothing() {
    check_tables(table, order::difference);
}

#[test]
fn a_wider_route_never_changes_what_a_more_specific_rule_answers() {
    let compared = Cell::new(precedence::Compared::default());
    for seed in 0..cases() {
        let mut rng = SmallRng::seed_from_u64(seed);
        let objects = table(&mut rng, Taste { https: seed % 2 == 1 });
        let hosts = hosts(&objects);
        let probes: Vec<Probe> = (0..80).map(|_| probe(&mut rng, &hosts)).collect();
        // A data plane for several ports may have to refuse rules for what requests without TLS would get.
        let setting = Setting { layout: Layout::PerPort, responder: true };
        let failure = |objects: &[Value]| match precedence::compare(objects, setting, &probes) {
            Ok(of_table) => {
                let mut all = compared.get();
                all.add(of_table);
                compared.set(all);
                None
            }
            Err(error) => Some(error),
        };
        if failure(&objects).is_some() {
            report(seed, setting, objects, failure);
            return;
        }
    }
    let precedence::Compared { all, younger } = compared.get();
    println!("{:?}", compared.get());
    assert!(younger > cases() && all - younger > cases(), "hardly anything was compared");
}

#[test]
fn a_rule_is_said_to_be_shadowed_if_and_only_if_no_request_reaches_it() {
    let mut shadowed = 0;
    for tables in [table as Tables, table_of_sets] {
        for layout in [Layout::PerPort, Layout::Shared] {
            let setting = Setting { layout, responder: true };
            for seed in 0..cases() {
                let mut rng = SmallRng::seed_from_u64(seed);
                let objects = tables(&mut rng, Taste { https: seed % 2 == 1 });
                let hosts = hosts(&objects);
                let probes: Vec<Probe> = (0..40).map(|_| probe(&mut rng, &hosts)).collect();
                let failure = |objects: &[Value]| shadow::compare(objects, setting, &probes).err();
                match shadow::compare(&objects, setting, &probes) {
                    Ok(told) => shadowed += told,
                    Err(_) => report(seed, setting, objects, failure),
                }
            }
        }
    }
    println!("{shadowed} shadowed rules");
    assert!(shadowed > 40, "hardly any rule was shadowed: {shadowed}");
}

#[test]
fn one_route_changes_its_own_documents_and_what_lists_its_patterns() {
    let all = Cell::new(Changes::default());
    check_tables(table, |objects, setting| match locality::changes(objects, setting) {
        Ok(changes) => {
            let mut sum = all.get();
            sum.add(changes);
            all.set(sum);
            None
        }
        Err(error) => Some(error),
    });
    println!("{:?}", all.get());
}

/// Checks every table of two Gateways with both layouts; the probes are for the hosts of both.
fn check_tables_of_two(failure: impl Fn(&[Value], Setting, &[Probe], u64) -> Option<String>) {
    for seed in 0..cases() {
        let mut rng = SmallRng::seed_from_u64(seed);
        let objects = table_of_two(&mut rng, Taste { https: seed % 2 == 1 });
        let hosts = hosts(&objects);
        let probes: Vec<Probe> = (0..80).map(|_| probe(&mut rng, &hosts)).collect();
        for layout in [Layout::Shared, Layout::PerPort] {
            let setting = Setting { layout, responder: true };
            if failure(&objects, setting, &probes, seed).is_some() {
                report(seed, setting, objects, |objects| failure(objects, setting, &probes, seed));
                return;
            }
        }
    }
}

#[test]
fn every_answer_of_each_of_several_gateways_is_the_oracles() {
    let (all, shared) = (Cell::new(Tally::default()), Cell::new(0));
    check_tables_of_two(|objects, setting, probes, seed| {
        let of_both = |object: &&Value| gateways::parents(object).is_superset(&gateways::GATEWAYS.into());
        shared.set(shared.get() + objects.iter().filter(of_both).count());
        match gateways::check(objects, setting, probes, seed) {
            Ok(tally) => {
                let mut sum = all.get();
                sum.add(tally);
                all.set(sum);
                None
            }
            Err(disagreement) => Some(disagreement),
        }
    });
    println!("{} routes of both Gateways: {:?}", shared.get(), all.get());
    assert!(shared.get() > 0 && all.get().one_service > 0);
}

#[test]
fn objects_attached_to_one_gateway_do_not_affect_another() {
    check_tables_of_two(|objects, setting, _, _| gateways::interference(objects, setting));
}

#[test]
fn a_translator_gives_what_a_fresh_one_does() {
    let mut all = incremental::Seen::default();
    for tables in
        [table as Tables, table_of_sets, incremental::lively, incremental::dependent, incremental::dependent]
    {
        for seed in 0..cases() / 2 {
            match incremental::history(tables, seed + all.histories()) {
                Ok(seen) => all.add(seen),
                Err(difference) => panic!("seed {seed}: {difference}"),
            }
        }
    }
    println!("{all:?}");
    assert!(all.is_everything(), "some kind of history never happened: {all:?}");
}

#[test]
fn a_pair_of_server_name_and_host_behind_a_sidecar_matches_the_oracle() {
    let mut seen = fronted::Seen::default();
    for seed in 0..cases() {
        let objects = fronted::fronted_table(&mut SmallRng::seed_from_u64(seed));
        match fronted::check(&objects, seed) {
            Ok(of_table) => seen.add(of_table),
            Err(_) => {
                report(seed, fronted::SETTING, objects, |objects| fronted::check(objects, seed).err());
            }
        }
    }
    println!("{seen:?}");
    assert!(seen.is_everything(), "some kind of pair hardly ever happened: {seen:?}");
}

#[test]
fn nonsensical_objects_do_no_harm() {
    let mut rng = SmallRng::seed_from_u64(7);
    let rounds = cases() * 8;
    for round in 0..rounds {
        let mut bytes = vec![0; rng.random_range(0..200)];
        rng.fill_bytes(&mut bytes);
        let violations = garbage::exercise(&bytes);
        assert!(violations.is_empty(), "round {round}, {bytes:?}: {}", violations.join("\n"));
    }
    println!("{rounds} collections of nonsensical objects translated");
}
