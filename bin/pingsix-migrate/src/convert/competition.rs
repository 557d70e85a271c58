//! Rules that want the requests of one host and path: which of them cannot be written.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::parent::Section;
use super::rules::{Document, Rule};
use crate::objects::label;
use crate::plugin::Effects;
use crate::report::{Reason, Report};

/// The most pairs of matches for one host and path, of different rules, that are compared.
const MAX_COMPARED_PAIRS: usize = 16_384;

/// The order of two matches of one host and path in Gateway API: the smaller one comes first.
fn rank(one: &Value) -> (bool, std::cmp::Reverse<usize>, std::cmp::Reverse<usize>) {
    let count = |field: &str| one.get(field).and_then(Value::as_array).map_or(0, Vec::len);
    (
        one.get("method").is_none(),
        std::cmp::Reverse(count("headers")),
        std::cmp::Reverse(count("queryParams")),
    )
}

/// Whether a request may have both matches.
fn overlap(one: &Value, other: &Value) -> bool {
    let differ = |field: &str| {
        let (Some(one), Some(other)) = (one.get(field), other.get(field)) else { return false };
        one != other
    };
    if differ("method") {
        return false;
    }
    let items = |value: &Value, field: &str| -> Vec<(String, String)> {
        let items = value.get(field).and_then(Value::as_array).into_iter().flatten();
        items
            .filter_map(|item| {
                let name = item.get("name")?.as_str()?.to_ascii_lowercase();
                Some((name, item.get("value")?.as_str()?.to_owned()))
            })
            .collect()
    };
    !["headers", "queryParams"].iter().any(|field| {
        let others: BTreeMap<String, String> = items(other, field).into_iter().collect();
        items(one, field).iter().any(|(name, value)| others.get(name).is_some_and(|other| other != value))
    })
}

/// The place of a match: the indices of document, rule and match.
type MatchPlace = (usize, usize, usize);

/// The matches by host and path.
fn competitors(documents: &[Document]) -> BTreeMap<(String, String), Vec<MatchPlace>> {
    let mut competitors: BTreeMap<(String, String), Vec<MatchPlace>> = BTreeMap::new();
    let every_host = [String::from("*")];
    // Redirects to HTTPS are beside the rules that they belong to.
    let served = documents.iter().enumerate().filter(|(_, document)| document.section != Section::Http);
    for (at, document) in served {
        let hosts = if document.hosts.is_empty() { &every_host[..] } else { &document.hosts[..] };
        for (index, rule) in document.rules.iter().enumerate() {
            for (number, one) in rule.matches.iter().enumerate() {
                let path = one.get("path").map(Value::to_string).unwrap_or_default();
                for host in hosts {
                    competitors.entry((host.clone(), path.clone())).or_default().push((at, index, number));
                }
            }
        }
    }
    competitors
}

fn rule_at<'a>(documents: &'a [Document], (at, index, _): &MatchPlace) -> Option<&'a Rule> {
    documents.get(*at)?.rules.get(*index)
}

/// Whether a match comes before another one in Gateway API.
fn comes_first(documents: &[Document], first: &MatchPlace, second: &MatchPlace) -> bool {
    let key = |place: &MatchPlace| {
        let one = rule_at(documents, place).and_then(|rule| rule.matches.get(place.2)).map(rank);
        let name = documents.get(place.0).map(|document| (&document.namespace, &document.name));
        (one, name, place.1)
    };
    key(first) < key(second)
}

/// Whether a match has conditions beside path and method.
fn is_conditional(documents: &[Document], place: &MatchPlace) -> bool {
    let matched = rule_at(documents, place).and_then(|rule| rule.matches.get(place.2));
    matched.is_some_and(|one| one.get("headers").is_some() || one.get("queryParams").is_some())
}

/// The number of pairs of matches that belong to different rules.
fn pairs(places: &[MatchPlace]) -> usize {
    let mut own: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (at, index, _) in places {
        *own.entry((*at, *index)).or_default() += 1;
    }
    let square = |count: usize| count.saturating_mul(count);
    square(places.len()).saturating_sub(own.into_values().map(square).sum())
}

