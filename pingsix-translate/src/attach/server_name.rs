//! The server names for which a listener shows each of its certificates.

use std::collections::BTreeSet;
use std::fmt;

use super::{Listener, ListenerState, Protocol};
use crate::model::{Hostname, Refusal};
use crate::references::Certificate;

/// The server name in a TLS handshake. Displays as PingSIX writes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServerName {
    /// Any name without a certificate of its own (`src/proxy/ssl.rs`).
    Any,
    /// One name, or the names that a wildcard covers.
    Named(Hostname),
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Named(hostname) => hostname.fmt(f),
        }
    }
}

impl Listener {
    /// The certificates of a served listener, each with the names for which it is shown. A certificate without names is
    /// never shown.
    ///
    /// A single certificate is shown for the hostname of the listener, whatever its own names are. Of several certificates,
    /// each is shown for those of its names that are within the hostname; the first reference wins. The first certificate is
    /// also shown for the hostname itself if no other is, so that PingSIX never falls back to its default certificate.
    pub(crate) fn certificates(&self) -> Vec<(&Certificate, BTreeSet<ServerName>)> {
        let ListenerState::Served { certificates } = &self.state else { return Vec::new() };
        let mut taken = BTreeSet::new();
        let mut shown: Vec<(&Certificate, BTreeSet<ServerName>)> = certificates
            .iter()
            .map(|certificate| {
                let within: BTreeSet<ServerName> = match certificates.len() {
                    1 => BTreeSet::new(),
                    _ => names_within(certificate, self.hostname.as_ref()).collect(),
                };
                (certificate, within.into_iter().filter(|name| taken.insert(name.clone())).collect())
            })
            .collect();
        let own = self.hostname.clone().map_or(ServerName::Any, ServerName::Named);
        if let Some((_, names)) = shown.first_mut()
            && !taken.contains(&own)
        {
            names.insert(own);
        }
        shown
    }

    /// The limitations for certificates that clients see in part or not at all.
    pub(super) fn certificate_limitations(&self) -> Vec<Refusal> {
        if self.protocol == Some(Protocol::Tls) || self.is_fronted() {
            // The stream proxy terminates TLS here, with whole chains and all certificates.
            return Vec::new();
        }
        let shown = self.certificates();
        shown.iter().filter_map(|(certificate, names)| self.certificate_limit(certificate, names)).collect()
    }

    fn certificate_limit(
        &self,
        certificate: &Certificate,
        shown_for: &BTreeSet<ServerName>,
    ) -> Option<Refusal> {
        let secret = &certificate.secret;
        let message = if !shown_for.is_empty() {
            return certificate.chain_limitation();
        } else if names_within(certificate, self.hostname.as_ref()).next().is_none() {
            format!(
                "The certificate of Secret {secret} is not shown, because it is for no name within the hostname of \
                 the listener."
            )
        } else {
            format!(
                "The certificate of Secret {secret} is not shown, because earlier ones are for each of its names \
                 too."
            )
        };
        Some(Refusal::limited(certificate.at.clone(), message))
    }
}

/// The server names that a certificate and a listener's hostname have in common.
fn names_within<'a>(
    certificate: &'a Certificate,
    hostname: Option<&'a Hostname>,
) -> impl Iterator<Item = ServerName> + 'a {
    certificate.names().iter().filter_map(move |name| common_names(name, hostname)).map(ServerName::Named)
}

/// The intersection of a name of a certificate, whose wildcard stands for one label, and a listener's hostname, whose
/// wildcard stands for any number of labels.
fn common_names(certified: &Hostname, hostname: Option<&Hostname>) -> Option<Hostname> {
    match hostname {
        None => Some(certified.clone()),
        Some(hostname) if hostname.covers(certified) => Some(certified.clone()),
        // A narrower wildcard covers only names with more labels than the certificate's.
        Some(hostname) if hostname.is_wildcard() => None,
        Some(hostname) => (hostname.wider().next().as_ref() == Some(certified)).then(|| hostname.clone()),
    }
}

#[cfg(test)]
mod tests;
