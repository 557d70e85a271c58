//! Tables closed by the rule that makes PingSIX's answers independent of the order of insertion.

use std::collections::BTreeSet;

use pingsix_translate::pingsix::{Config, Route};

use super::tables::answering;
use crate::rng::SeededRng;

const HOSTS: [&str; 8] = ["a.t", "b.a.t", "c.a.t", "x.b.a.t", "*.t", "*.a.t", "*.b.a.t", "d.u"];

const PREFIXES: [&str; 9] = ["/", "/a", "/a/b", "/a/b/c", "/ab", "/b", "/a//b", "/a%2Fb", "/A"];

const METHODS: [&str; 4] = ["GET", "POST", "HEAD", "PURGE"];

/// One rule for one host: it becomes one route.
struct Rule {
    host: Option<String>,
    /// The rule's own patterns, then, once closed, those of others that they cover.
    uris: BTreeSet<Pattern>,
    methods: Vec<String>,
    priority: u32,
}

/// A path pattern; the order is that of insertion: exact ones, then catch-alls, the longest first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Pattern {
    catch_all: bool,
    shortness: usize,
    literal: String,
}

impl Pattern {
    fn new(literal: &str, catch_all: bool) -> Self {
        Self { catch_all, shortness: usize::MAX - literal.len(), literal: literal.to_owned() }
    }

    fn covers(&self, other: &Self) -> bool {
        let longer = other.literal.len() > self.literal.len();
        self.catch_all && self != other && longer && other.literal.starts_with(&self.literal)
    }

    fn text(&self) -> String {
        format!("{}{}", self.literal, if self.catch_all { "{*p}" } else { "" })
    }
}

fn host_covers(wide: &str, host: &str) -> bool {
    wide.strip_prefix('*')
        .is_some_and(|suffix| wide != host && host.len() > suffix.len() && host.ends_with(suffix))
}

/// Up to sixteen rules, closed.
pub(super) fn table(rng: &mut SeededRng) -> Config {
    let mut rules: Vec<Rule> = (0..2 + rng.below(15)).map(|_| rule(rng)).collect();
    let hosts: BTreeSet<String> = rules.iter().filter_map(|rule| rule.host.clone()).collect();
    let landing: Vec<Vec<String>> = rules.iter().map(|rule| hosts_of(rule, &hosts)).collect();
    close(&mut rules, &landing);
    let mut config = Config::new();
    for (index, (rule, hosts)) in rules.iter().zip(landing).enumerate() {
        let id = format!("r{index}");
        let route = Route {
            uris: rule.uris.iter().map(Pattern::text).collect(),
            hosts,
            methods: rule.methods.clone(),
            // Unique, because ties are resolved by the order.
            priority: rule.priority * 100 + u32::try_from(index).unwrap(),
            ..Route::default()
        };
        config.insert(&*id, answering(rng, &id, route));
    }
    config
}

fn rule(rng: &mut SeededRng) -> Rule {
    let host = rng.percent(80).then(|| rng.one(&HOSTS).to_owned());
    let path = rng.one(&PREFIXES);
    let exact = rng.percent(30);
    let uris = match (exact, path) {
        (true, path) => [Pattern::new(path, false)].into(),
        (false, "/") => [Pattern::new("/", false), Pattern::new("/", true)].into(),
        (false, path) => {
            let below = format!("{path}/");
            [Pattern::new(path, false), Pattern::new(&below, false), Pattern::new(&below, true)].into()
        }
    };
    let count = 1 + rng.below(2);
    let methods = if rng.percent(60) { Vec::new() } else { rng.some(count, &METHODS) };
    // Host before path before method; the exact host before any wildcard, the exact path before any prefix.
    let of_host = host.as_deref().map_or(0, |host| host.len() + if host.starts_with('*') { 1 } else { 20 });
    let of_path = path.len() + if exact { 20 } else { 0 };
    let priority = (of_host * 64 + of_path) * 2 + usize::from(!methods.is_empty());
    Rule { host, uris, methods, priority: u32::try_from(priority).unwrap() }
}

/// The hosts that a rule lists: those its own covers, exact ones first and wildcards by falling length, then its own.
fn hosts_of(rule: &Rule, all: &BTreeSet<String>) -> Vec<String> {
    let Some(own) = &rule.host else { return Vec::new() };
    let mut hosts: Vec<String> = all.iter().filter(|host| host_covers(own, host)).cloned().collect();
    hosts.sort_by_key(|host| (host.starts_with('*'), usize::MAX - host.len()));
    hosts.push(own.clone());
    hosts
}

/// Adds to every rule the patterns of its routers that its own cover, until nothing changes.
fn close(rules: &mut [Rule], landing: &[Vec<String>]) {
    let meet =
        |a: &[String], b: &[String]| (a.is_empty() && b.is_empty()) || a.iter().any(|host| b.contains(host));
    loop {
        let mut changed = false;
        for index in 0..rules.len() {
            let others: Vec<Pattern> = (0..rules.len())
                .filter(|&other| meet(&landing[index], &landing[other]))
                .flat_map(|other| rules[other].uris.iter().cloned())
                .collect();
            let own = &mut rules[index].uris;
            for pattern in others {
                if own.iter().any(|held| held.covers(&pattern)) {
                    changed |= own.insert(pattern);
                }
            }
        }
        if !changed {
            return;
        }
    }
}
