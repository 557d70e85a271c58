//! The verdict of the translation on the output: what `check` refuses, or answers with an error where the original serves, is
//! not exact.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

use pingsix_gateway_api::explain::{Answer, BriefAnswer, Source, Target};
use pingsix_gateway_api::pipeline::Finding;
use pingsix_translate::status::{self, Severity};
use pingsix_translate::{Kind, ObjectKey};
use rayon::prelude::*;
use serde_json::Value;

use super::answer::{Answers, Request};
use super::asked::Asked;
use super::origins::{Origins, Traced};
use super::report::{Place, Reason, Report};
use super::translated::Translated;

/// The statuses of rules that are not served.
const FAILURES: [u16; 3] = [404, 500, 503];

/// The most sentences against a place.
const MAX_SENTENCES: usize = 4;

/// The sentences of the controller against a place.
type Problems = BTreeMap<Place, BTreeSet<String>>;

/// Overrules the verdicts of the report that the translation of the output contradicts.
pub(super) fn judge(
    asked: &[Asked],
    written: &[(ObjectKey, Arc<Value>)],
    origins: &Origins,
    translated: &Translated,
    report: &mut Report,
) {
    let traced = Traced::new(origins, written);
    let mut refused = Problems::new();
    for problem in &translated.problems {
        let places = problem.key.iter().flat_map(|key| traced.places(key, &problem.field));
        note(places, &problem.message, &mut refused);
    }
    let errors = translated.output.findings.iter().filter(|finding| finding.severity == Severity::Error);
    for Finding { object, field, message, .. } in errors {
        note(traced.places(object, field).into_iter(), message, &mut refused);
    }
    for Finding { object, field, message, reason, .. } in &translated.output.findings {
        if *reason == status::Reason::Limited.as_str() {
            for place in traced.places(object, field) {
                report.limit(&place, message);
            }
        }
    }
    let judge = Judge { answers: translated.answers(), names: names(written), traced };
    let mut problems: BTreeMap<Place, (Reason, String)> = BTreeMap::new();
    // An Ingress of the output that is none of the copies stays as it is, and belongs to its controller.
    let asked = asked.par_iter().filter(|one| !judge.stays(&one.place));
    let failures = asked.filter_map(|one| Some((&one.place, judge.failure(one)?)));
    for (place, sentence) in failures.collect::<Vec<_>>() {
        problems.entry(place.clone()).or_insert((Reason::NotServed, sentence));
    }
    for (place, sentences) in refused {
        let sentences = sentences.into_iter().collect::<Vec<_>>().join(" ");
        match problems.entry(place) {
            Entry::Vacant(free) => {
                free.insert((Reason::NotAccepted, sentences));
            }
            Entry::Occupied(mut held) => {
                let (_, sentence) = held.get_mut();
                *sentence = format!("{sentence} {sentences}");
            }
        }
    }
    report.overrule(&problems);
}

fn note(places: impl Iterator<Item = Place>, message: &str, problems: &mut Problems) {
    for place in places {
        let sentences = problems.entry(place).or_default();
        if sentences.len() < MAX_SENTENCES {
            sentences.insert(message.to_owned());
        }
    }
}

/// The keys of routes and Ingresses, by their names in explanations.
fn names(written: &[(ObjectKey, Arc<Value>)]) -> BTreeMap<String, &ObjectKey> {
    let keys = written.iter().map(|(key, _)| key);
    let keys = keys.filter(|key| key.kind.is_route() || key.kind == Kind::Ingress);
    keys.map(|key| (key.to_string(), key)).collect()
}

struct Judge<'o> {
    answers: Answers<'o>,
    names: BTreeMap<String, &'o ObjectKey>,
    traced: Traced<'o>,
}

impl Judge<'_> {
    /// Whether a place is one of an Ingress that is not converted.
    fn stays(&self, place: &Place) -> bool {
        self.names.get(&*place.object).is_some_and(|key| key.kind == Kind::Ingress)
    }

    /// The sentence against the output for a request that the original serves.
    fn failure(&self, asked: &Asked) -> Option<String> {
        let Asked { place, request, is_connection } = asked;
        let Some(brief) = self.answers.brief(request) else {
            if self.answers.pass_through(request) {
                return None;
            }
            return Some(format!("No listener takes {}.", in_words(request)));
        };
        if *is_connection {
            return None;
        }
        let status = match &brief.answer {
            Answer::Redirect { location, .. } => {
                let request = redirected(request, location)?;
                return self.failure(&Asked { place: place.clone(), request, is_connection: false });
            }
            Answer::NotFound { .. } if self.answers.pass_through(request) => return None,
            Answer::NotFound { .. } => 404,
            Answer::Status { status, .. } => *status,
            Answer::Forward { backends } => backends.iter().find_map(|backend| match backend.target {
                Target::Status { status } => Some(status),
                Target::Service { .. }
                | Target::Redirect {}
                | Target::Rejected { .. }
                | Target::Unknown {} => None,
            })?,
            Answer::Preflight { .. } | Answer::Connection { .. } | Answer::Closed { .. } => return None,
        };
        let is_failure = FAILURES.contains(&status) && !self.is_meant(&brief, status);
        (is_failure && self.is_own(place, brief.source.as_ref()))
            .then(|| format!("{} gets {status}.", in_words(request)))
    }

    /// Whether a decision is that of a rule of the place, or of none.
    fn is_own(&self, place: &Place, source: Option<&Source>) -> bool {
        let Some(source) = source else { return true };
        let Some(key) = self.names.get(&source.object) else { return false };
        let is_below = |one: &Place| one.object == place.object && one.field.starts_with(&place.field);
        self.traced.places(key, &source.field).iter().any(is_below)
    }

    /// Whether the output asks for the status of an answer.
    fn is_meant(&self, brief: &BriefAnswer<'_>, status: u16) -> bool {
        let of_rule = || {
            let source = brief.source.as_ref()?;
            let key = *self.names.get(&source.object)?;
            let filters =
                self.traced.object(key)?.pointer(&format!("/spec/rules/{}/filters", source.rule?))?;
            let mut names = filters
                .as_array()?
                .iter()
                .filter_map(|filter| filter.pointer("/extensionRef/name")?.as_str());
            let asks = |name: &str| {
                let key = ObjectKey::new(Kind::HttpRouteFilter, key.name.namespace.clone(), name);
                let written =
                    self.traced.object(&key)?.pointer("/spec/directResponse/statusCode")?.as_u64()?;
                (written == u64::from(status)).then_some(())
            };
            names.find_map(asks)
        };
        brief.is_injected || of_rule().is_some()
    }
}

/// The request behind a redirect of one in plaintext to HTTPS.
fn redirected(request: &Request, location: &str) -> Option<Request> {
    let url = location.strip_prefix("https://")?;
    let is_own = url.split(['/', '?']).next() == Some(&request.host);
    (is_own && !request.https).then(|| Request { https: true, ..request.clone() })
}

/// A request in a sentence.
fn in_words(request: &Request) -> String {
    let Request { method, https, host, path, headers, .. } = request;
    let scheme = if *https { "https" } else { "http" };
    // The values may be secret.
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let with = if names.is_empty() { String::new() } else { format!(" with {}", names.join(", ")) };
    format!("{method} {scheme}://{host}{path}{with}")
}
