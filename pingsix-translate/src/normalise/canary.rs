//! Canary Ingresses (ingress-nginx), whose paths take a part of the requests of another Ingress.

use std::sync::Arc;

use k8s_openapi::api::networking::v1 as api;

use super::{Condition, Conditions, Expectation, Match, Rule, Variable};
use crate::annotations::CanaryShare;
use crate::normalise::BackendRef;

/// The type of paths that are exact.
const EXACT: &str = "Exact";

/// A canary Ingress: its paths by host, and the share that they take.
#[derive(Clone, Debug)]
pub(crate) struct Canary {
    pub(crate) share: CanaryShare,
    pub(crate) rules: Vec<api::IngressRule>,
}

/// A path by its host, its text, and whether it is exact. ingress-nginx takes all others for prefixes
/// (`SetDefaultNGINXPathType` of `internal/k8s/main.go`).
pub(crate) type PathKey<'p> = (&'p str, &'p str, bool);

/// The key of a path. A canary takes requests of paths with the same one.
pub(crate) fn path_key<'p>(host: Option<&'p str>, path: &'p api::HTTPIngressPath) -> PathKey<'p> {
    (host.unwrap_or_default(), path.path.as_deref().unwrap_or_default(), path.path_type == EXACT)
}

impl Canary {
    /// The path of the canary for a path of another Ingress.
    pub(super) fn path(
        &self,
        host: Option<&str>,
        path: &api::HTTPIngressPath,
    ) -> Option<&api::HTTPIngressPath> {
        let wanted = path_key(host, path);
        self.rules.iter().find_map(|rule| {
            let mut paths = rule.http.iter().flat_map(|http| &http.paths);
            paths.find(|own| path_key(rule.host.as_deref(), own) == wanted)
        })
    }
}

/// Divides the requests of a rule: the rules for the values of a header, and the rest.
pub(super) fn divide(rule: Rule, canary: &CanaryShare, backends: &[BackendRef]) -> Vec<Rule> {
    let mut rules = Vec::with_capacity(3);
    if let Some((name, value)) = &canary.header {
        let mut with = |value: &str, backends: Box<[BackendRef]>| {
            let matches = rule.matches.iter().map(|matched| {
                let condition = Condition {
                    variable: Variable::Header(name.clone()),
                    expectation: Expectation::Equals(value.to_owned()),
                };
                let conditions: Vec<Condition> =
                    matched.conditions.iter().cloned().chain([condition]).collect();
                Match { conditions: Conditions::from(conditions), ..matched.clone() }
            });
            let matches: Arc<[Match]> = matches.collect();
            rules.push(Rule { matches, backends, ..rule.clone() });
        };
        if let Some(value) = value {
            with(value, backends.into());
        } else {
            with("always", backends.into());
            with("never", rule.backends.clone());
        }
    }
    let weighted = |backends: &[BackendRef], weight: u32| -> Vec<BackendRef> {
        backends
            .iter()
            .map(|backend| BackendRef { weight: backend.weight * weight, ..backend.clone() })
            .collect()
    };
    if canary.weight == 0 {
        rules.push(rule);
    } else {
        let mut all = weighted(&rule.backends, canary.total - canary.weight);
        all.extend(weighted(backends, canary.weight));
        rules.push(Rule { backends: all.into(), ..rule });
    }
    rules
}
