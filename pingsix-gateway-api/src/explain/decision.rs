//! The decision list of a Route, step by step.

use pingsix_translate::pingsix::plugin::{SplitRule, TrafficSplit};
use pingsix_translate::pingsix::router::conditions_hold;
use pingsix_translate::pingsix::{DocumentKey, Request, Route};
use pingsix_translate::{Decision, Provenance};
use serde::Serialize;

use super::Plane;
use super::source::Source;

/// One match that is tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    /// The source of the match; `None` for the 404 at the end of a list of conditions, and for the 421 to a request that
    /// came in by another listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The result.
    #[serde(flatten)]
    pub result: StepResult,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "camelCase")]
pub(crate) enum StepResult {
    /// The step decides.
    Decides,
    /// A condition fails, so the next step is tried. One entry per spelling of the condition.
    Fails {
        /// The conditions that fail.
        conditions: Vec<FailedCondition>,
    },
    /// An earlier step decides.
    NotReached,
}

/// A condition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FailedCondition {
    /// The expected value, in words.
    pub expected: String,
    /// The value of the request; empty without one.
    pub found: String,
}

/// The steps of the list, after the redirect of requests without TLS; empty for a Route without rules. `native` is
/// whether the Route answers the request itself.
pub(super) fn steps(
    plane: &Plane<'_>,
    key: &DocumentKey,
    route: &Route,
    request: &Request,
    native: bool,
) -> Vec<Step> {
    let Some(Provenance::Rules { decisions, redirect, .. }) = plane.provenance.get(key) else {
        return Vec::new();
    };
    let rules = match route.plugins.get::<TrafficSplit>() {
        Some(Ok(split)) => split.rules,
        Some(Err(_)) | None => Vec::new(),
    };
    let mut rules = rules.as_slice();
    let mut steps = Vec::with_capacity(decisions.len());
    if let Some(origin) = redirect.as_deref().filter(|_| native && !request.tls) {
        steps.push(Step { source: Some(Source::of(origin)), result: StepResult::Decides });
    }
    let mut decided = !steps.is_empty();
    for decision in &**decisions {
        let (own, rest) = rules.split_at(decision.split_rules.min(rules.len()));
        rules = rest;
        // The rule for requests that came in by another listener is of interest only if it decides.
        let is_misdirected = decision.origin.is_none() && decision.conditional;
        if is_misdirected && !own.iter().any(|rule| conditions_hold(&rule.vars, request)) {
            continue;
        }
        let result = if decided { StepResult::NotReached } else { try_step(decision, own, request, native) };
        decided |= result == StepResult::Decides;
        steps.push(Step { source: decision.origin.as_ref().map(Source::of), result });
    }
    steps
}

fn try_step(decision: &Decision, rules: &[SplitRule], request: &Request, native: bool) -> StepResult {
    // A step without split rules is the Route's own answer.
    if native || decision.split_rules == 0 || rules.iter().any(|rule| conditions_hold(&rule.vars, request)) {
        return StepResult::Decides;
    }
    let conditions = rules.iter().filter_map(|rule| first_failing(rule, request)).collect();
    StepResult::Fails { conditions }
}

fn first_failing(rule: &SplitRule, request: &Request) -> Option<FailedCondition> {
    let failing =
        rule.vars.iter().find(|condition| !conditions_hold(std::slice::from_ref(condition), request))?;
    let [variable, operator, value, ..] = failing.as_slice() else { return None };
    let name = match (variable.strip_prefix("http_"), variable.strip_prefix("arg_")) {
        (Some(header), _) => format!("header {header}"),
        (None, Some(parameter)) => format!("query parameter {parameter}"),
        (None, None) => variable.clone(),
    };
    let expected = match (operator.as_str(), value.as_str()) {
        ("!=", "") => format!("{name} is present"),
        ("!=", value) => format!("{name} is not \"{value}\""),
        (_, value) => format!("{name} is \"{value}\""),
    };
    Some(FailedCondition { expected, found: request.variable(variable) })
}
