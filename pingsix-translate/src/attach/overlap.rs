//! Listeners whose hosts a client may reach over one connection (Gateway API `OverlappingTLSConfig`, GEP-3567).

use std::collections::BTreeMap;
use std::fmt;

use super::conflict::claimed_protocol;
use super::{Hostname, Listener, Protocol, hostname_covers};
use crate::verdict::Reason;

/// With which others of its port a listener with TLS shares hosts. At least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    /// Those with which the hostname overlaps.
    hostnames: Others,
    /// Those for whose hosts a certificate of this one is valid, or the other way round.
    certificates: Others,
}

/// Some listeners: the first by name, and how many there are besides. A wildcard certificate that a thousand listeners
/// use would otherwise fill a thousand conditions with a thousand names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Others {
    first: Vec<String>,
    more: usize,
}

impl Others {
    /// As many as one likes to read.
    const NAMED: usize = 8;

    fn new(mut indices: Vec<usize>, listeners: &[Listener]) -> Self {
        indices.sort_unstable();
        indices.dedup();
        let first: Vec<String> =
            indices.iter().take(Self::NAMED).map(|&index| listeners[index].name.clone()).collect();
        Self { more: indices.len() - first.len(), first }
    }
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.first.iter().enumerate() {
            write!(f, "{}\"{name}\"", if position == 0 { "" } else { ", " })?;
        }
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}

impl Overlap {
    /// Certificates come first where both overlap, as the specification recommends.
    pub(crate) fn reason(&self) -> Reason {
        if self.certificates.first.is_empty() {
            Reason::OverlappingHostnames
        } else {
            Reason::OverlappingCertificates
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut space = "";
        if !self.certificates.first.is_empty() {
            write!(
                f,
                "A certificate is valid for hosts of this listener and of others on its port, so a client may send \
                 requests for both over one connection, and PingSIX answers each by its host: {}.",
                self.certificates
            )?;
            space = " ";
        }
        if !self.hostnames.first.is_empty() {
            write!(f, "{space}The hostname overlaps with that of others on the port: {}.", self.hostnames)?;
        }
        Ok(())
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
    let mut hostnames = vec![Vec::new(); listeners.len()];
    let mut certificates = vec![Vec::new(); listeners.len()];
    for port in ports.values() {
        for &index in port.by_hostname.values() {
            for other in port.wider(&listeners[index]) {
                hostnames[index].push(other);
                hostnames[other].push(index);
            }
            for other in port.certified(index, listeners) {
                certificates[index].push(other);
                certificates[other].push(index);
            }
        }
    }
    let overlaps: Vec<Option<Overlap>> = hostnames
        .into_iter()
        .zip(certificates)
        .map(|(hostnames, certificates)| {
            (!hostnames.is_empty() || !certificates.is_empty()).then(|| Overlap {
                hostnames: Others::new(hostnames, listeners),
                certificates: Others::new(certificates, listeners),
            })
        })
        .collect();
    for (listener, overlap) in listeners.iter_mut().zip(overlaps) {
        listener.overlap = overlap;
    }
}

/// The listeners with TLS of a port, by hostname: they cannot have the same and both stand.
#[derive(Debug, Default)]
struct Port {
    by_hostname: BTreeMap<Option<Hostname>, usize>,
    /// Those whose hostname is no wildcard, by the wildcard that stands for their first label.
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
        let Some(hostname) = &listener.hostname else { return Vec::new() };
        hostname
            .wider()
            .map(Some)
            .chain([None])
            .filter_map(|wider| self.by_hostname.get(&wider).copied())
            .collect()
    }

    /// The other listeners for whose hosts the certificates that a listener shows are valid. Of the hosts of one with a
    /// wider hostname, those that are within its own do not count, since it is the one to serve them.
    fn certified(&self, index: usize, listeners: &[Listener]) -> Vec<usize> {
        let own = listeners[index].hostname.as_ref();
        let shown = listeners[index].certificates();
        let names = shown.iter().filter(|(_, shown)| !shown.is_empty()).flat_map(|(one, _)| &one.names);
        let mut others = Vec::new();
        for name in names {
            let around = std::iter::once(name.clone()).chain(name.wider()).map(Some).chain([None]);
            let below = self.by_parent.get(name).into_iter().flatten().copied();
            others.extend(
                around.filter_map(|hostname| self.by_hostname.get(&hostname).copied()).chain(below).filter(
                    |&other| {
                        let is_wider = hostname_covers(listeners[other].hostname.as_ref(), own);
                        other != index && !(is_wider && hostname_covers(own, Some(name)))
                    },
                ),
            );
        }
        others
    }
}

#[cfg(test)]
mod tests;
