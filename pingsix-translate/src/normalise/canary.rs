//! Canary Ingresses (ingress-nginx), whose paths take a part of the requests of another Ingress.

use std::sync::Arc;

use k8s_openapi::api::networking::v1 as api;

use super::{Condition, Conditions, Expectation, Match, Rule, Variable};
use crate::annotations::CanaryShare;
use crate::normalise::BackendRef;

/// A canary Ingress: its paths by host, and the share that they take.
#[derive(Clone, Debug)]
pub(crate) struct Canary {
    pub(crate) share: CanaryShare,
    pub(crate) rules: Vec<api::IngressRule>,
}

impl Canary {
    /// The path of the canary for a path of another Ingress: the same host, path and type.
    pub(super) fn path(
        &self,
        host: Option<&str>,
        path: &api::HTTPIngressPath,
    ) -> Option<&api::HTTPIngressPath> {
        let rules = self
            .rules
            .iter()
            .filter(|rule| rule.host.as_deref().unwrap_or_default() == host.unwrap_or_default());
        let mut paths = rules.filter_map(|rule| rule.http.as_ref()).flat_map(|http| &http.paths);
        paths.find(|own| own.path == path.path && own.path_type == path.path_type)
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
