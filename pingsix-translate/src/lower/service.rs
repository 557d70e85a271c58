//! Chains of policies to services, shared by all Routes with the same chain.
//!
//! The id of a service stands for the identities of its policies. So a Route keeps its document while the contents of a
//! policy change, such as the keys of a Secret. The upstream is constant and never used, because each Route has its own: an
//! upstream with endpoints would have PingSIX rebuild the service with every endpoint (`src/proxy/control_plane.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::id::{Ids, Name};
use super::lowering::Lowering;
use super::plane::RuleRef;
use super::upstream::NOWHERE;
use crate::backends::Target;
use crate::model::Provenance;
use crate::normalise::pattern_charge_of_policies;
use crate::pingsix::{Document, DocumentKey, ResourceKind, Service, Upstream, listed_bytes};
use crate::policy::{ChainError, Credentials, EvaluatedChain, Policies, PolicyChain};

/// The id of the service of a chain.
pub(super) fn id_of_service(chain: &PolicyChain, ids: &mut Ids) -> String {
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

/// The service of a chain, and where it comes from.
pub(super) fn write_service(chain: &PolicyChain, policies: &Policies) -> (Service, Provenance) {
    let nodes = BTreeMap::from([(NOWHERE.to_owned(), 1)]);
    let service = Service {
        plugins: policies.plugins(chain),
        upstream: Some(Box::new(Upstream { nodes, ..Upstream::default() })),
        ..Service::default()
    };
    (service, Provenance::Policies { policies: policies.plugin_names(chain).collect() })
}

/// Bytes of the service of a chain in a list response, with the charge for the memory of its patterns.
pub(super) fn service_bytes(chain: &PolicyChain, policies: &Policies, prefix: usize) -> usize {
    // An id that collided.
    let key = DocumentKey { kind: ResourceKind::Service, id: "s".repeat(25) };
    let service = write_service(chain, policies).0;
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
