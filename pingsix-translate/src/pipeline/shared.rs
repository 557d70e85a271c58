//! Values that many routes share, each held once.

use std::sync::Arc;

use crate::interner::Interner;
use crate::lower::Attachments;
use crate::model::ParentRef;
use crate::normalise::{Match, Route};
use crate::policy::EvaluatedChain;
use crate::status::ParentVerdict;

/// The verdicts of parents, which are the same for most routes of a Gateway, and the matches of rules without
/// hostnames.
#[derive(Debug, Default)]
pub(super) struct Interners {
    parent_refs: Interner<Arc<[ParentRef]>>,
    matches: Interner<Arc<[Match]>>,
    pub(super) attachments: Interner<Arc<Attachments>>,
    pub(super) chains: Interner<Arc<EvaluatedChain>>,
    pub(super) parents: Interner<Arc<[ParentVerdict]>>,
}

impl Interners {
    /// The route, to be kept.
    pub(super) fn route(&mut self, mut route: Route) -> Route {
        route.parent_refs = self.parent_refs.share(route.parent_refs);
        for rule in &mut route.rules {
            rule.matches = self.matches.share(std::mem::take(&mut rule.matches));
        }
        route
    }
}
