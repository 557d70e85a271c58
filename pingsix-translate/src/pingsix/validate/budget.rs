//! The two budgets of a configuration: bytes and matcher entries.

use super::{Rule, Severity, Subject, ValidateOptions, Violation};
use crate::pingsix::{Config, Route};

/// The largest list response that PingSIX can read, in bytes: the decode limit of its etcd client.
pub const BYTES_LIMIT: usize = 4 * 1024 * 1024;

/// The default budget in bytes, 3.5 MiB, which leaves room for differences between estimates.
pub const BYTES_BUDGET: usize = 3_670_016;

/// The default budget in matcher entries.
pub const ENTRIES_BUDGET: usize = 1_000_000;

/// The matcher entries of a configuration: for each route, hosts times paths.
pub fn matcher_entries(config: &Config) -> usize {
    config
        .routes()
        .map(|(_, route)| entries(config.hosts_of(route).len(), route))
        .fold(0, usize::saturating_add)
}

/// The matcher entries of a Route with so many hosts. A Route without hosts counts as one with one.
fn entries(hosts: usize, route: &Route) -> usize {
    hosts.max(1).saturating_mul(route.path_patterns().len())
}

/// The matcher entries of a Route, without the hosts of its service.
pub(super) fn own_entries(route: &Route) -> usize {
    entries(route.host_patterns().len(), route)
}

pub(super) fn check(
    config: &Config,
    bytes: usize,
    options: &ValidateOptions,
    violations: &mut Vec<Violation>,
) {
    let mut over = |rule, severity, message| {
        let field = String::new();
        violations.push(Violation { subject: Subject::Configuration, field, severity, rule, message });
    };
    if bytes >= BYTES_LIMIT {
        let message = format!("The documents take {bytes} bytes, and PingSIX reads at most {BYTES_LIMIT}.");
        over(Rule::Bytes, Severity::Fatal, message);
    } else if bytes > options.bytes_budget {
        let budget = options.bytes_budget;
        let message = format!("The documents take {bytes} bytes, more than the budget of {budget}.");
        over(Rule::Bytes, Severity::Misbehaves, message);
    }
    let entries = matcher_entries(config);
    if entries > options.entries_budget {
        let budget = options.entries_budget;
        let message = format!("The routes make {entries} matcher entries, more than the budget of {budget}.");
        over(Rule::MatcherEntries, Severity::Misbehaves, message);
    }
}
