//! Services: the plugins that many Routes share. PingSIX builds the plugins of a service once, and those of a Route for each
//! Route at every change (`src/proxy/route.rs`).
//!
//! All Routes that answer one status themselves have one service, and all Routes with one chain of policies.
//!
//! The id of a service stands for the identities of its policies. So a Route keeps its document while the contents of a
//! policy change, such as the keys of a Secret. The upstream is constant and never used, because each Route has its own: an
//! upstream with endpoints would have PingSIX rebuild the service with every endpoint (`src/proxy/control_plane.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::id::{Ids, Name};
use super::lowering::Lowering;
use super::plane::RuleRef;
use super::upstream::NOWHERE;
use crate::backends::Target;
use crate::model::{ObjectKey, Provenance};
use crate::normalise::{DirectResponse, pattern_charge_of_policies};
use crate::pingsix::{Document, DocumentKey, Plugins, ResourceKind, Service, Upstream, listed_bytes};
use crate::policy::{ChainError, Credentials, EvaluatedChain, Policies, PolicyChain};

/// The contents of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServiceKey {
    /// A status as the answer, before a request would reach a backend.
    Status(u16),
    /// The policies of rules.
    Policies(Arc<PolicyChain>),
}

impl ServiceKey {
    /// Whether one of these policies has a part in the service.
    pub(super) fn has_any(&self, policies: &BTreeSet<Arc<ObjectKey>>) -> bool {
        match self {
            Self::Status(_) => false,
            Self::Policies(chain) => chain.has_any(policies),
        }
    }
}

/// The id of a service.
pub(super) fn id_of_service(key: &ServiceKey, ids: &mut Ids) -> String {
    let chain = match key {
        ServiceKey::Status(status) => return format!("status-{status}"),
        ServiceKey::Policies(chain) => chain,
    };
    let of_policies = chain
        .policies
        .iter()
        .flat_map(|policy| [policy.kind.as_str(), &*policy.name.namespace, &*policy.name.name]);
    let of_credentials = match chain.credentials {
        Credentials::OfAll => None,
        Credentials::NotOfAnnotations => Some("without credentials"),
    };
    let attributes: Vec<&str> = of_policies.chain(of_credentials).collect();
    ids.assign(&Name::new('s', &attributes))
}

/// A service, and where it comes from.
pub(super) fn write_service(key: &ServiceKey, policies: &Policies) -> (Service, Provenance) {
    let (plugins, provenance) = match key {
        ServiceKey::Status(status) => (
            Plugins::default().with(&DirectResponse::status(*status).lower()),
            Provenance::Status { status: Some(*status) },
        ),
        ServiceKey::Policies(chain) => (
            policies.plugins(chain),
            Provenance::Policies { policies: policies.plugin_names(chain).collect() },
        ),
    };
    let nodes = BTreeMap::from([(NOWHERE.to_owned(), 1)]);
    let upstream = Some(Box::new(Upstream { nodes, ..Upstream::default() }));
    (Service { plugins, upstream, ..Service::default() }, provenance)
}

/// Bytes of a service in a list response, with the charge for the memory of its patterns.
pub(super) fn service_bytes(key: &ServiceKey, policies: &Policies, prefix: usize) -> usize {
    let service = write_service(key, policies).0;
    // An id that collided.
    let key = DocumentKey { kind: ResourceKind::Service, id: "s".repeat(25) };
    let patterns = pattern_charge_of_policies(&service.plugins);
    prefix + listed_bytes(&key, &Document::Service(service).into()) + patterns
}

impl<'a> Lowering<'a> {
    /// The chain of a rule in a zone; `None` for a rule that sends nothing to a backend, which nothing protects.
    pub(super) fn chain(
        &self,
        rule: RuleRef,
        zone: usize,
    ) -> Result<Option<&'a Arc<EvaluatedChain>>, ChainError<'a>> {
        let input: &'a super::RouteInput = &self.routes[rule.route];
        let resolved = &input.rules[rule.rule];
        if !resolved.action.targets.iter().any(|(target, _)| matches!(target, Target::Backend(_))) {
            return Ok(None);
        }
        let listeners = self.plane.zones[zone].listeners.iter().copied();
        resolved.chains.of_listeners(listeners.filter(|listener| input.is_attached_to(*listener)))
    }
}
