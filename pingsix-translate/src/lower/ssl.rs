//! Certificates to Ssl documents.
//!
//! A document has all names for which the listeners and Ingresses of one namespace show the certificate of one Secret, so
//! a certificate stands in as many documents as there are namespaces that show it. Documents of different namespaces are
//! apart so that no namespace makes a document of another one larger.
//!
//! PingSIX refuses a name that stands in two documents. Each name has one certificate here, and
//! [`pingsix_sink::plan`](https://docs.rs/pingsix-sink) orders the writes when a name passes from one document to another.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use super::id::{Ids, Name};
use crate::attach::{Listener, ServerName};
use crate::bounds;
use crate::model::{
    Age, Capability, CertificateReference, Hostname, ObjectName, Provenance, Refusal, hostname_and_wider,
};
use crate::pingsix::{Ssl, listed_len};
use crate::references::Certificate;

/// A name a client may ask for, and the certificate it gets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServedCertificate {
    pub(crate) name: ServerName,
    pub(crate) shown: Arc<PresentedCertificate>,
}

/// A certificate, and the part of an object that shows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PresentedCertificate {
    pub(crate) certificate: Certificate,
    pub(crate) by: Arc<CertificateReference>,
    /// The age of that object.
    pub(crate) age: Age,
}

/// The key of a certificate's document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SslKey {
    /// The namespace of the objects that show it.
    namespace: Arc<str>,
    secret: ObjectName,
}

impl PresentedCertificate {
    /// The document that a name it is shown for belongs to.
    pub(crate) fn document(&self) -> SslKey {
        SslKey { namespace: self.by.object().name.namespace.clone(), secret: self.certificate.secret.clone() }
    }
}

/// The certificates of a data plane.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServedCertificates {
    /// Sorted by name, one per name.
    pub(crate) served: Vec<ServedCertificate>,
    /// Certificates that are not shown because of other listeners: index of the listener, limitation.
    pub(crate) limitations: Vec<(usize, Refusal)>,
}

/// Bytes of the names in each document, which are bounded by [`bounds::NAME_BYTES`].
#[derive(Debug, Default)]
pub(crate) struct NameBytes(BTreeMap<SslKey, usize>);

impl NameBytes {
    /// Takes room for one name more in a document; `false` when there is none.
    pub(crate) fn take(&mut self, document: &SslKey, name: &ServerName) -> bool {
        let bytes = name.listed_bytes();
        if let Some(taken) = self.0.get_mut(document) {
            let fits = *taken + bytes <= bounds::NAME_BYTES;
            *taken += if fits { bytes } else { 0 };
            return fits;
        }
        self.0.insert(document.clone(), bytes);
        true
    }
}

/// The certificates of a data plane's listeners. PingSIX refuses a name that has two, so of listeners on several
/// ports, the first provides it.
pub(crate) fn certificates(listeners: &[Listener], served: &[usize]) -> ServedCertificates {
    let selection = Selection::new(listeners, served);
    let mut providers: BTreeMap<ServerName, (usize, Arc<PresentedCertificate>)> = BTreeMap::new();
    let mut name_bytes = NameBytes::default();
    let mut limitations = Vec::new();
    for &index in served {
        let listener = &listeners[index];
        for (certificate, names) in listener.certificates() {
            let is_unshown = names.is_empty();
            let mut own = names
                .into_iter()
                .filter(|name| selection.listener(listener.port, name) == Some(index))
                .peekable();
            if own.peek().is_none() && !is_unshown {
                limitations.push((index, taken_by_narrower(certificate)));
            }
            let by = reference(listener, certificate);
            let shown =
                Arc::new(PresentedCertificate { certificate: certificate.clone(), by, age: listener.age });
            let document = shown.document();
            let mut lost: BTreeMap<usize, FirstNames> = BTreeMap::new();
            let mut beyond = FirstNames::default();
            for name in own {
                match providers.entry(name) {
                    Entry::Occupied(entry) => {
                        let (provider, first) = entry.get();
                        if !first.certificate.is_same(certificate) {
                            lost.entry(*provider).or_default().add(entry.key());
                        }
                    }
                    Entry::Vacant(entry) if name_bytes.take(&document, entry.key()) => {
                        entry.insert((index, shown.clone()));
                    }
                    Entry::Vacant(entry) => beyond.add(entry.key()),
                }
            }
            limitations.extend(
                lost.iter()
                    .map(|(provider, names)| (index, taken(certificate, names, &listeners[*provider]))),
            );
            limitations.extend((beyond.count > 0).then(|| (index, beyond_bytes(certificate, &beyond))));
        }
    }
    let served = providers.into_iter().map(|(name, (_, shown))| ServedCertificate { name, shown }).collect();
    ServedCertificates { served, limitations }
}

fn reference(listener: &Listener, certificate: &Certificate) -> Arc<CertificateReference> {
    Arc::new(CertificateReference::Listener {
        owner: listener.owner.clone(),
        listener: listener.name.clone(),
        field: certificate.at.clone(),
    })
}

/// Names that a message lists: the first few, and how many there are.
#[derive(Debug, Default)]
pub(crate) struct FirstNames {
    first: Vec<String>,
    pub(crate) count: usize,
}

impl FirstNames {
    /// Limit of the names in a message.
    const MAX_LISTED_NAMES: usize = 8;

    pub(crate) fn add(&mut self, name: &ServerName) {
        if self.first.len() < Self::MAX_LISTED_NAMES {
            self.first.push(name.to_string());
        }
        self.count += 1;
    }
}

