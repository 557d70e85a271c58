//! `spec.tls` of Ingresses to certificates and the names they are served for.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressTLS;

use crate::attach::Hostname;
use crate::field::FieldPath;
use crate::lower::{ANY_NAME, ServedCertificate, compare_slashed};
use crate::object::{Age, Kind, ObjectKey, ObjectName};
use crate::provenance::Provenance;
use crate::resolve::{Certificate, References};
use crate::route::Refusal;
use crate::snapshot::{Ingress, key_of};
use crate::verdict::{Problem, Reason, Severity};

/// The certificates of a class, one per name. PingSIX refuses a name that has two, so the oldest Ingress with a usable
/// one provides it.
pub(super) fn certificates(
    ingresses: &BTreeMap<ObjectName, Arc<Ingress>>,
    references: &References<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<ServedCertificate> {
    let mut oldest_first: Vec<(Age, Arc<ObjectKey>, &Ingress)> = ingresses
        .values()
        .map(|ingress| {
            (Age::of(&ingress.metadata), Arc::new(key_of(Kind::Ingress, &ingress.metadata)), &**ingress)
        })
        .collect();
    oldest_first.sort_by(|left, right| left.0.cmp(&right.0).then_with(|| compare_slashed(&left.1, &right.1)));
    let mut taken = BTreeMap::new();
    for (_, key, ingress) in &oldest_first {
        let entries = ingress.spec.iter().flat_map(|spec| spec.tls.iter().flatten());
        for (index, content) in entries.enumerate() {
            Entry { key, index, content }.take_names(references, &mut taken, problems);
        }
    }
    let served = |(sni, Taken { certificate, by, index })| ServedCertificate {
        sni,
        certificate,
        provenance: Provenance::IngressCertificate { ingress: by, tls: index },
    };
    taken.into_iter().map(served).collect()
}

/// An entry of `spec.tls`.
struct Entry<'a> {
    key: &'a Arc<ObjectKey>,
    index: usize,
    content: &'a IngressTLS,
}

/// What a name has got.
struct Taken {
    certificate: Certificate,
    by: Arc<ObjectKey>,
    /// Index into its `spec.tls`.
    index: usize,
}

impl Entry<'_> {
    /// Takes the names that no earlier entry has.
    fn take_names(
        &self,
        references: &References<'_>,
        taken: &mut BTreeMap<String, Taken>,
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
        for (sni, field) in self.names(problems) {
            match taken.get(&sni) {
                // One certificate may serve several Ingresses, each of which names it.
                Some(Taken { certificate: same, .. }) if *same == certificate => {}
                Some(Taken { by, index, .. }) => {
                    let message = format!(
                        "The certificate is not used for \"{sni}\": spec.tls[{index}] of {by} has one for it and comes \
                         first."
                    );
                    problems.push(self.warning(field, Reason::Shadowed, message));
                }
                None => {
                    let (certificate, by) = (certificate.clone(), self.key.clone());
                    taken.insert(sni, Taken { certificate, by, index: self.index });
                }
            }
        }
    }

    /// The names to serve the certificate for, each with the field it comes from.
    fn names(&self, problems: &mut Vec<Problem>) -> Vec<(String, FieldPath)> {
        let hosts = self.content.hosts.as_deref().unwrap_or_default();
        if hosts.is_empty() {
            return vec![(ANY_NAME.to_owned(), self.field())];
        }
        let mut names = Vec::with_capacity(hosts.len());
        for (index, host) in hosts.iter().enumerate() {
            let at = self.field().child("hosts").index(index);
            match Hostname::parse(host) {
                Ok(hostname) => names.push((hostname.as_str().to_owned(), at)),
                Err(flaw) => {
                    let message = format!("\"{host}\" is not a name a client could ask for: {flaw}.");
                    problems.push(Refusal::new(at, Reason::UnsupportedValue, message).of(self.key));
                }
            }
        }
        names
    }

    fn field(&self) -> FieldPath {
        FieldPath::new("spec").child("tls").index(self.index)
    }

    fn warning(&self, field: FieldPath, reason: Reason, message: impl Into<String>) -> Problem {
        let (object, message) = (self.key.clone(), message.into());
        Problem { object, field, severity: Severity::Warning, reason, message }
    }
}
