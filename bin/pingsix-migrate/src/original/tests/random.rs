//! Random Ingresses: the output answers as the model of the original does, or the report says why not.
//!
//! `ORACLE_INGRESSES` is the number of Ingresses, and `ORACLE_SEED` another start.

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::class;
use super::explained::Compared;
use super::generate::{self, Dialect};
use super::served::{Said, Way};
use crate::answer::{Answer, Request};
use crate::original::Original;
use crate::replay;

/// The Ingresses of a run without `ORACLE_INGRESSES`.
const DEFAULT_INGRESSES: usize = 300;

/// The requests to each case.
const REQUESTS_PER_CASE: usize = 12;

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// The results of a run.
#[derive(Debug, Default)]
struct Tally {
    same: usize,
    /// The answers that a report or findings explain, by the reason.
    explained: BTreeMap<String, usize>,
    /// The answers of a class that differ by design, by the words of the documentation.
    by_design: BTreeMap<&'static str, usize>,
    /// The requests whose former answer is unknown, by the reason.
    unknown: BTreeMap<String, usize>,
    /// The number of the others by their kind, and the first one of each.
    wrong: BTreeMap<String, (usize, String)>,
}

impl Tally {
    fn count(&mut self, (way, dialect): (Way, Dialect), compared: &Compared<'_>, said: &[Said]) {
        let Compared { request, told, answer, .. } = compared;
        if replay::is_same(told, answer, request) {
            self.same += 1;
        } else if let Some(said) = compared.explanation(said) {
            *self.explained.entry(said.reason.clone()).or_default() += 1;
        } else if let Some(words) = class::difference(compared, dialect).filter(|_| way == Way::Class) {
            *self.by_design.entry(words).or_default() += 1;
        } else {
            let of_no_path = if told.is_fallback { " of no path" } else { "" };
            let kind = format!("{way:?} {}{of_no_path} {}", kind_of(&told.answer), kind_of(answer));
            let (number, _) = self.wrong.entry(kind).or_insert_with(|| (0, shown(compared)));
            *number += 1;
        }
    }
}

fn kind_of(answer: &Answer) -> String {
    match answer {
        Answer::Backends { checks, .. } => format!("backends {checks:?}"),
        Answer::Redirect { status, .. } => format!("redirect {status}"),
        Answer::Status(status) => format!("status {status}"),
        Answer::Closed => "closed".to_owned(),
        Answer::Unknown(why) => why.clone(),
    }
}

fn shown(compared: &Compared<'_>) -> String {
    let Compared { objects, request, told, answer, places } = compared;
    let ingresses = objects.iter().filter(|object| object["kind"] == "Ingress").map(|ingress| {
        let metadata = &ingress["metadata"];
        let [name, created, annotations] =
            ["name", "creationTimestamp", "annotations"].map(|field| &metadata[field]);
        format!("{name} {created} {annotations} {}", ingress["spec"])
    });
    let ingresses = ingresses.collect::<Vec<_>>().join("\n  ");
    format!("{request:?}\n  old {told:?}\n  new {answer:?}\n  by {places:?}\n  {ingresses}")
}

fn check(rng: &mut SmallRng, dialect: Dialect, tally: &mut Tally) -> usize {
    let count = rng.random_range(1..4);
    let objects = generate::case(rng, dialect, count);
    let original = Original::read(&objects, true);
    let requests: Vec<Request> = (0..REQUESTS_PER_CASE).map(|_| generate::request(rng, &objects)).collect();
    let mut known = Vec::new();
    for request in &requests {
        let told = original.answer(request);
        if let Answer::Unknown(why) = told.answer {
            *tally.unknown.entry(why).or_default() += 1;
        } else {
            known.push((request, told));
        }
    }
    for way in Way::ALL {
        let served = way.serve(&objects, dialect);
        let ready = served.ready();
        for (request, told) in &known {
            let answer = ready.answers.answer(request);
            let places = ready.answers.brief(request).map(|brief| ready.places(&brief)).unwrap_or_default();
            let compared = Compared { objects: &objects, request, told, answer: &answer, places: &places };
            tally.count((way, dialect), &compared, &served.said);
        }
    }
    count
}

#[test]
fn random_ingresses_are_answered_as_before_or_the_report_says_why_not() {
    let (wanted, seed) = (number("ORACLE_INGRESSES", DEFAULT_INGRESSES), number("ORACLE_SEED", 0));
    let mut all_wrong = Vec::new();
    for dialect in Dialect::ALL {
        let mut rng = SmallRng::seed_from_u64(seed as u64);
        let (mut tally, mut done) = (Tally::default(), 0);
        while done < wanted / 2 {
            done += check(&mut rng, dialect, &mut tally);
        }
        println!("{dialect:?}: {done} Ingresses");
        let Tally { same, explained, by_design, unknown, wrong } = tally;
        println!("{same} same\nexplained {explained:#?}\nby design {by_design:#?}\nunknown {unknown:#?}");
        let differing: usize = explained.values().chain(by_design.values()).sum();
        // Each request is asked of all ways.
        let unknown = unknown.values().sum::<usize>() * Way::ALL.len();
        assert!(same > differing && same > unknown, "{dialect:?}: {differing} differ, {unknown} are unknown");
        all_wrong.extend(
            wrong
                .into_iter()
                .map(|(kind, (number, first))| format!("{dialect:?} {kind}, {number} times:\n  {first}")),
        );
    }
    assert!(all_wrong.is_empty(), "{}", all_wrong.join("\n\n"));
}
