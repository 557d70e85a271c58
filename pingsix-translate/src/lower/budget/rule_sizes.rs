//! The sizes of the rows of one rule.

use std::sync::Arc;

use super::row_sizes::{filter_bytes, name_bytes, row_bytes};
use crate::attach::ServedName;
use crate::backends::Action;
use crate::lower::filters::MIN_ROUTES_TO_SHARE;
use crate::lower::host::host_bytes;
use crate::lower::lowering::Lowering;
use crate::lower::plane::RuleRef;
use crate::lower::route_sizes::ROUTE_SIZES;
use crate::lower::rows::Placement;
use crate::lower::shared::SharedKey;
use crate::normalise::{Match, Path};
use crate::policy::PolicyChain;

/// The sizes of the rows of a rule in a zone.
pub(in crate::lower) struct RuleSizes<'a> {
    /// The action of its rows.
    action: Action,
    /// The policies of its service.
    chain: Option<&'a Arc<PolicyChain>>,
    /// Bytes of the name of a Route whose first row is the rule's.
    name: usize,
    /// Bytes of the plugins of its filters and of its host, for each name of the placement.
    filters: Vec<usize>,
    /// Whether its Routes list other spellings of their hosts.
    pub(in crate::lower) has_spellings: bool,
    /// Whether other spellings of its paths may have Routes.
    is_protected: bool,
}

impl<'a> RuleSizes<'a> {
    pub(in crate::lower) fn new(lowering: &Lowering<'a>, rule: RuleRef, placement: &Placement) -> Self {
        let (input, content) = lowering.rule(rule);
        let chain = lowering.chain(rule, placement.zone);
        let (action, applied) = match (&placement.scheme, chain) {
            (Ok(_), Ok(applied)) => (input.rules[rule.rule].action.clone(), applied),
            (Ok(_), Err(_)) | (Err(_), _) => (Action::status(input.route.traffic.failure()), None),
        };
        let has_spellings = placement.scheme.is_ok() && lowering.lists_spellings(rule, placement.zone);
        let passes_host = lowering.passes_host(&action);
        let filters = content.filters.as_deref();
        let filters = filters.filter(|filters| action.is_filtered() || filters.response.is_some());
        let of_name = |filters, name: &ServedName| {
            filter_bytes(lowering, placement.zone, filters, name.served.as_ref())
        };
        let mut filters = match (filters, placement.names.first()) {
            (Some(filters), _) if filters.redirect.is_some() => {
                placement.names.iter().map(|name| of_name(filters, name)).collect()
            }
            (Some(filters), Some(first)) => vec![of_name(filters, first); placement.names.len()],
            (None, _) | (Some(_), None) => vec![0; placement.names.len()],
        };
        if passes_host {
            let (fixes_host, facts) = (lowering.fixes_host(rule), applied.map(|applied| &applied.facts));
            for (bytes, name) in filters.iter_mut().zip(&placement.names) {
                *bytes += host_bytes(fixes_host, facts, name.served.as_ref());
            }
        }
        if applied.is_none() {
            let prefix = lowering.prefix();
            for bytes in &mut filters {
                *bytes = shared_bytes(*bytes, prefix);
            }
        }
        let chain = applied.map(|applied| &applied.chain);
        let (name, is_protected) = (name_bytes(lowering, rule.route), input.is_protected(rule.rule));
        Self { action, chain, name, filters, has_spellings, is_protected }
    }

    /// The shared documents that its Routes may need.
    pub(in crate::lower) fn shared(&self) -> impl Iterator<Item = SharedKey> {
        let policies = self.chain.map(|chain| SharedKey::Policies(chain.clone()));
        SharedKey::of_action(&self.action).chain(policies)
    }

    /// The other spellings of a path of the rule, with the bytes of the name of their Route, if they may have one.
    pub(in crate::lower) fn path_spellings(&self, path: &Path) -> Option<(Path, usize)> {
        Some((path.spellings()?, self.name)).filter(|_| self.is_protected)
    }

    /// Bytes that each match adds to the list of each name.
    pub(in crate::lower) fn rows<'m, 'n>(
        &self,
        matches: &'m [Match],
        names: &'n [ServedName],
    ) -> impl Iterator<Item = (&'m Match, &'n ServedName, usize)> {
        let service = if self.chain.is_some() { ROUTE_SIZES.service_id } else { 0 };
        matches.iter().flat_map(move |matched| {
            let rest = self.name + service + row_bytes(&matched.conditions, &self.action);
            names.iter().zip(&self.filters).map(move |(name, filters)| (matched, name, rest + filters))
        })
    }
}

/// Bytes that filters of so many bytes add to a Route. If Routes share them, the sum over these Routes is not less than a service and
/// its ids. `prefix` is the length of the prefix of all keys.
fn shared_bytes(bytes: usize, prefix: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    let service = prefix + ROUTE_SIZES.service + bytes;
    bytes.max(ROUTE_SIZES.service_id + service.div_ceil(MIN_ROUTES_TO_SHARE))
}