impl fmt::Display for FirstNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.join(", "))?;
        match self.count - self.first.len() {
            0 => Ok(()),
            others => write!(f, " and {others} others"),
        }
    }
}

/// The listener of a port that a request selects: the one with the most specific hostname. Other listeners may not
/// present a certificate for it.
struct Selection(BTreeMap<(u16, Option<Hostname>), usize>);

impl Selection {
    fn new(listeners: &[Listener], served: &[usize]) -> Self {
        let place = |index: usize| (listeners[index].port, listeners[index].hostname.clone());
        Self(served.iter().map(|&index| (place(index), index)).collect())
    }

    fn listener(&self, port: u16, name: &ServerName) -> Option<usize> {
        let at = |hostname: Option<Hostname>| self.0.get(&(port, hostname)).copied();
        let name = match name {
            ServerName::Any => None,
            ServerName::Named(name) => Some(name),
        };
        hostname_and_wider(name).find_map(at)
    }
}

fn taken_by_narrower(certificate: &Certificate) -> Refusal {
    Refusal::limited(
        certificate.at.clone(),
        format!(
            "The certificate of Secret {} is not shown, because each of its names selects a more specific listener.",
            certificate.secret
        ),
    )
}

fn taken(certificate: &Certificate, names: &FirstNames, provider: &Listener) -> Refusal {
    let values =
        [&certificate.secret.to_string(), &names.to_string(), &*provider.name, &provider.port.to_string()];
    Capability::CertificateOfPort.limit_with(certificate.at.clone(), &values)
}

fn beyond_bytes(certificate: &Certificate, names: &FirstNames) -> Refusal {
    Refusal::limited(certificate.at.clone(), beyond_name_bytes(&certificate.secret, names))
}

/// Says that a certificate is not shown for some names, because its document has no room for them.
pub(crate) fn beyond_name_bytes(secret: &ObjectName, names: &FirstNames) -> String {
    format!(
        "The certificate of Secret {secret} is not shown for {names}, because the names it is shown for in this \
         namespace would take more than {} bytes.",
        bounds::NAME_BYTES
    )
}

/// The id of the document of a certificate.
pub(super) fn id_of_certificate(document: &SslKey, ids: &mut Ids) -> String {
    let SslKey { namespace, secret } = document;
    ids.assign(&Name::new('s', &[namespace, &secret.namespace, &secret.name]))
}

/// A certificate with all names of one document.
#[derive(Debug)]
pub(super) struct SslDocument<'a> {
    certificate: &'a Certificate,
    /// At least one, sorted. All have the same Secret.
    names: Vec<&'a ServedCertificate>,
}

impl PartialEq for SslDocument<'_> {
    fn eq(&self, other: &Self) -> bool {
        fn parts<'a>(
            document: &SslDocument<'a>,
        ) -> impl Iterator<Item = (&'a ServerName, &'a CertificateReference)> {
            document.names.iter().map(|served| (&served.name, &*served.shown.by))
        }
        self.certificate.is_same(other.certificate) && parts(self).eq(parts(other))
    }
}

impl SslDocument<'_> {
    pub(super) fn ssl(&self) -> Ssl {
        Ssl {
            cert: self.certificate.leaf().to_owned(),
            key: self.certificate.private_key().to_owned(),
            snis: self.names.iter().map(|served| served.name.to_string()).collect(),
            ..Ssl::default()
        }
    }

    pub(super) fn provenance(&self) -> Provenance {
        let by = self.names.iter().map(|served| served.shown.by.clone()).collect();
        Provenance::Certificate { secret: self.certificate.key(), by }
    }
}

impl ServedCertificates {
    /// The documents of the presented certificates, by key.
    pub(super) fn documents(
        &self,
        is_shown: impl Fn(&ServedCertificate) -> bool,
    ) -> BTreeMap<SslKey, SslDocument<'_>> {
        let mut documents: BTreeMap<SslKey, SslDocument<'_>> = BTreeMap::new();
        for served in self.served.iter().filter(|served| is_shown(served)) {
            let document = documents
                .entry(served.shown.document())
                .or_insert_with(|| SslDocument { certificate: &served.shown.certificate, names: Vec::new() });
            document.names.push(served);
        }
        documents
    }
}

/// The size of certificates' documents in a list response, known before they are built: the sum over the documents of
/// [`Certificate::listed_bytes`] and of [`ServerName::listed_bytes`] for each name, besides the prefix of the key.
impl Certificate {
    /// Bytes of a document without names.
    pub(crate) fn listed_bytes(&self) -> usize {
        /// `ssls/` and an id, which has 13 characters unless two collide.
        const KEY: usize = 5 + 13;
        // The first name has no comma before it.
        const FIELDS: usize = r#"{"cert":"","key":"","snis":[]}"#.len() - 1;
        // In JSON, the end of a line takes two bytes.
        let escaped = |pem: &str| pem.len() + pem.bytes().filter(|byte| *byte == b'\n').count();
        listed_len(KEY, FIELDS + escaped(self.leaf()) + escaped(self.private_key()))
    }
}

impl ServerName {
    /// Bytes that the name adds to a document: quotes and a comma.
    pub(crate) fn listed_bytes(&self) -> usize {
        3 + match self {
            Self::Any => 1,
            Self::Named(hostname) => hostname.as_str().len(),
        }
    }
}

#[cfg(test)]
mod tests;
