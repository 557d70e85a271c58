//! The host of a request: the one that backends get, and other spellings of the one that PingSIX matches.
//!
//! # Two hosts in one request
//!
//! PingSIX matches `:authority`, or else the first `Host` header, and hands all `Host` headers to the backend
//! (`src/utils/request.rs`). So a client may have a request matched by one host and delivered with another. A Route of an
//! exact host **fixes** the host where that does harm:
//!
//! - The policies of the Route keep responses. PingSIX's key has the first `Host` header, so the response to an ambiguous
//!   request would answer others. PingSIX can fix no host for wildcards and for every host, so these Routes keep nothing.
//! - A Service of a rule also serves another host, with other protection ([`ResolvedRule::fixes_host`]).
//!
//! The fixed host has the port of the listener, like the URL that clients use, unless that is the default of its scheme.
//! The port that a client writes is lost, because PingSIX has no variable for the port.
//!
//! # Other spellings
//!
//! `a.example.` and `[a.example]` are hosts of their own for PingSIX and match neither `a.example` nor `*.example`, so they
//! would reach rules for every host. A protected Route also lists them, if the data plane has hosts of that kind. The other
//! spellings, such as `a.example:80:80`, have no pattern in PingSIX.
//!
//! A wildcard has the same spellings of all hosts that it covers (`*.example.`, `*.example]`), and a Route with a wildcard
//! lists those of every listed host. So each kind of spelling has the order and the cover relation of the hosts themselves.
//! The closure of the hosts ([`super::closure`]) is therefore one of the spellings, and the closure of the paths holds for a
//! subset of the Routes.

use std::sync::Arc;

use super::closure::Closed;
use super::lowering::Lowering;
use super::plane::{Plane, RuleRef};
use super::redirect::EntryPort;
use super::route_sizes::ROUTE_SIZES;
use super::table::{Answer, Groups, RowState, TableRoute};
use crate::attach::Protocol;
#[cfg(doc)]
use crate::backends::ResolvedRule;
use crate::backends::{Action, Target};
use crate::model::Hostname;
use crate::pingsix::plugin::Cache;
use crate::policy::{ChainError, ChainFacts};

/// The number of other spellings of a host that a protected Route lists.
pub(super) const SPELLINGS: usize = 2;

/// Bytes that the other spellings of a host take beyond the host: `.`, and `[]`.
pub(super) const SPELLING: usize = 2;

/// The length of the longest hostname.
const LONGEST_HOST: usize = 253;

/// The host that a Route fixes for backends.
pub(super) fn fixed_host(host: &Hostname, entrances: &[EntryPort]) -> String {
    let of = |entrance: &EntryPort| {
        let default = if entrance.protocol == Protocol::Https { 443 } else { 80 };
        (entrance.port != default).then_some(entrance.port)
    };
    let mut ports = entrances.iter().map(of);
    match ports.next().flatten() {
        Some(port) if ports.all(|other| other == Some(port)) => format!("{host}:{port}"),
        Some(_) | None => host.to_string(),
    }
}

/// The plugin of a Route that keeps no responses, in place of the one of its service.
pub(super) fn cache_off() -> Cache {
    Cache { cache_http_methods: Vec::new(), ..Cache::default() }
}

/// The most bytes that the host of requests adds to a Route.
pub(super) fn host_bytes(fixes_host: bool, facts: Option<&ChainFacts>, host: Option<&Hostname>) -> usize {
    if !fixes_host && !facts.is_some_and(ChainFacts::caches) {
        return 0;
    }
    // The row of a wildcard or of every host may stand in the list of an exact host. `cache_off` takes less.
    let exact = host.filter(|host| !host.is_wildcard());
    ROUTE_SIZES.fixed_host + exact.map_or(LONGEST_HOST, |host| host.as_str().len())
}

impl Plane {
    /// Whether rules for every host may get requests with odd spellings of a host.
    pub(super) fn has_every_host(&self) -> bool {
        self.zones.iter().any(|zone| zone.hostname.is_none())
    }
}

impl Lowering<'_> {
    /// Whether requests for a rule in a zone reach a backend with the Host of the client, and must not.
    pub(super) fn fixes_host(&self, rule: RuleRef) -> bool {
        self.routes[rule.route].rules[rule.rule].fixes_host
    }

    /// Whether any Route may list other spellings of its hosts. Without policies, annotations alone refuse requests.
    pub(super) fn may_spell(&self) -> bool {
        let mut zones = self.plane.zones.iter();
        self.plane.has_every_host()
            && (self.policies.has_inherited() || zones.all(|zone| zone.owner.is_none()))
    }

    /// The most hosts that a Route with an exact host lists.
    pub(super) fn hosts_of_host(&self) -> usize {
        if self.may_spell() { 1 + SPELLINGS } else { 1 }
    }

    /// Whether an action sends requests with the Host of the client.
    pub(super) fn passes_host(&self, action: &Action) -> bool {
        action.targets.iter().any(|(target, _)| match target {
            Target::Backend(index) => {
                let usage = &self.backends.get(*index).key.usage;
                usage.host.is_none() && usage.tls.is_none()
            }
            Target::Status(_) | Target::Redirect => false,
        })
    }

    /// Whether a rule is protected in a zone with policies, so that its Route lists other spellings of its hosts.
    pub(super) fn lists_spellings(&self, rule: RuleRef, zone: usize) -> bool {
        self.plane.has_every_host()
            && match self.chain(rule, zone) {
                Ok(Some(chain)) => chain.facts.protects(),
                Ok(None) => self.routes[rule.route].refuses(rule.rule),
                Err(ChainError::Broken(broken)) => broken.protects(),
                Err(ChainError::DifferentListeners) => true,
            }
    }

    /// Whether a Route lists other spellings of its hosts: a rule of its own hostname is protected. Rules of wider names have
    /// Routes of their own, which list the spellings of this host.
    pub(super) fn spells(&self, route: &TableRoute, zone: usize, groups: &Groups<'_>) -> bool {
        let rows = match &route.answer {
            Answer::Decide { list, .. } => list,
            Answer::OtherSpelling(protected) => protected,
            Answer::Guard => return false,
        };
        rows.iter().filter(|(group, _)| groups[*group].0 == route.key.original).any(|&(group, row)| {
            let row = &groups[group].1[row];
            row.state == RowState::Served && self.lists_spellings(row.rule, zone)
        })
    }
}

impl Closed {
    /// The patterns with the other spellings of all hosts.
    pub(super) fn with_spellings(self) -> Self {
        let hosts = || self.hosts.iter();
        let dotted = hosts().map(|host| format!("{host}."));
        let bracketed =
            hosts().map(|host| if host.starts_with('*') { format!("{host}]") } else { format!("[{host}]") });
        let hosts = hosts().cloned().chain(dotted).chain(bracketed).collect();
        Self { hosts: Arc::new(hosts), ..self }
    }
}

#[cfg(test)]
mod tests;
