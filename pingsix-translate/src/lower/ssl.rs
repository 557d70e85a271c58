//! Listener certificates to Ssl documents.
//!
//! There is a document per name, and the name is its identity: PingSIX refuses a name that stands twice, and so it
//! cannot, on no prefix of a plan, even while a name passes from one certificate to another. A document per
//! certificate would be smaller where a certificate has many names, but a name that moves would stand twice, or not
//! at all, in between.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::id::Ids;
use crate::attach::{Listener, ServerName, hostname_precedence};
use crate::object::ObjectKey;
use crate::pingsix::{Config, DocumentKey, ResourceKind, Ssl};
use crate::provenance::Provenance;
use crate::resolve::Certificate;
use crate::route::Limit;

/// A name a client may ask for, and the certificate it gets.
#[derive(Clone, Debug)]
pub(crate) struct ServedCertificate {
    name: ServerName,
    listener: String,
    certificate: Certificate,
}

/// The certificates of a data plane.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServedCertificates {
    /// Sorted by name, one per name.
    served: Vec<ServedCertificate>,
    /// Certificates that are not shown because of other listeners: index of the listener, limit.
    pub(crate) limits: Vec<(usize, Limit)>,
}

/// Who provides a name.
type Providers<'a> = BTreeMap<ServerName, (usize, &'a Certificate)>;

/// The certificates of a data plane's listeners. PingSIX refuses a name that has two. The most specific listener
/// provides it, as it is the one that a request for the name selects; among those of several ports, the first.
pub(crate) fn certificates(listeners: &[Listener], served: &[usize]) -> ServedCertificates {
    let mut most_specific_first = served.to_vec();
    most_specific_first
        .sort_by_key(|&index| Reverse(hostname_precedence(listeners[index].hostname.as_ref())));
    let mut providers = Providers::new();
    for index in most_specific_first {
        for (certificate, names) in listeners[index].certificates() {
            for name in names {
                providers.entry(name).or_insert((index, certificate));
            }
        }
    }
    let limits = served
        .iter()
        .flat_map(|&index| {
            let shown = listeners[index].certificates();
            shown
                .iter()
                .flat_map(|(certificate, names)| limits_of(certificate, names, index, &providers, listeners))
                .map(|limit| (index, limit))
                .collect::<Vec<_>>()
        })
        .collect();
    let served = providers
        .into_iter()
        .map(|(name, (index, certificate))| ServedCertificate {
            name,
            listener: listeners[index].name.clone(),
            certificate: certificate.clone(),
        })
        .collect();
    ServedCertificates { served, limits }
}

/// What a certificate of a listener is not shown for because another listener provides the name.
fn limits_of(
    certificate: &Certificate,
    names: &BTreeSet<ServerName>,
    listener: usize,
    providers: &Providers<'_>,
    listeners: &[Listener],
) -> Vec<Limit> {
    let limit = |message: String| Limit::new(certificate.at.clone(), message);
    let mut lost: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for name in names {
        if let Some(&(provider, other)) = providers.get(name)
            && provider != listener
            && !other.is_same(certificate)
        {
            lost.entry(provider).or_default().push(name.to_string());
        }
    }
    let port = listeners[listener].port;
    let on_port = |provider: usize| listeners[provider].port == port;
    let lost_names: usize = lost.values().map(Vec::len).sum();
    if !names.is_empty() && lost_names == names.len() && lost.keys().all(|&provider| on_port(provider)) {
        return vec![limit(format!(
            "The certificate of Secret {} is not shown, because each of its names is the hostname of a more specific \
             listener.",
            certificate.secret
        ))];
    }
    // On the same port, the hosts of a more specific listener are that one's and nothing is lost.
    lost.into_iter()
        .filter(|&(provider, _)| !on_port(provider))
        .map(|(provider, names)| {
            let provider = &listeners[provider];
            limit(format!(
                "The certificate of Secret {} is not shown for {}, because PingSIX takes one per name, on whatever \
                 port, and listener \"{}\" on port {} provides it; use layout perPort.",
                certificate.secret,
                names.join(", "),
                provider.name,
                provider.port
            ))
        })
        .collect()
}

/// Writes one Ssl document per name.
pub(crate) fn write_certificates(
    gateway: &Arc<ObjectKey>,
    certificates: &ServedCertificates,
    ids: &mut Ids,
    config: &mut Config,
    provenance: &mut BTreeMap<DocumentKey, Provenance>,
) {
    for ServedCertificate { name, listener, certificate } in &certificates.served {
        let sni = name.to_string();
        let id = ids.assign('s', &[&sni]);
        let ssl = Ssl {
            cert: certificate.chain.to_string(),
            key: certificate.key.to_string(),
            snis: vec![sni],
            ..Ssl::default()
        };
        config.insert(id.clone(), ssl);
        let origin = Provenance::Certificate { gateway: gateway.clone(), listener: listener.clone() };
        provenance.insert(DocumentKey { kind: ResourceKind::Ssl, id }, origin);
    }
}

#[cfg(test)]
mod tests;
