//! Destinations of connections by the specification alone.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pingsix_translate::stream::Arrival;

use crate::world::{Listener, Route, World};

/// Whether a pattern stands for a name; none stands for all.
fn stands_for(pattern: Option<&str>, name: &str) -> bool {
    match pattern.map(|pattern| (pattern, pattern.strip_prefix("*."))) {
        None => true,
        Some((_, Some(domain))) => {
            name.strip_suffix(domain).is_some_and(|label| label.len() > 1 && label.ends_with('.'))
        }
        Some((exact, None)) => exact == name,
    }
}

/// A name that a pattern stands for and no narrower one of these tests does.
fn example(pattern: &str) -> String {
    pattern.replace('*', "deep.fresh")
}

/// Whether some name matches both. The patterns' own names suffice, with a label for the star.
pub(crate) fn overlaps(listener: Option<&str>, hostname: &str) -> bool {
    let both = |name: &str| stands_for(listener, name) && stands_for(Some(hostname), name);
    both(&example(hostname)) || listener.is_some_and(|listener| both(&example(listener)))
}

/// Exact before wildcard, longer before shorter, anything before nothing.
pub(crate) fn specificity(pattern: Option<&str>) -> (bool, usize) {
    pattern.map_or((false, 0), |pattern| (!pattern.starts_with('*'), pattern.len()))
}

pub(crate) fn reduced(mut shares: BTreeMap<&'static str, u32>) -> BTreeMap<&'static str, u32> {
    let divisor = (1..=shares.values().copied().min().unwrap_or(1))
        .rev()
        .find(|divisor| shares.values().all(|weight| weight % divisor == 0))
        .unwrap_or(1);
    for weight in shares.values_mut() {
        *weight /= divisor;
    }
    shares
}

/// The specification's result for a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Shares of the connections, by the service they end at or the reason why they do not.
    Shares(BTreeMap<&'static str, u32>),
    /// The connection is closed for lack of a listener or a route.
    NoRoute,
    /// The listener of the connection is not served, so the connection is closed: a listener with a wider hostname
    /// would be wrong.
    Unserved,
}

/// The listener that connections of a protocol to a port are for.
fn listener_of<'w>(
    world: &'w World,
    (protocol, port): (&str, u16),
    name: Option<&str>,
) -> Option<&'w Listener> {
    world
        .listeners
        .iter()
        .filter(|listener| listener.protocol == protocol && listener.port == port)
        .filter(|listener| name.is_none_or(|name| stands_for(listener.hostname, name)))
        .max_by_key(|listener| specificity(listener.hostname))
}

/// Whether the route could have connections without other contenders: its names in common with a listener may all
/// belong to listeners with narrower hostnames.
pub(crate) fn can_have_connections(world: &World, route: &Route) -> bool {
    let attached = world.listeners.iter().filter(|one| one.is_served && route.is_attached_to(one));
    attached.into_iter().any(|listener| {
        let is_own = |name: &&str| {
            let is_narrower = specificity(listener.hostname) > specificity(Some(name));
            let served = example(listener.hostname.filter(|_| is_narrower).unwrap_or(name));
            let owner = listener_of(world, (listener.protocol, listener.port), Some(&served));
            owner.is_some_and(|owner| owner.name == listener.name)
        };
        let mut names = route.hostnames.iter().copied().filter(|name| overlaps(listener.hostname, name));
        listener.protocol != "TLS" || names.any(|name| is_own(&name))
    })
}

/// Finds the listener a connection is for, then the route that comes first there.
pub(crate) fn fate(world: &World, port: u16, arrival: Arrival<'_>) -> Outcome {
    let (protocol, name) = match arrival {
        Arrival::Tcp => ("TCP", None),
        Arrival::Udp => ("UDP", None),
        Arrival::Tls(name) => ("TLS", Some(name)),
        // No TLSRoute takes one.
        Arrival::TlsUnnamed => return Outcome::NoRoute,
    };
    let Some(listener) = listener_of(world, (protocol, port), name) else { return Outcome::NoRoute };
    if !listener.is_served {
        return Outcome::Unserved;
    }
    let mut candidates = Vec::new();
    for route in world.routes.iter().filter(|route| route.is_attached_to(listener)) {
        let hostnames: Vec<Option<&str>> = match name {
            None => vec![None],
            Some(name) => {
                let own = route.hostnames.iter().copied().map(Some);
                own.filter(|pattern| stands_for(*pattern, name)).collect()
            }
        };
        for original in hostnames {
            let served = specificity(original).max(specificity(listener.hostname));
            let age = route.age.unwrap_or("9999");
            let slashed = format!("{}/{}", route.namespace, route.name);
            candidates.push((Reverse(served), Reverse(specificity(original)), age, slashed, route));
        }
    }
    candidates.sort_by(|left, right| {
        (&left.0, &left.1, left.2, &left.3).cmp(&(&right.0, &right.1, right.2, &right.3))
    });
    candidates.first().map_or(Outcome::NoRoute, |(.., route)| Outcome::Shares(route.shares()))
}
