//! Objects that shape documents beside the object from which a document comes: the policies of a Service, and the
//! HTTPRouteFilters of a rule.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::pingsix::{DocumentKey, ResourceKind};
use pingsix_translate::snapshot::{HttpRoute, Objects};
use pingsix_translate::status::{ConditionType, PolicyVerdict};
use pingsix_translate::{Kind, ObjectKey, ObjectName, Provenance, SharedMap};

/// The objects, by the objects that documents come from.
#[derive(Debug, Default)]
pub(crate) struct RelatedObjects {
    /// The accepted policies of each Service.
    policies: BTreeMap<ObjectName, Vec<ServicePolicy>>,
    /// The names of the ports of each Service.
    ports: BTreeMap<(ObjectName, i32), String>,
    /// The HTTPRouteFilters of each rule.
    filters: BTreeMap<(ObjectName, usize), Vec<ObjectKey>>,
}

#[derive(Debug)]
struct ServicePolicy {
    policy: ObjectKey,
    /// The name of the port, for a policy of one port.
    port: Option<String>,
}

impl RelatedObjects {
    /// Indexes objects. `is_accepted` is whether a policy counts.
    pub(crate) fn new(objects: &Objects, is_accepted: impl Fn(&ObjectKey) -> bool) -> Self {
        let mut related = Self::default();
        for (name, service) in objects.services() {
            for port in &*service.ports {
                if let Some(port_name) = &port.name {
                    related.ports.insert((name.clone(), port.port), port_name.to_string());
                }
            }
        }
        for policy in objects.policies().filter(|policy| is_accepted(&policy.key())) {
            let key = policy.key();
            for target in policy.target_refs().into_iter().filter(|target| target.kind == "Service") {
                let service = ObjectName::new(key.name.namespace.clone(), target.name);
                let port = target.section_name.map(str::to_owned);
                related
                    .policies
                    .entry(service)
                    .or_default()
                    .push(ServicePolicy { policy: key.clone(), port });
            }
        }
        // Hardly any route has one, and each spec takes time to decode.
        for (name, route) in objects.http_routes().filter(|(_, route)| !route.filters().is_empty()) {
            related.add_filters(name, route);
        }
        related
    }

    fn add_filters(&mut self, name: &ObjectName, route: &HttpRoute) {
        for (index, rule) in route.spec().rules.iter().flatten().enumerate() {
            let references = rule.filters.iter().flatten().filter_map(|filter| filter.extension_ref.as_ref());
            let filters = references.filter(|reference| reference.kind == Kind::HttpRouteFilter.as_str());
            let filters = filters.map(|reference| {
                ObjectKey::new(Kind::HttpRouteFilter, name.namespace.clone(), &*reference.name)
            });
            let filters: Vec<ObjectKey> = filters.collect();
            if !filters.is_empty() {
                self.filters.insert((name.clone(), index), filters);
            }
        }
    }

    /// The objects that shape a document, which is named by its key below the prefix.
    pub(crate) fn of_document(
        &self,
        documents: &SharedMap<DocumentKey, Provenance>,
        key: &str,
    ) -> Vec<String> {
        let key = key
            .split_once('/')
            .and_then(|(kind, id)| Some(DocumentKey::new(ResourceKind::from_segment(kind)?, id)));
        let provenance = key.and_then(|key| documents.get(&key));
        provenance.map(|provenance| self.of(provenance)).unwrap_or_default()
    }

    /// The objects that shape a document with this provenance.
    fn of(&self, provenance: &Provenance) -> Vec<String> {
        let mut objects: BTreeSet<&ObjectKey> = BTreeSet::new();
        if let Provenance::Backend { service, port } = provenance {
            objects = self.of_port(&service.name, *port);
        } else if let Provenance::Rules { decisions, .. } = provenance {
            let origins = decisions.iter().filter_map(|decision| decision.origin.as_ref());
            let rules = origins.filter(|origin| origin.object.kind == Kind::HttpRoute);
            let rules = rules.filter_map(|origin| Some((origin.object.name.clone(), origin.section.rule()?)));
            objects.extend(rules.filter_map(|rule| self.filters.get(&rule)).flatten());
        }
        objects.into_iter().map(ToString::to_string).collect()
    }

    /// The policies of a port. A policy of the port replaces those of the whole Service, for each kind.
    fn of_port(&self, service: &ObjectName, port: i32) -> BTreeSet<&ObjectKey> {
        let name = self.ports.get(&(service.clone(), port));
        let policies = self.policies.get(service).into_iter().flatten();
        let policies: Vec<&ServicePolicy> =
            policies.filter(|policy| policy.port.is_none() || policy.port.as_ref() == name).collect();
        let is_replaced = |policy: &ServicePolicy| {
            policy.port.is_none()
                && policies
                    .iter()
                    .any(|other| other.port.is_some() && other.policy.kind == policy.policy.kind)
        };
        policies.iter().filter(|policy| !is_replaced(policy)).map(|policy| &policy.policy).collect()
    }
}

/// Whether a policy is accepted through any of these verdicts.
pub fn is_accepted(verdicts: &[PolicyVerdict]) -> bool {
    verdicts.iter().any(|verdict| verdict.conditions.is_true(ConditionType::Accepted))
}
