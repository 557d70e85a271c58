//! Attached policies: which policy counts for a target, and its effect there.
//!
//! The stages: each kind of policy ([`backend_tls`]) reads its spec and says whether PingSIX can honour it; [`attached`]
//! finds the policy that counts for each target, in the same way for every kind; [`demand`] applies the policies for
//! backends to one route. A policy that PingSIX cannot honour still wins its target: PingSIX then makes no connection to
//! the backend.

mod attached;
mod backend_tls;
mod demand;

use std::collections::BTreeSet;

pub(crate) use attached::{AttachedPolicies, AttachedPolicy, PolicyKind, PolicyTarget, Unserved};
use backend_tls::BackendTls;
pub(crate) use demand::{Demand, InEffect, Payload};

use crate::model::ObjectKey;
use crate::references::References;
use crate::snapshot::Snapshot;

/// The policies of a snapshot: a field for each kind.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    pub(crate) backend_tls: AttachedPolicies<BackendTls>,
}

impl Policies {
    pub(crate) fn new(snapshot: &Snapshot, references: &References<'_>) -> Self {
        Self { backend_tls: AttachedPolicies::new(&snapshot.backend_tls_policies, references) }
    }

    /// The objects that policies target.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &ObjectKey> {
        self.backend_tls.targets()
    }

    /// The objects for which other policies count than before, or policies with another effect.
    pub(crate) fn changed<'s>(&'s self, before: &'s Self) -> BTreeSet<&'s ObjectKey> {
        self.backend_tls.changed(&before.backend_tls).collect()
    }

    /// The policies as they apply to the traffic of a route.
    pub(crate) fn for_route<'a>(&'a self, payload: Payload<'a>) -> InEffect<'a> {
        InEffect { policies: self, payload }
    }
}

#[cfg(test)]
mod tests;
