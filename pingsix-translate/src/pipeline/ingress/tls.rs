//! Certificates of `spec.tls`, and the server names for which data planes show them.

use std::collections::{BTreeMap, BTreeSet, btree_map as map};
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressTLS;

use super::bounded_problems::BoundedProblems;
use super::host_ingresses::IngressByAge;
use super::hosts::{Hosts, tls_of};
use crate::annotations::MoreHosts;
use crate::attach::ServerName;
use crate::bounds;
use crate::lower::{FirstNames, NameBytes, PresentedCertificate, ServedCertificate, beyond_name_bytes};
use crate::model::{
    Age, CertificateReference, FieldPath, Hostname, HostnameError, ObjectKey, ObjectName, Problem, Reason,
    Refusal, Section, Severity, field,
};
use crate::quarantine::message_of;
use crate::references::{Certificate, References};
use crate::snapshot::IngressSnapshot;

/// The certificates of a class, one per name. PingSIX refuses a name with two certificates, so the oldest Ingress
/// with a usable certificate provides it.
pub(super) fn certificates<'i>(
    snapshot: &IngressSnapshot,
    (oldest_first, hosts): (impl Iterator<Item = &'i IngressByAge>, &Hosts),
    references: &References<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<ServedCertificate> {
    let mut taken = TakenNames::default();
    for IngressByAge { age, key } in oldest_first {
        let entries = snapshot.ingresses.get(&key.name).into_iter().flat_map(|ingress| tls_of(ingress));
        let more_hosts = hosts.more_hosts(key);
        let mut names = 0;
        for (index, content) in entries.clone().enumerate() {
            let added = added_names(&more_hosts, content, entries.clone());
            let entry = Entry { key, age: *age, index, content, added };
            let certificate = entry.certificate(snapshot, references, problems);
            // An entry without a name counts too, because the entry has a verdict.
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
    /// Names that annotations add to the hosts.
    added: Vec<AddedName>,
}

/// A server name that an annotation adds to the hosts of an entry.
struct AddedName {
    name: Hostname,
    /// Whether the certificate has to be valid for it: the host is redirected only.
    has_to_cover: bool,
}

/// The names that annotations add to an entry of `spec.tls`, as in ingress-nginx: aliases have the certificate of their
/// host, and a host that is redirected has the one of its target. Another entry with the name counts instead.
fn added_names<'a>(
    more: &MoreHosts,
    entry: &IngressTLS,
    entries: impl Iterator<Item = &'a IngressTLS>,
) -> Vec<AddedName> {
    if more.is_empty() {
        return Vec::new();
    }
    let parsed = |entry: &IngressTLS| -> BTreeSet<Hostname> {
        entry.hosts.iter().flatten().filter_map(|host| Hostname::parse(host).ok()).collect()
    };
    let own = parsed(entry);
    let aliases = more.aliases.iter().filter(|_| more.main.as_ref().is_some_and(|main| own.contains(main)));
    let aliases = aliases.map(|(_, alias)| AddedName { name: alias.clone(), has_to_cover: false });
    let redirects = more.redirects.iter().filter(|redirect| own.contains(&redirect.to));
    let redirects = redirects.map(|redirect| AddedName { name: redirect.from.clone(), has_to_cover: true });
    let mut added: Vec<AddedName> = aliases.chain(redirects).collect();
    if !added.is_empty() {
        let listed: BTreeSet<Hostname> = entries.flat_map(parsed).collect();
        added.retain(|added| !listed.contains(&added.name));
    }
    added
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
                format!("PingSIX refuses this certificate. It is not shown until the entry changes: {said}");
            problems.push(Refusal::new(self.field(), Reason::Quarantined, message).of(self.key));
            return None;
        }
        let Some(secret) = self.content.secret_name.as_deref().filter(|name| !name.is_empty()) else {
            let message = "Without a Secret, the default certificate of the data plane is used.";
            problems.push(Refusal::limited(self.field(), message).of(self.key));
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

    /// The number of server names of the entry.
    fn count(&self, certificate: Option<&Certificate>) -> usize {
        match self.hosts() {
            [] => certificate.map_or(0, |certificate| certificate.names().len()),
            hosts => hosts.len() + self.added.len(),
        }
    }

    fn beyond_names(&self, names: usize) -> Problem {
        let message = format!(
            "With this entry, spec.tls has {names} names, and an Ingress may have {}. The certificates of this entry \
             and of later entries are not shown.",
            bounds::NAMES
        );
        Refusal::new(self.field(), Reason::UnsupportedValue, message).of(self.key)
    }

    /// Takes the names that no earlier entry has.
    ///
    /// The names are the hosts of the entry, even if the certificate is not valid for them. An entry without hosts has
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
                "Secret {} has a certificate without DNS names, and the entry has no hosts, so the certificate is not \
                 shown.",
                certificate.secret
            );
            problems.push(Refusal::limited(self.field(), message).of(self.key));
        }
        let by = Arc::new(CertificateReference::Ingress { ingress: self.key.clone(), tls: self.index });
        let shown = Arc::new(PresentedCertificate { certificate, by, age: self.age });
        let document = shown.document();
        let mut name_problems = BoundedProblems::new(problems, self.key);
        let (mut is_shown, mut beyond) = (false, FirstNames::default());
        for (name, at) in self.names(&shown.certificate) {
            let name = match name {
                Ok(name) => {
                    if hosts.other_owner(Some(&name), &self.key.name.namespace).is_some() {
                        name_problems.add(Severity::Error, Reason::HostNotOwned, at, |at| {
                            let message = format!(
                                "The certificate is not shown for \"{name}\", which belongs to another namespace: its Ingress \
                                 is the oldest with this host."
                            );
                            (self.field_of(at), message)
                        });
                        continue;
                    }
                    ServerName::Named(name)
                }
                Err((host, error)) => {
                    name_problems.add(Severity::Error, Reason::UnsupportedValue, at, |at| {
                        (self.field_of(at), format!("\"{host}\" is not a server name: {error}."))
                    });
                    continue;
                }
            };
            match taken.names.entry(name) {
                // One certificate may serve several Ingresses, each of which names it.
                map::Entry::Occupied(entry) if entry.get().certificate.is_same(&shown.certificate) => {}
                map::Entry::Occupied(entry) => name_problems.add(Severity::Warning, Reason::Shadowed, at, |at| {
                    let origin = entry.get().by.origin();
                    let message = format!(
                        "The certificate is not shown for \"{}\": {} of {} has a certificate for this name and takes \
                         precedence.",
                        entry.key(),
                        origin.field(),
                        origin.object
                    );
                    (self.field_of(at), message)
                }),
                map::Entry::Vacant(entry) if taken.bytes.take(&document, entry.key()) => {
                    is_shown = true;
                    entry.insert(shown.clone());
                }
                map::Entry::Vacant(entry) => beyond.add(entry.key()),
            }
        }
        name_problems.finish(|_, count| {
            (
                self.field(),
                format!("The certificate is not shown for {count} other names of the entry either."),
            )
        });
        if beyond.count > 0 {
            let message = beyond_name_bytes(&shown.certificate.secret, &beyond);
            problems.push(Refusal::new(self.field(), Reason::UnsupportedValue, message).of(self.key));
        }
        problems.extend(
            shown
                .certificate
                .chain_limitation()
                .filter(|_| is_shown)
                .map(|limitation| limitation.of(self.key)),
        );
    }

    /// The server names of the entry, each with the index of its host if the name is a host of the entry.
    fn names<'n>(
        &'n self,
        certificate: &'n Certificate,
    ) -> impl Iterator<Item = (Result<Hostname, (&'n str, HostnameError)>, Option<usize>)> {
        let hosts = self.hosts().iter().enumerate().map(|(index, host)| {
            (Hostname::parse(host).map_err(|error| (host.as_str(), error)), Some(index))
        });
        let own = certificate.names().iter().filter(|_| self.hosts().is_empty());
        let is_shown = |added: &&AddedName| {
            !added.has_to_cover || certificate.names().iter().any(|name| name.covers(&added.name))
        };
        let added = self.added.iter().filter(is_shown).map(|added| &added.name);
        hosts.chain(own.chain(added).map(|name| (Ok(name.clone()), None)))
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
}