/// The pairs of matches of one host and path that a request may both have, with a message for the first pair of a rule.
/// `choose` returns the rule of a pair that cannot be written.
fn refused_pairs(
    documents: &[Document],
    may_differ: impl Fn(&[MatchPlace]) -> bool,
    choose: impl Fn(&MatchPlace, &MatchPlace) -> Option<MatchPlace>,
) -> BTreeMap<(usize, usize), Option<MatchPlace>> {
    let mut refused = BTreeMap::new();
    for places in competitors(documents).values().filter(|places| may_differ(places)) {
        if pairs(places) > MAX_COMPARED_PAIRS {
            refused.extend(places.iter().map(|(at, index, _)| ((*at, *index), None)));
            continue;
        }
        for first in places {
            for second in places.iter().filter(|second| (first.0, first.1) != (second.0, second.1)) {
                let matches = [first, second].map(|place| rule_at(documents, place)?.matches.get(place.2));
                let [Some(one), Some(other)] = matches else { continue };
                if !overlap(one, other) {
                    continue;
                }
                if let Some(victim) = choose(first, second) {
                    let cause = if victim == *first { *second } else { *first };
                    refused.entry((victim.0, victim.1)).or_insert(Some(cause));
                }
            }
        }
    }
    refused
}

/// Refuses rules that come before others of a higher priority: they would take requests of those.
pub(super) fn compare_priorities(documents: &mut [Document], report: &mut Report) {
    let priority = |place: &MatchPlace| rule_at(documents, place).map(|rule| rule.priority);
    let refused = refused_pairs(
        documents,
        |places| places.iter().map(priority).min() != places.iter().map(priority).max(),
        |high, low| {
            let is_wrong = priority(high) > priority(low) && !comes_first(documents, high, low);
            is_wrong.then_some(*low)
        },
    );
    let why = "has the same path and a higher priority, but HTTPRoutes would put this rule first.";
    refuse(documents, refused, ("priority", why), report);
}

/// The plugins that PingSIX runs on all requests of one host, path and method.
#[derive(PartialEq)]
struct Plugins<'a> {
    security: &'a Map<String, Value>,
    traffic: &'a Map<String, Value>,
    filters: &'a [Value],
    rewrite: [Option<&'a Value>; 2],
    hostname: Option<&'a String>,
}

fn plugins(rule: &Rule) -> Plugins<'_> {
    let Effects { filters, hostname, path, regex, response, redirect, security, traffic, .. } = &rule.effects;
    if response.is_some() || redirect.is_some() {
        return Plugins { security, traffic, filters: &[], rewrite: [None, None], hostname: None };
    }
    Plugins {
        security,
        traffic,
        filters,
        rewrite: [path.as_ref(), regex.as_ref()],
        hostname: hostname.as_ref(),
    }
}

/// Refuses the rule with more conditions where two rules of one path have different plugins.
pub(super) fn compare_plugins(documents: &mut [Document], report: &mut Report) {
    let refused = refused_pairs(
        documents,
        |places| {
            let mut rules = places.iter().filter_map(|place| rule_at(documents, place));
            let first = rules.next().map(plugins);
            rules.any(|rule| first != Some(plugins(rule)))
        },
        |first, second| {
            let rules = [first, second].map(|place| rule_at(documents, place).map(plugins));
            let differ = rules.first() != rules.last();
            // Without conditions, the first rule takes all requests of its path and method.
            (differ && is_conditional(documents, first) && comes_first(documents, first, second))
                .then_some(*first)
        },
    );
    let why = "has the same path and other plugins, and PingSIX runs the same plugins for all rules of one path and method.";
    refuse(documents, refused, ("match", why), report);
}

/// Takes rules out of the documents, with the rule that is the cause of each.
fn refuse(
    documents: &mut [Document],
    refused: BTreeMap<(usize, usize), Option<MatchPlace>>,
    (field, why): (&str, &str),
    report: &mut Report,
) {
    for ((at, index), cause) in refused {
        let cause = cause.and_then(|place| rule_at(documents, &place)).cloned();
        let message = match &cause {
            Some(cause) => {
                format!("The rule {} of {} {why}", label(&cause.name, "without a name"), cause.place.object)
            }
            None => "Too many rules have the path to compare all of them.".to_owned(),
        };
        let Some(rule) = documents.get_mut(at).and_then(|document| document.rules.get_mut(index)) else {
            continue;
        };
        report.blocking(&rule.place.at(field), Reason::Precedence, message);
        if rule.may_be_weaker {
            continue;
        }
        if rule.effects.protects {
            let message = "The rule is not written. A rule in its place answers 503.";
            report.withhold_until_named(&rule.place, message);
            rule.refuse();
            // PingSIX runs the plugins of the other rule on these requests, too.
            if let Some(cause) = cause {
                rule.effects.security = cause.effects.security;
                rule.effects.traffic = cause.effects.traffic;
            }
        } else {
            report.withhold_until_named(&rule.place, "The rule is not written.");
            rule.matches.clear();
        }
    }
}
