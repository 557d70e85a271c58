//! The sources that a message of PingSIX names.

use std::collections::BTreeSet;

use std::sync::Arc;

use pingsix_translate::pingsix::validate::referring;
use pingsix_translate::pingsix::{DocumentKey, ResourceKind};
use pingsix_translate::{CertificateReference, DataPlane, Kind, ObjectKey, Origin, Provenance, Section};

/// The sources of the documents that a message of PingSIX names. The ids in the message are a hint and no proof.
pub(crate) fn named_sources(message: &str, plane: &DataPlane) -> BTreeSet<Origin> {
    let is_of_id = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let words = message.split(|character| !is_of_id(character)).map(|word| word.trim_matches('.'));
    let keys: BTreeSet<DocumentKey> = words
        .filter(|word| !word.is_empty())
        .flat_map(|word| {
            [
                ResourceKind::Route,
                ResourceKind::Service,
                ResourceKind::Upstream,
                ResourceKind::GlobalRule,
                ResourceKind::Ssl,
            ]
            .map(|kind| DocumentKey::new(kind, word))
        })
        .collect();
    keys.iter()
        .flat_map(|key| match plane.provenance.get(key) {
            // The rules whose filters the service has.
            Some(Provenance::Filters) => {
                let routes = referring(&plane.config, key);
                routes.filter_map(|route| plane.provenance.get(route)).flat_map(sources).collect()
            }
            Some(provenance) => sources(provenance),
            None => Vec::new(),
        })
        .collect()
}

fn sources(provenance: &Provenance) -> Vec<Origin> {
    let whole = |object: &Arc<ObjectKey>| vec![Origin::object(object.clone())];
    match provenance {
        Provenance::Rules { decisions, redirect, .. } => {
            let decisive = decisions.iter().filter_map(|decision| decision.origin.as_ref());
            redirect.as_deref().into_iter().chain(decisive).map(rule_of).collect()
        }
        Provenance::Backend { service, .. } => whole(service),
        Provenance::Policies { policies } => {
            policies.iter().map(|(policy, _)| Origin::object(policy.clone())).collect()
        }
        Provenance::Certificate { secret, by } => {
            let origins = by.iter().map(|by| match &**by {
                CertificateReference::Listener { .. } => Origin::object(secret.clone()),
                by @ CertificateReference::Ingress { .. } => by.origin(),
            });
            origins.collect()
        }
        Provenance::Telemetry { proxies } => proxies.iter().cloned().map(Origin::object).collect(),
        Provenance::Guard { .. } | Provenance::Status { .. } | Provenance::Redirect | Provenance::Filters => {
            Vec::new()
        }
    }
}

/// The rule of a route that a match belongs to; of an Ingress, each path is one.
fn rule_of(origin: &Origin) -> Origin {
    let section = match origin.section {
        Section::Match { rule, .. } if origin.object.kind != Kind::Ingress => Section::Rule(rule),
        section @ (Section::Whole
        | Section::Rule(_)
        | Section::Match { .. }
        | Section::DefaultBackend
        | Section::Tls(_)) => section,
    };
    Origin { object: origin.object.clone(), section }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture;

    #[test]
    fn a_service_of_filters_names_the_rules_that_have_them() {
        let routes = [("a", "one"), ("b", "one"), ("c", "one"), ("d", "other")].map(|(name, value)| {
            let set = json!({"set": [{"name": "x-team", "value": value}]});
            let mut rule = fixture::rule("/", "a");
            rule["filters"] = json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": set}]);
            (name, json!({"hostnames": [format!("{name}.test")], "rules": [rule]}))
        });
        let (_, plane) = fixture::plane(&routes);
        let service = plane.provenance.iter().find(|(_, origin)| **origin == Provenance::Filters).unwrap().0;
        let named = named_sources(&format!("Service '{}' is wrong", service.id), &plane);
        let named: Vec<String> = named.iter().map(|source| source.object.to_string()).collect();
        assert_eq!(named, ["HTTPRoute infra/a", "HTTPRoute infra/b", "HTTPRoute infra/c"]);
    }
}
