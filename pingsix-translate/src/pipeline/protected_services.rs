//! The Services of protected rules, and the rules of other hosts that fix their host because of them.
//!
//! A client may have a request matched by one host and delivered with another one (`crate::lower::host`). Where a rule and
//! a protected rule of another host have a Service in common, a request for the first host could name the second one to
//! the Service, past its policies. The first rule therefore fixes its host ([`ResolvedRule::fixes_host`]), unless both have
//! the same policies.
//!
//! The index counts, for each Service, the pairs of host and policies of protected rules. A change of a route changes its own
//! pairs alone. Only if a pair comes or goes, the other routes of the Service are looked at again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::attach::{Listener, only_host, served_hosts};
use crate::backends::{Backends, ResolvedRule, Target};
use crate::counts::decrement;
use crate::lower::RouteInput;
use crate::model::{Hostname, ObjectName};
use crate::policy::ListenerChains;

/// The protected rules by Service.
#[derive(Debug, Default)]
pub(super) struct ProtectedServices(BTreeMap<ObjectName, Uses>);

/// The uses of a Service by protected rules. The host is the only one of a route; `None` if the route has several.
#[derive(Debug, Default)]
struct Uses {
    /// The number of rules of each pair.
    pairs: BTreeMap<(Option<Hostname>, ListenerChains), usize>,
    /// The number of pairs with a host.
    by_host: BTreeMap<Hostname, usize>,
    /// The number of pairs with policies.
    by_chains: BTreeMap<ListenerChains, usize>,
}

impl Uses {
    /// Whether a pair has another host and other policies.
    fn has_other(&self, host: Option<&Hostname>, chains: &ListenerChains) -> bool {
        let of_host = host.and_then(|host| self.by_host.get(host)).copied().unwrap_or_default();
        let of_chains = self.by_chains.get(chains).copied().unwrap_or_default();
        let is_pair = host.is_some() && self.pairs.contains_key(&(host.cloned(), chains.clone()));
        self.pairs.len() + usize::from(is_pair) > of_host + of_chains
    }

    /// Counts a rule more. Returns whether its pair is new.
    fn add(&mut self, host: Option<&Hostname>, chains: &ListenerChains) -> bool {
        let rules = self.pairs.entry((host.cloned(), chains.clone())).or_default();
        *rules += 1;
        if *rules > 1 {
            return false;
        }
        if let Some(host) = host {
            *self.by_host.entry(host.clone()).or_default() += 1;
        }
        *self.by_chains.entry(chains.clone()).or_default() += 1;
        true
    }

    /// Counts a rule less. Returns whether its pair is gone.
    fn remove(&mut self, host: Option<&Hostname>, chains: &ListenerChains) -> bool {
        if !decrement(&mut self.pairs, &(host.cloned(), chains.clone())) {
            return false;
        }
        if let Some(host) = host {
            decrement(&mut self.by_host, host);
        }
        decrement(&mut self.by_chains, chains);
        true
    }
}

impl ProtectedServices {
    /// Adds the protected rules of a route. `changed` gets the Services with other pairs.
    pub(super) fn add(
        &mut self,
        input: &RouteInput,
        context: (&[Listener], &Backends),
        changed: &mut BTreeSet<ObjectName>,
    ) {
        self.change(input, context, Uses::add, changed);
    }

    /// Removes the protected rules of a route. `changed` gets the Services with other pairs.
    pub(super) fn remove(
        &mut self,
        input: &RouteInput,
        context: (&[Listener], &Backends),
        changed: &mut BTreeSet<ObjectName>,
    ) {
        self.change(input, context, Uses::remove, changed);
    }

    fn change(
        &mut self,
        input: &RouteInput,
        (listeners, backends): (&[Listener], &Backends),
        change: fn(&mut Uses, Option<&Hostname>, &ListenerChains) -> bool,
        changed: &mut BTreeSet<ObjectName>,
    ) {
        let host = host_of(input, listeners);
        for (service, rule) in protected(input, backends) {
            let uses = self.0.entry(service.clone()).or_default();
            if change(uses, host.as_ref(), &rule.chains) {
                changed.insert(service.clone());
            }
            if uses.pairs.is_empty() {
                self.0.remove(service);
            }
        }
    }

    /// The route with the rules that fix their hosts now; `None` if these are the same as before.
    pub(super) fn fix_hosts(
        &self,
        input: &RouteInput,
        listeners: &[Listener],
        backends: &Backends,
    ) -> Option<Arc<RouteInput>> {
        let is_concerned = !self.0.is_empty() || input.rules.iter().any(|rule| rule.fixes_host);
        if !is_concerned || !input.route.traffic.has_requests() {
            return None;
        }
        // A rule without an exact host has none to fix. A client that reaches the rule by an exact host of another rule may
        // as well use a host of this one.
        let mut hosts = served_hosts(&input.route.hostnames, input.attached.listeners(), listeners).flatten();
        let has_exact = hosts.any(|host| !host.is_wildcard());
        let host = host_of(input, listeners);
        let fixes = |rule: &ResolvedRule| {
            let mut uses = services(rule, backends).filter_map(|service| self.0.get(service));
            has_exact && uses.any(|uses| uses.has_other(host.as_ref(), &rule.chains))
        };
        let now: Vec<bool> = input.rules.iter().map(fixes).collect();
        let is_same = input.rules.iter().zip(&now).all(|(rule, now)| rule.fixes_host == *now);
        (!is_same).then(|| Arc::new(input.with_fixed_hosts(&now)))
    }
}

/// The Services of the protected rules of a route.
fn protected<'a>(
    input: &'a RouteInput,
    backends: &'a Backends,
) -> impl Iterator<Item = (&'a ObjectName, &'a ResolvedRule)> {
    let is_served = input.is_there() && input.route.traffic.has_requests();
    let rules = input.rules.iter().enumerate().filter(move |_| is_served);
    let rules = rules.filter(|(index, rule)| rule.chains.protect() || input.refuses(*index));
    rules.flat_map(|(_, rule)| {
        services(rule, backends).chain(&rule.withheld).map(move |service| (service, rule))
    })
}

/// The Services to which a rule sends requests.
fn services<'a>(rule: &'a ResolvedRule, backends: &'a Backends) -> impl Iterator<Item = &'a ObjectName> {
    rule.action.targets.iter().filter_map(|(target, _)| match target {
        Target::Backend(index) => Some(&backends.get(*index).key.service),
        Target::Status(_) | Target::Redirect => None,
    })
}

/// The one host of all requests for a route; `None` if there may be several.
fn host_of(input: &RouteInput, listeners: &[Listener]) -> Option<Hostname> {
    only_host(&input.route.hostnames, input.attached.listeners(), listeners)
}

#[cfg(test)]
mod tests;
