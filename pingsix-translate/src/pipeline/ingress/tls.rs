//! `spec.tls` of Ingresses to certificates and the names they are served for.

use std::collections::{BTreeMap, btree_map as map};
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressTLS;

use super::hosts::Hosts;
use super::namers::AgedKey;
use crate::attach::ServerName;
use crate::bounds;
use crate::lower::{FirstNames, NameBytes, PresentedCertificate, ServedCertificate, beyond_name_bytes};
use crate::model::{
    Age, CertificateReference, FieldPath, Hostname, HostnameFlaw, Limit, ObjectKey, ObjectName, Problem,
    Reason, Refusal, Section, Severity, field,
};
use crate::quarantine::message_of;
use crate::references::{Certificate, References};
use crate::snapshot::{Ingress, IngressSnapshot};

/// The certificates that an Ingress asks for in `spec.tls`.
pub(super) fn tls_of(ingress: &Ingress) -> &[IngressTLS] {
    ingress.spec.as_ref().and_then(|spec| spec.tls.as_deref()).unwrap_or_default()
}

/// The certificates of a class, one per name. PingSIX refuses a name with two certificates, so the oldest Ingress
/// with a usable certificate provides it.
pub(super) fn certificates<'i>(
    snapshot: &IngressSnapshot,
    (oldest_first, hosts): (impl Iterator<Item = &'i AgedKey>, &Hosts),
    references: &References<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<ServedCertificate> {
    let mut taken = TakenNames::default();
    for AgedKey { age, key } in oldest_first {
        let entries = snapshot.ingresses.get(&key.name).into_iter().flat_map(|ingress| tls_of(ingress));
        let mut names = 0;
        for (index, content) in entries.enumerate() {
            let entry = Entry { key, age: *age, index, content };
            let certificate = entry.certificate(snapshot, references, problems);
            // An entry without a name counts too, because it has a verdict.
            names += entry.count(certificate.as_ref()).max(1);
            if names > bounds::NAMES {
                problems.push(entry.beyond_names(names));
                break;
            }
            if let Some(certificate) = certificate {
                entry.take_names(certificate, hosts, &mut taken, problems);
            }
        }
    }
    taken.names.into_iter().map(|(name, shown)| ServedCertificate { name, shown }).collect()
}

/// An entry of `spec.tls`.
struct Entry<'a> {
    key: &'a Arc<ObjectKey>,
    age: Age,
    index: usize,
    content: &'a IngressTLS,
}

/// The names that have a certificate.
#[derive(Default)]
struct TakenNames {
    names: BTreeMap<ServerName, Arc<PresentedCertificate>>,
    bytes: NameBytes,
}

