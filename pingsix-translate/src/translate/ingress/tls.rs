//! `spec.tls` of Ingresses to certificates and the names they are served for.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressTLS;

use crate::attach::{Hostname, ServerName};
use crate::field::{self, FieldPath};
use crate::lower::ServedCertificate;
use crate::object::{Age, Kind, ObjectKey, ObjectName, compare_age};
use crate::provenance::{Provenance, Section};
use crate::quarantine::said_of;
use crate::resolve::{Certificate, References};
use crate::route::{Limit, Refusal};
use crate::snapshot::{Ingress, IngressSnapshot, key_of};
use crate::verdict::{Problem, Reason, Severity};

/// The certificates of a class, one per name. PingSIX refuses a name that has two, so the oldest Ingress with a usable
/// one provides it.
pub(super) fn certificates(
    snapshot: &IngressSnapshot,
    references: &References<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<ServedCertificate> {
    let mut oldest_first: Vec<(Age, Arc<ObjectKey>, &Ingress)> = snapshot
        .ingresses
        .values()
        .map(|ingress| {
            (Age::of(&ingress.metadata), Arc::new(key_of(Kind::Ingress, &ingress.metadata)), &**ingress)
        })
        .collect();
    oldest_first.sort_by(|left, right| compare_age((left.0, &left.1), (right.0, &right.1)));
    let mut taken = BTreeMap::new();
    for (age, key, ingress) in &oldest_first {
        let entries = ingress.spec.iter().flat_map(|spec| spec.tls.iter().flatten());
        for (index, content) in entries.enumerate() {
            let quarantine = &snapshot.referents.quarantine;
            if let Some(said) = said_of(quarantine, key, Section::Tls(index)) {
                let message = format!(
                    "PingSIX refuses what becomes of it, so it is not shown until it changes: {said}"
                );
                problems.push(Refusal::new(field::tls(index), Reason::Quarantined, message).of(key));
                continue;
            }
            Entry { key, age: *age, index, content }.take_names(references, &mut taken, problems);
        }
    }
    let served = |(name, Taken { certificate, by, age, index })| {
        let provenance =
            Provenance::IngressCertificate { ingress: by, tls: index, secret: certificate.key() };
        ServedCertificate { name, certificate, provenance, age }
    };
    taken.into_iter().map(served).collect()
}

/// An entry of `spec.tls`.
struct Entry<'a> {
    key: &'a Arc<ObjectKey>,
    age: Age,
    index: usize,
    content: &'a IngressTLS,
}

/// What a name has got.
struct Taken {
    certificate: Certificate,
    by: Arc<ObjectKey>,
    age: Age,
    /// Index into its `spec.tls`.
    index: usize,
}

impl Entry<'_> {
    /// Takes the names that no earlier entry has.
    fn take_names(
        &self,
        references: &References<'_>,
        taken: &mut BTreeMap<ServerName, Taken>,
        problems: &mut Vec<Problem>,
    ) {
        let Some(secret) = self.content.secret_name.as_deref().filter(|name| !name.is_empty()) else {
            let message = "Without a Secret, the default certificate of the data plane is used.";
            problems.push(self.warning(self.field(), Reason::Limited, message));
            return;
        };
        let secret = ObjectName::new(self.key.name.namespace.clone(), secret);
        let at = self.field().child("secretName");
        let certificate = match references.certificate_of(secret, &at, &at) {
            Ok(certificate) => certificate,
            Err(refusal) => {
                problems.push(refusal.of(self.key));
                return;
            }
        };
        let mut is_shown = false;
        for (name, field) in self.names(&certificate, problems) {
            match taken.get(&name) {
                // One certificate may serve several Ingresses, each of which names it.
                Some(Taken { certificate: same, .. }) if same.is_same(&certificate) => {}
                Some(Taken { by, index, .. }) => {
                    let message = format!(
                        "The certificate is not shown for \"{name}\": spec.tls[{index}] of {by} has one for it and \
                         comes first."
                    );
                    problems.push(self.warning(field, Reason::Shadowed, message));
                }
                None => {
                    is_shown = true;
                    let (certificate, by) = (certificate.clone(), self.key.clone());
                    taken.insert(name, Taken { certificate, by, age: self.age, index: self.index });
                }
            }
        }
        problems.extend(certificate.chain_limit().filter(|_| is_shown).map(|limit| limit.of(self.key)));
    }

    /// The names to show a certificate for, each with the field it comes from: the hosts, whatever the certificate is
    /// valid for, since the author says so; without hosts, those the certificate is for.
    fn names(&self, certificate: &Certificate, problems: &mut Vec<Problem>) -> Vec<(ServerName, FieldPath)> {
        let hosts = self.content.hosts.as_deref().unwrap_or_default();
        if hosts.is_empty() {
            if certificate.names.is_empty() {
                let message = format!(
                    "The certificate of Secret {} is for no name and there are no hosts, so it is not shown.",
                    certificate.secret
                );
                problems.push(Limit::new(self.field(), message).of(self.key));
            }
            let names = certificate.names.iter().cloned().map(ServerName::Named);
            return names.map(|name| (name, self.field())).collect();
        }
        let mut names = Vec::with_capacity(hosts.len());
        for (index, host) in hosts.iter().enumerate() {
            let at = self.field().child("hosts").index(index);
            match Hostname::parse(host) {
                Ok(hostname) => names.push((ServerName::Named(hostname), at)),
                Err(flaw) => {
                    let message = format!("\"{host}\" is not a name a client could ask for: {flaw}.");
                    problems.push(Refusal::new(at, Reason::UnsupportedValue, message).of(self.key));
                }
            }
        }
        names
    }

    fn field(&self) -> FieldPath {
        field::tls(self.index)
    }

    fn warning(&self, field: FieldPath, reason: Reason, message: impl Into<String>) -> Problem {
        let (object, message) = (self.key.clone(), message.into());
        Problem { object, field, severity: Severity::Warning, reason, message }
    }
}
