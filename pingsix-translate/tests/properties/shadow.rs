//! Rules that are said to be shadowed, against the oracle's.

use std::collections::BTreeSet;

use pingsix_translate::Layout;
use pingsix_translate::status::Reason;
use serde_json::Value;

use crate::case::{Case, Setting};
use crate::oracle::shadow::{RuleName, is_of_requests};
use crate::probe::Probe;

/// Compares the warnings with the oracle. Returns the number of shadowed rules.
///
/// # Errors
///
/// A rule that is said to be shadowed and is not, or the other way round.
pub(crate) fn compare(objects: &[Value], setting: Setting, probes: &[Probe]) -> Result<usize, String> {
    let case = Case::new(objects, setting);
    let told = told(&case);
    let is_shared = setting.layout == Layout::Shared;
    let ports: Vec<Option<u16>> =
        if is_shared { vec![None] } else { case.world.ports().into_iter().map(Some).collect() };
    let (expected, judged) = case.world.shadowed(&ports);
    if let Some(wrong) = told.difference(&expected).next() {
        return Err(format!("{wrong:?} is said to be shadowed, and some request reaches it"));
    }
    // A data plane for several ports may keep a redirect of plaintext apart from the rules for TLS.
    let missing = expected.difference(&told).find(|rule| judged.contains(*rule) && !is_shared);
    if let Some(missing) = missing {
        return Err(format!("{missing:?} is shadowed, and nothing says so"));
    }
    for port in ports {
        for probe in probes {
            let Some((name, rule)) = case.world.decide(port, probe).rule else { continue };
            let is_it = |told: &&RuleName| format!("{}/{}", told.1.0, told.1.1) == name && told.2 == rule;
            // Routes of both kinds may have one name.
            let kinds = case.world.routes.iter().filter(|route| {
                let metadata = &route.metadata;
                format!("{}/{}", metadata.namespace, metadata.name) == name
            });
            if kinds.count() == 1 && told.iter().any(|told| is_it(&told)) {
                return Err(format!(
                    "rule {rule} of {name} is said to be shadowed, and decides about {probe:?}"
                ));
            }
        }
    }
    Ok(told.len())
}

/// The rules that are said to be shadowed.
fn told(case: &Case) -> BTreeSet<RuleName> {
    let problems = case.translation.verdicts.problems.iter();
    let shadowed = problems.filter(|problem| problem.reason == Reason::Shadowed);
    let rules = shadowed.filter_map(|problem| {
        let kind = problem.object.kind.as_str();
        let field = problem.field.to_string();
        let rule = field.strip_prefix("spec.rules[")?.strip_suffix(']')?.parse().ok()?;
        let name = (problem.object.name.namespace.to_string(), problem.object.name.name.to_string());
        is_of_requests(kind).then_some((kind, name, rule))
    });
    rules.collect()
}