impl Entry<'_> {
    /// The certificate of the entry, if it is usable.
    fn certificate(
        &self,
        snapshot: &IngressSnapshot,
        references: &References<'_>,
        problems: &mut Vec<Problem>,
    ) -> Option<Certificate> {
        if let Some(said) = message_of(&snapshot.referents.quarantine, self.key, Section::Tls(self.index)) {
            let message =
                format!("PingSIX refuses what becomes of it, so it is not shown until it changes: {said}");
            problems.push(Refusal::new(self.field(), Reason::Quarantined, message).of(self.key));
            return None;
        }
        let Some(secret) = self.content.secret_name.as_deref().filter(|name| !name.is_empty()) else {
            let message = "Without a Secret, the default certificate of the data plane is used.";
            problems.push(self.warning(self.field(), Reason::Limited, message));
            return None;
        };
        let secret = ObjectName::new(self.key.name.namespace.clone(), secret);
        let at = self.field().child("secretName");
        let certificate = references.certificate_of(secret, &at, &at);
        certificate.map_err(|refusal| problems.push(refusal.of(self.key))).ok()
    }

    fn hosts(&self) -> &[String] {
        self.content.hosts.as_deref().unwrap_or_default()
    }

    /// The number of names for which the certificate is to be shown.
    fn count(&self, certificate: Option<&Certificate>) -> usize {
        match self.hosts() {
            [] => certificate.map_or(0, |certificate| certificate.names().len()),
            hosts => hosts.len(),
        }
    }

    fn beyond_names(&self, names: usize) -> Problem {
        let message = format!(
            "With this entry, spec.tls has {names} names, and an Ingress may have {}. The certificates of this entry \
             and of those behind it are not shown.",
            bounds::NAMES
        );
        Refusal::new(self.field(), Reason::UnsupportedValue, message).of(self.key)
    }

    /// Takes the names that no earlier entry has.
    ///
    /// The names are the hosts of the entry, whatever names the certificate is valid for. An entry without hosts has
    /// the names of the certificate.
    fn take_names(
        &self,
        certificate: Certificate,
        hosts: &Hosts,
        taken: &mut TakenNames,
        problems: &mut Vec<Problem>,
    ) {
        if self.hosts().is_empty() && certificate.names().is_empty() {
            let message = format!(
                "The certificate of Secret {} is for no name and there are no hosts, so it is not shown.",
                certificate.secret
            );
            problems.push(Limit::new(self.field(), message).of(self.key));
        }
        let by = Arc::new(CertificateReference::Ingress { ingress: self.key.clone(), tls: self.index });
        let shown = Arc::new(PresentedCertificate { certificate, by, age: self.age });
        let document = shown.document();
        let mut name_problems = NameProblems { problems, one_by_one: 0, others: 0, severest: None };
        let (mut is_shown, mut beyond) = (false, FirstNames::default());
        for (name, at) in self.names(&shown.certificate) {
            let name = match name {
                Ok(name) => match hosts.other_owner(Some(&name), &self.key.name.namespace) {
                    None => ServerName::Named(name),
                    Some(owner) => {
                        name_problems.add(Severity::Error, Reason::HostNotOwned, || {
                            let message = format!(
                                "The certificate is not shown for \"{name}\", which belongs to namespace {}: {owner} is \
                                 the oldest Ingress that names it.",
                                owner.name.namespace
                            );
                            Refusal::new(self.field_of(at), Reason::HostNotOwned, message).of(self.key)
                        });
                        continue;
                    }
                },
                Err((host, flaw)) => {
                    name_problems.add(Severity::Error, Reason::UnsupportedValue, || {
                        let message = format!("\"{host}\" is not a name a client could ask for: {flaw}.");
                        Refusal::new(self.field_of(at), Reason::UnsupportedValue, message).of(self.key)
                    });
                    continue;
                }
            };
            match taken.names.entry(name) {
                // One certificate may serve several Ingresses, each of which names it.
                map::Entry::Occupied(entry) if entry.get().certificate.is_same(&shown.certificate) => {}
                map::Entry::Occupied(entry) => name_problems.add(Severity::Warning, Reason::Shadowed, || {
                    let origin = entry.get().by.origin();
                    let message = format!(
                        "The certificate is not shown for \"{}\": {} of {} has one for it and comes first.",
                        entry.key(),
                        origin.field(),
                        origin.object
                    );
                    self.warning(self.field_of(at), Reason::Shadowed, message)
                }),
                map::Entry::Vacant(entry) if taken.bytes.take(&document, entry.key()) => {
                    is_shown = true;
                    entry.insert(shown.clone());
                }
                map::Entry::Vacant(entry) => beyond.add(entry.key()),
            }
        }
        name_problems.finish(self);
        if beyond.count > 0 {
            let message = beyond_name_bytes(&shown.certificate.secret, &beyond);
            problems.push(Refusal::new(self.field(), Reason::UnsupportedValue, message).of(self.key));
        }
        problems.extend(shown.certificate.chain_limit().filter(|_| is_shown).map(|limit| limit.of(self.key)));
    }

    /// The names to show a certificate for, each with the index of its host if it is one.
    fn names<'n>(
        &'n self,
        certificate: &'n Certificate,
    ) -> impl Iterator<Item = (Result<Hostname, (&'n str, HostnameFlaw)>, Option<usize>)> {
        let hosts =
            self.hosts().iter().enumerate().map(|(index, host)| {
                (Hostname::parse(host).map_err(|flaw| (host.as_str(), flaw)), Some(index))
            });
        let own = certificate.names().iter().filter(|_| self.hosts().is_empty());
        hosts.chain(own.map(|name| (Ok(name.clone()), None)))
    }

    /// The field of a name.
    fn field_of(&self, host: Option<usize>) -> FieldPath {
        match host {
            Some(index) => self.field().child("hosts").index(index),
            None => self.field(),
        }
    }

    fn field(&self) -> FieldPath {
        field::tls(self.index)
    }

    fn warning(&self, field: FieldPath, reason: Reason, message: impl Into<String>) -> Problem {
        let (object, message) = (self.key.clone(), message.into());
        Problem { object, field, severity: Severity::Warning, reason, message }
    }
}

/// Problems of an entry's names. An entry may have thousands of names, so only the first few have a problem each.
struct NameProblems<'p> {
    problems: &'p mut Vec<Problem>,
    one_by_one: usize,
    others: usize,
    /// The severest of the further problems.
    severest: Option<(Severity, Reason)>,
}

impl NameProblems<'_> {
    const ONE_BY_ONE: usize = 8;

    fn add(&mut self, severity: Severity, reason: Reason, problem: impl FnOnce() -> Problem) {
        if self.one_by_one < Self::ONE_BY_ONE {
            self.one_by_one += 1;
            self.problems.push(problem());
            return;
        }
        self.others += 1;
        if self.severest.is_none_or(|(severest, _)| severity < severest) {
            self.severest = Some((severity, reason));
        }
    }

    fn finish(self, entry: &Entry<'_>) {
        let Some((severity, reason)) = self.severest else { return };
        let message =
            format!("The certificate is not shown for {} other names of the entry either.", self.others);
        let (object, field) = (entry.key.clone(), entry.field());
        self.problems.push(Problem { object, field, severity, reason, message });
    }
}
