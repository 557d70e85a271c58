//! The search for overlaps: listeners whose hosts a client may reach over one connection (Gateway API
//! `OverlappingTLSConfig`, GEP-3567).

use std::collections::{BTreeMap, BTreeSet};

use super::conflict::claimed_protocol;
use super::overlap::{ListenerNames, Overlap};
use super::{Listener, Protocol, ServerName};
use crate::model::{Hostname, Kind, hostname_and_wider, hostname_covers, wider_hostnames};

/// The number of names in a message.
const SHOWN: usize = 8;

/// The smallest of some indices: as many as make a difference to [`listener_names`], so that thousands of names that a thousand
/// listeners share take no memory.
#[derive(Clone, Debug, Default)]
struct SmallestIndices(BTreeSet<usize>);

impl SmallestIndices {
    fn add(&mut self, index: usize) {
        self.0.insert(index);
        // One of them may be the listener itself.
        if self.0.len() > SHOWN + 2 {
            self.0.pop_last();
        }
    }
}

impl Extend<usize> for SmallestIndices {
    fn extend<I: IntoIterator<Item = usize>>(&mut self, indices: I) {
        indices.into_iter().for_each(|index| self.add(index));
    }
}

/// Marks every listener whose hostname or certificates overlap with those of another one on its port.
pub(super) fn mark_overlaps(listeners: &mut [Listener]) {
    let mut ports: BTreeMap<u16, Port> = BTreeMap::new();
    for (index, listener) in listeners.iter().enumerate() {
        if claimed_protocol(listener) == Some(Protocol::Https) {
            ports.entry(listener.port).or_default().add(index, listener.hostname.as_ref());
        }
    }
    let mut hostnames = vec![SmallestIndices::default(); listeners.len()];
    let mut certificates = vec![SmallestIndices::default(); listeners.len()];
    for port in ports.values() {
        for &index in port.by_hostname.values() {
            for other in port.wider(&listeners[index]) {
                hostnames[index].add(other);
                hostnames[other].add(index);
            }
            for other in port.certified(index, listeners) {
                certificates[index].add(other);
                certificates[other].add(index);
            }
        }
        let mut shown_by: BTreeMap<&Hostname, SmallestIndices> = BTreeMap::new();
        for &index in port.by_hostname.values() {
            for (name, below) in port.below(&listeners[index]) {
                certificates[index].extend(first_without(below, index));
                shown_by.entry(name).or_default().add(index);
            }
        }
        for (name, SmallestIndices(shown_by)) in &shown_by {
            for &index in &port.by_parent[*name] {
                certificates[index].extend(first_without(shown_by, index));
            }
        }
    }
    let overlaps: Vec<Option<Overlap>> = hostnames
        .into_iter()
        .zip(certificates)
        .enumerate()
        .map(|(index, (hostnames, certificates))| {
            (!hostnames.0.is_empty() || !certificates.0.is_empty()).then(|| Overlap {
                hostnames: listener_names(hostnames, listeners, index),
                certificates: listener_names(certificates, listeners, index),
                detects: false,
            })
        })
        .collect();
    for (listener, overlap) in listeners.iter_mut().zip(overlaps) {
        let detects = listener.front.as_ref().is_some_and(|front| front.detects);
        listener.overlap = overlap.map(|overlap| Overlap { detects, ..overlap });
    }
}

/// The listeners with TLS of a port, by hostname. Two with the same hostname would be a conflict.
#[derive(Debug, Default)]
struct Port {
    by_hostname: BTreeMap<Option<Hostname>, usize>,
    /// Listeners with an exact hostname, by the wildcard for its first label; sorted.
    by_parent: BTreeMap<Hostname, Vec<usize>>,
}

impl Port {
    fn add(&mut self, index: usize, hostname: Option<&Hostname>) {
        self.by_hostname.insert(hostname.cloned(), index);
        let exact = hostname.filter(|hostname| !hostname.is_wildcard());
        if let Some(parent) = exact.and_then(|hostname| hostname.wider().next()) {
            self.by_parent.entry(parent).or_default().push(index);
        }
    }

    /// The listeners with a wider hostname.
    fn wider(&self, listener: &Listener) -> Vec<usize> {
        let wider = wider_hostnames(listener.hostname.as_ref());
        wider.filter_map(|wider| self.by_hostname.get(&wider).copied()).collect()
    }

    /// The wildcards among the names of a listener's certificates, with the listeners that they cover.
    fn below<'p>(&'p self, listener: &Listener) -> Vec<(&'p Hostname, &'p [usize])> {
        let below = shown_names(listener).filter_map(|name| self.by_parent.get_key_value(name));
        below.map(|(name, below)| (name, below.as_slice())).collect()
    }

    /// The other listeners whose hostname equals or covers a name of a listener's certificates. Hosts within the listener's
    /// own hostname do not count for a wider listener, because the narrower listener serves them.
    fn certified(&self, index: usize, listeners: &[Listener]) -> BTreeSet<usize> {
        let own = listeners[index].hostname.as_ref();
        let mut others = BTreeSet::new();
        for name in shown_names(&listeners[index]) {
            others.extend(
                hostname_and_wider(Some(name))
                    .filter_map(|hostname| self.by_hostname.get(&hostname).copied())
                    .filter(|&other| {
                        let is_wider = hostname_covers(listeners[other].hostname.as_ref(), own);
                        other != index && !(is_wider && hostname_covers(own, Some(name)))
                    }),
            );
        }
        others
    }
}

/// The names of the certificates that a listener shows. The sidecar shows all of them.
fn shown_names(listener: &Listener) -> impl Iterator<Item = &Hostname> {
    let is_shown = |shown_for: &BTreeSet<ServerName>| listener.is_fronted() || !shown_for.is_empty();
    let shown = listener.certificates().into_iter().filter(move |(_, shown_for)| is_shown(shown_for));
    shown.flat_map(|(certificate, _)| certificate.names())
}

/// The first of some sorted indices without `own`: as many as a message needs.
fn first_without<'i>(
    indices: impl IntoIterator<Item = &'i usize>,
    own: usize,
) -> impl Iterator<Item = usize> {
    indices.into_iter().copied().filter(move |&index| index != own).take(SHOWN + 1)
}

/// The names for the readers of a listener. They need not know the listeners of ListenerSets of other namespaces.
fn listener_names(
    SmallestIndices(indices): SmallestIndices,
    listeners: &[Listener],
    reader: usize,
) -> ListenerNames {
    let reader = &listeners[reader].owner;
    let first = indices.iter().take(SHOWN).map(|&index| {
        let Listener { name, owner, .. } = &listeners[index];
        let is_known = owner.kind == Kind::Gateway || owner.is_known_to(reader);
        if is_known { format!("\"{name}\"") } else { format!("one of {}", owner.named_to(reader)) }
    });
    let mut first: Vec<String> = first.collect();
    let is_truncated = indices.len() > first.len();
    first.dedup();
    ListenerNames { first, is_truncated }
}

#[cfg(test)]
mod tests;
