//! The sizes of the rows of one rule.

use std::sync::Arc;

use super::row_sizes::{filter_bytes, name_bytes, row_bytes};
use crate::attach::ServedName;
use crate::backends::Action;
use crate::lower::filters::{MIN_FILTERED, encode_filters};
use crate::lower::host::host_bytes;
use crate::lower::lowering::Lowering;
use crate::lower::plane::RuleRef;
use crate::lower::route_sizes::ROUTE_SIZES;
use crate::lower::rows::Placement;
use crate::lower::shared::SharedKey;
use crate::normalise::{Match, Path};
use crate::pingsix::Plugins;
use crate::policy::PolicyChain;

/// The sizes of the rows of a rule in a zone.
pub(in crate::lower) struct RuleSizes<'a> {
    /// The action of its rows.
    action: Action,
    /// The policies of its service.
    chain: Option<&'a Arc<PolicyChain>>,
    /// Bytes of the name of a Route whose first row is the rule's.
    name: usize,
    /// The plugins of its filters and of its host, for each name of the placement.
    filters: Vec<FilterSizes>,
    /// The service of its filters, if they do not depend on hosts and ports.
    service: Option<SharedKey>,
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
        let plain = filters.filter(|filters| filters.redirect.is_none() && filters.response.is_none());
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
        let service = plain.filter(|_| applied.is_none() && !(passes_host && lowering.fixes_host(rule)));
        let service = service.map(|filters| {
            let mut plugins = Plugins::default();
            filters.lower(None, None, &mut plugins);
            SharedKey::Filters(encode_filters(&plugins))
        });
        let prefix = lowering.prefix();
        let of_bytes = |bytes| match applied {
            Some(_) => FilterSizes::own(bytes),
            None => FilterSizes::shared(bytes, prefix),
        };
        let filters = filters.into_iter().map(of_bytes).collect();
        let chain = applied.map(|applied| &applied.chain);
        let (name, is_protected) = (name_bytes(lowering, rule.route), input.is_protected(rule.rule));
        Self { action, chain, name, filters, service, has_spellings, is_protected }
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

    /// Bytes that each match adds to the list of each name, without its filters, and the filters.
    pub(in crate::lower) fn rows<'m, 'n>(
        &self,
        matches: &'m [Match],
        names: &'n [ServedName],
    ) -> impl Iterator<Item = (&'m Match, &'n ServedName, usize, FilterSizes)> {
        let service = if self.chain.is_some() { ROUTE_SIZES.service_id } else { 0 };
        matches.iter().flat_map(move |matched| {
            let rest = self.name + service + row_bytes(&matched.conditions, &self.action);
            names.iter().zip(&self.filters).map(move |(name, filters)| (matched, name, rest, *filters))
        })
    }

    /// The service of its filters, if they do not depend on hosts and ports.
    pub(in crate::lower) const fn service(&self) -> Option<&SharedKey> {
        self.service.as_ref()
    }
}

/// The sizes of the filters of a Route, by the number of Routes with the same.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::lower) struct FilterSizes {
    /// Bytes for one Route, such that the sum over any number of Routes is never less than a service and its ids.
    pub(in crate::lower) one: usize,
    /// Bytes of the service; 0 if there is none.
    service: usize,
}

impl FilterSizes {
    /// Filters that stay on their Route.
    const fn own(bytes: usize) -> Self {
        Self { one: bytes, service: 0 }
    }

    /// Filters that a service may have. `prefix` is the length of the prefix of all keys.
    fn shared(bytes: usize, prefix: usize) -> Self {
        if bytes == 0 {
            return Self::default();
        }
        let service = prefix + ROUTE_SIZES.service + bytes;
        let one = bytes.max(ROUTE_SIZES.service_id + service.div_ceil(MIN_FILTERED));
        Self { one, service }
    }

    /// Bytes that the n-th Route adds, if all have the same.
    pub(super) fn of_nth(&self, n: usize) -> usize {
        self.of_all(n).saturating_sub(self.of_all(n.saturating_sub(1)))
    }

    /// Bytes for a number of Routes. Any of them may turn out to have other filters.
    fn of_all(&self, routes: usize) -> usize {
        let few = self.one.saturating_mul(routes.min(MIN_FILTERED - 1));
        if routes < MIN_FILTERED {
            return few;
        }
        few.max(ROUTE_SIZES.service_id.saturating_mul(routes).saturating_add(self.service))
    }
}
