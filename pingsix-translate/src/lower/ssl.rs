//! Certificates to Ssl documents.
//!
//! There is a document per name, and the name is its identity: PingSIX refuses a name that stands twice, and so it
//! cannot, on no prefix of a plan, even while a name passes from one certificate to another. A document per
//! certificate would be smaller where a certificate has many names, but a name that moves would stand twice, or not
//! at all, in between.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::id::{Ids, Name};
use crate::attach::{Hostname, Listener, ServerName};
use crate::object::{Age, ObjectKey};
use crate::pingsix::Ssl;
use crate::provenance::Provenance;
use crate::resolve::Certificate;
use crate::route::Limit;

/// A name a client may ask for, and the certificate it gets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServedCertificate {
    pub(crate) name: ServerName,
    pub(crate) certificate: Certificate,
    /// Whose it is.
    pub(crate) provenance: Provenance,
    /// The age of that object.
    pub(crate) age: Age,
}

/// The certificates of a data plane.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServedCertificates {
    /// Sorted by name, one per name.
    pub(crate) served: Vec<ServedCertificate>,
    /// Certificates that are not shown because of other listeners: index of the listener, limit.
    pub(crate) limits: Vec<(usize, Limit)>,
}

/// The certificates of a data plane's listeners. PingSIX refuses a name that has two, so of listeners on several
/// ports, the first provides it.
pub(crate) fn certificates(listeners: &[Listener], served: &[usize]) -> ServedCertificates {
    let selection = Selection::new(listeners, served);
    let mut providers: BTreeMap<ServerName, (usize, &Certificate)> = BTreeMap::new();
    let mut limits = Vec::new();
    for &index in served {
        let listener = &listeners[index];
        for (certificate, names) in listener.certificates() {
            let is_unshown = names.is_empty();
            let mut own = names
                .into_iter()
                .filter(|name| selection.listener(listener.port, name) == Some(index))
                .peekable();
            if own.peek().is_none() && !is_unshown {
                limits.push((index, taken_by_narrower(certificate)));
            }
            let mut lost: BTreeMap<usize, Vec<String>> = BTreeMap::new();
            for name in own {
                let text = name.to_string();
                let &mut (provider, shown) = providers.entry(name).or_insert((index, certificate));
                if !shown.is_same(certificate) {
                    lost.entry(provider).or_default().push(text);
                }
            }
            limits.extend(
                lost.iter()
                    .map(|(provider, names)| (index, taken(certificate, names, &listeners[*provider]))),
            );
        }
    }
    let served = providers
        .into_iter()
        .map(|(name, (index, certificate))| ServedCertificate {
            name,
            certificate: certificate.clone(),
            age: listeners[index].age,
            provenance: Provenance::Certificate {
                owner: listeners[index].owner.clone(),
                listener: listeners[index].name.clone(),
                field: certificate.at.clone(),
                secret: certificate.key(),
            },
        })
        .collect();
    ServedCertificates { served, limits }
}

/// Which listener of a port a request selects: the one with the most specific hostname. No other one may show a
/// certificate for it.
struct Selection(BTreeMap<(u16, Option<Hostname>), usize>);

impl Selection {
    fn new(listeners: &[Listener], served: &[usize]) -> Self {
        let place = |index: usize| (listeners[index].port, listeners[index].hostname.clone());
        Self(served.iter().map(|&index| (place(index), index)).collect())
    }

    fn listener(&self, port: u16, name: &ServerName) -> Option<usize> {
        let at = |hostname: Option<Hostname>| self.0.get(&(port, hostname)).copied();
        match name {
            ServerName::Any => at(None),
            ServerName::Named(name) => {
                std::iter::once(name.clone()).chain(name.wider()).map(Some).chain([None]).find_map(at)
            }
        }
    }
}

fn taken_by_narrower(certificate: &Certificate) -> Limit {
    Limit::new(
        certificate.at.clone(),
        format!(
            "The certificate of Secret {} is not shown, because each of its names selects a more specific listener.",
            certificate.secret
        ),
    )
}

fn taken(certificate: &Certificate, names: &[String], provider: &Listener) -> Limit {
    Limit::new(
        certificate.at.clone(),
        format!(
            "The certificate of Secret {} is not shown for {}, because PingSIX takes one per name, on whatever port, \
             and listener \"{}\" on port {} provides it; use layout perPort.",
            certificate.secret,
            names.join(", "),
            provider.name,
            provider.port
        ),
    )
}

/// The id of the document of a name.
pub(super) fn id_of_certificate(name: &ServerName, ids: &mut Ids) -> String {
    ids.assign(&Name::new('s', &[&name.to_string()]))
}

impl ServedCertificate {
    /// The Gateway, ListenerSet or Ingress that it is charged to.
    pub(super) const fn owner(&self) -> Option<&Arc<ObjectKey>> {
        match &self.provenance {
            Provenance::Certificate { owner, .. } => Some(owner),
            Provenance::IngressCertificate { ingress, .. } => Some(ingress),
            Provenance::Rules { .. }
            | Provenance::Guard { .. }
            | Provenance::Backend { .. }
            | Provenance::Status { .. }
            | Provenance::Redirect => None,
        }
    }

    /// The document, which has one name.
    pub(super) fn ssl(&self) -> Ssl {
        Ssl {
            cert: self.certificate.chain.to_string(),
            key: self.certificate.key.to_string(),
            snis: vec![self.name.to_string()],
            ..Ssl::default()
        }
    }
}

impl ServedCertificates {
    /// The certificate of each name.
    pub(super) fn by_name(&self) -> BTreeMap<&ServerName, &ServedCertificate> {
        self.served.iter().map(|served| (&served.name, served)).collect()
    }
}

#[cfg(test)]
mod tests;
