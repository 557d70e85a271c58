//! Services: the plugins that many Routes share. PingSIX builds the plugins of a service once, and those of a Route for each
//! Route at every change (`src/proxy/route.rs`).
//!
//! All Routes that answer one status themselves have one service, and all Routes with one chain of policies. Other Routes may
//! have one with equal filters ([`super::filters`]).
//!
//! The id of a service stands for the identities of its policies. So a Route keeps its document while the contents of a
//! policy change, such as the keys of a Secret. The upstream is constant and never used, because each Route has its own: an
//! upstream with endpoints would have PingSIX rebuild the service with every endpoint (`src/proxy/control_plane.rs`).

use std::sync::Arc;

use super::filters::service;
use super::id::{Ids, Name};
use super::lowering::Lowering;
use super::plane::RuleRef;
use crate::backends::Target;
use crate::model::Provenance;
use crate::normalise::DirectResponse;
use crate::pingsix::{Document, Plugins};
use crate::policy::{ChainError, Credentials, EvaluatedChain, Policies, PolicyChain};

/// The id of the service of policies.
pub(super) fn id_of_policies(chain: &PolicyChain, ids: &mut Ids) -> String {
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

/// The service of a status, and its provenance.
pub(super) fn of_status(status: u16) -> (Document, Provenance) {
    let plugins = Plugins::default().with(&DirectResponse::status(status).lower());
    (service(plugins), Provenance::Status { status: Some(status) })
}

/// The service of policies, and its provenance.
pub(super) fn of_policies(chain: &PolicyChain, policies: &Policies) -> (Document, Provenance) {
    let provenance = Provenance::Policies { policies: policies.plugin_names(chain).collect() };
    (service(policies.plugins(chain)), provenance)
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
