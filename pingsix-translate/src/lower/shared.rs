//! Documents that Routes share: upstreams and services.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::filters::{id_of_filters, of_filters};
use super::id::Ids;
use super::lowering::Lowering;
use super::service::{id_of_policies, of_policies, of_status as service_of_status};
use super::upstream::{id_of_backend, nowhere, of_backend, of_redirect, of_status};
use crate::backends::{Action, Target};
use crate::model::{ObjectKey, Provenance};
use crate::normalise::pattern_charge_of_policies;
use crate::pingsix::{Document, DocumentKey, ResourceKind, listed_bytes};
use crate::policy::PolicyChain;
use crate::small_set::SmallSet;

/// The attributes that a shared document stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SharedKey {
    /// The upstream of a target.
    Upstream(Target),
    /// The upstream of Routes that answer before they would reach one.
    Nowhere,
    /// The service of Routes that answer a status before a request would reach a backend.
    Status(u16),
    /// The service of the policies of rules.
    Policies(Arc<PolicyChain>),
    /// The service of Routes with equal filters, by the JSON of the plugins. It exists if enough Routes have them.
    Filters(Arc<str>),
}

/// The shared documents that a Route uses.
pub(super) type Uses = SmallSet<SharedKey>;

/// The step of the charges of upstreams, in bytes. So most changes of a few endpoints change no charge.
const UPSTREAM_STEP: usize = 64;

impl SharedKey {
    /// The documents that the Routes of an action may need.
    pub(super) fn of_action(action: &Action) -> impl Iterator<Item = Self> + '_ {
        action.targets.iter().flat_map(|&(target, _)| {
            let (nowhere, service) = match target {
                Target::Backend(_) => (None, None),
                Target::Status(status) => (Some(Self::Nowhere), Some(Self::Status(status))),
                Target::Redirect => (Some(Self::Nowhere), None),
            };
            std::iter::once(Self::Upstream(target)).chain(nowhere).chain(service)
        })
    }

    pub(super) const fn kind(&self) -> ResourceKind {
        match self {
            Self::Upstream(_) | Self::Nowhere => ResourceKind::Upstream,
            Self::Status(_) | Self::Policies(_) | Self::Filters(_) => ResourceKind::Service,
        }
    }

    /// Whether one of these policies has a part in the document.
    pub(super) fn has_any(&self, policies: &BTreeSet<Arc<ObjectKey>>) -> bool {
        match self {
            Self::Policies(chain) => chain.has_any(policies),
            Self::Upstream(_) | Self::Nowhere | Self::Status(_) | Self::Filters(_) => false,
        }
    }

    /// The id of the document; `None` for a target that needs a responder when there is none.
    pub(super) fn make_id(&self, lowering: &Lowering<'_>, ids: &mut Ids) -> Option<String> {
        let responder = lowering.options.responder;
        Some(match self {
            Self::Upstream(Target::Backend(index)) => id_of_backend(lowering.backends.get(*index), ids),
            Self::Upstream(Target::Status(status)) => responder.map(|_| format!("status-{status}"))?,
            Self::Upstream(Target::Redirect) => responder.map(|_| "redirect".to_owned())?,
            Self::Nowhere => "nowhere".to_owned(),
            Self::Status(status) => format!("status-{status}"),
            Self::Policies(chain) => id_of_policies(chain, ids),
            Self::Filters(plugins) => id_of_filters(plugins, ids),
        })
    }

    /// The document and its provenance; `None` for a target that needs a responder when there is none.
    pub(super) fn write(&self, lowering: &Lowering<'_>) -> Option<(Document, Provenance)> {
        let responder = lowering.options.responder;
        let (upstream, provenance) = match self {
            Self::Upstream(Target::Backend(index)) => of_backend(lowering.backends.get(*index)),
            Self::Upstream(Target::Status(status)) => of_status(*status, responder?),
            Self::Upstream(Target::Redirect) => of_redirect(responder?),
            Self::Nowhere => (nowhere(), Provenance::Status { status: None }),
            Self::Status(status) => return Some(service_of_status(*status)),
            Self::Policies(chain) => return Some(of_policies(chain, lowering.policies)),
            Self::Filters(plugins) => return Some(of_filters(plugins)),
        };
        Some((Document::Upstream(upstream), provenance))
    }

    /// Bytes of the document in a list response at most, with the charge for the memory of its patterns; 0 for a target that
    /// needs a responder when there is none.
    pub(super) fn bytes(&self, lowering: &Lowering<'_>, prefix: usize) -> usize {
        let Some((document, _)) = self.write(lowering) else { return 0 };
        let (patterns, id, step) = match &document {
            // The id of a service that collided.
            Document::Service(service) => (pattern_charge_of_policies(&service.plugins), 25, 1),
            Document::Upstream(_) | Document::Route(_) | Document::Ssl(_) | Document::GlobalRule(_) => {
                (0, 13, UPSTREAM_STEP)
            }
        };
        let key = DocumentKey { kind: self.kind(), id: "i".repeat(id) };
        (prefix + listed_bytes(&key, &document.into()) + patterns).next_multiple_of(step)
    }
}
