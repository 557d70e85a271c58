//! BackendTLSPolicy: the server name that PingSIX verifies.

use std::collections::{BTreeMap, BTreeSet};

use gateway_api::backendtlspolicies::BackendTlsPolicyValidation as Validation;

use super::attached::{PolicyEffect, PolicySpec, UnsupportedTraffic};
use crate::model::{Capability, FieldPath, Hostname, Reason, Refusal};
use crate::references::References;
use crate::snapshot::{AuthorityRef, BackendTlsPolicy};

/// The one value of `wellKnownCACertificates` that Gateway API defines.
const SYSTEM: &str = "System";

/// The effect of a BackendTLSPolicy.
#[derive(Debug, PartialEq)]
pub(crate) struct BackendTlsEffect {
    /// The server name to send and to verify.
    pub(crate) hostname: Hostname,
}

impl PolicyEffect for BackendTlsEffect {
    type Object = BackendTlsPolicy;

    fn read(policy: &BackendTlsPolicy, references: &References<'_>) -> PolicySpec<Self> {
        let namespace = policy.metadata.namespace.as_deref().unwrap_or_default();
        let spec = FieldPath::new("spec");
        let at = spec.child("validation");
        let validation = &policy.spec.validation;
        let authorities = validation.ca_certificate_refs.iter().flatten().enumerate();
        let unresolved: Vec<Refusal> = authorities
            .filter_map(|(index, reference)| {
                let reference = AuthorityRef {
                    group: &reference.group,
                    kind: &reference.kind,
                    namespace: None,
                    name: &reference.name,
                };
                let at = at.child("caCertificateRefs").index(index);
                references.certificate_authorities(namespace, &reference, &at).err()
            })
            .collect();
        let hostname = verified_name(validation, unresolved.len(), &at);
        PolicySpec {
            effect: hostname.map(|hostname| Self { hostname }),
            unapplied: Vec::new(),
            unresolved,
            limitations: ignored_options(policy.spec.options.as_ref(), &spec.child("options")).collect(),
            protects: true,
        }
    }

    fn refuse(&self, UnsupportedTraffic { requests, connections }: &UnsupportedTraffic) -> Vec<Refusal> {
        let hostname = &self.hostname;
        let requests = (!requests.is_empty()).then(|| {
            let at = FieldPath::new("spec").child("validation").child("hostname");
            Capability::BackendNameBesideHost.refuse_with(at, &[hostname.as_str(), &joined(requests)])
        });
        let connections = (!connections.is_empty()).then(|| {
            let at = FieldPath::new("spec").child("targetRefs");
            Capability::TlsOfConnections.refuse_with(at, &[&joined(connections)])
        });
        requests.into_iter().chain(connections).collect()
    }
}

fn joined(references: &BTreeSet<String>) -> String {
    references.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The name that PingSIX has to verify, if PingSIX can honour the policy. PingSIX has one store of CA certificates and
/// verifies the name that it sends (`src/proxy/upstream`).
fn verified_name(
    validation: &Validation,
    unresolved: usize,
    at: &FieldPath,
) -> Result<Hostname, Vec<Refusal>> {
    let mut refusals = Vec::new();
    let refusal = |field: &str, reason, message: String| {
        let at = if field.is_empty() { at.clone() } else { at.child(field) };
        Refusal::new(at, reason, message)
    };
    let references = validation.ca_certificate_refs.as_deref().unwrap_or_default();
    let well_known = validation.well_known_ca_certificates.as_deref().filter(|name| !name.is_empty());
    if !references.is_empty() {
        if unresolved == references.len() {
            let message = "None of the references resolves to a CA certificate.".to_owned();
            refusals.push(refusal("caCertificateRefs", Reason::NoValidCaCertificate, message));
        } else if well_known.is_none() {
            refusals.push(Capability::BackendAuthorities.refuse(at.child("caCertificateRefs")));
        }
    }
    refusals.extend(match (references, well_known) {
        ([], None) => Some(refusal(
            "",
            Reason::Invalid,
            "Either caCertificateRefs or wellKnownCACertificates has to be set.".to_owned(),
        )),
        ([_, ..], Some(_)) => Some(refusal(
            "wellKnownCACertificates",
            Reason::Invalid,
            "Only one of caCertificateRefs and wellKnownCACertificates may be set.".to_owned(),
        )),
        ([], Some(other)) if other != SYSTEM => Some(refusal(
            "wellKnownCACertificates",
            Reason::Invalid,
            format!("\"{other}\" is not a known set of CA certificates; the only one is {SYSTEM}."),
        )),
        ([], Some(_)) | ([_, ..], None) => None,
    });
    if validation.subject_alt_names.as_deref().is_some_and(|names| !names.is_empty()) {
        refusals.push(Capability::BackendAlternativeNames.refuse(at.child("subjectAltNames")));
    }
    let hostname = match Hostname::parse(&validation.hostname) {
        Ok(hostname) if !hostname.is_wildcard() => Some(hostname),
        Ok(_) => {
            let message = format!("\"{}\" is a wildcard; one name is needed.", validation.hostname);
            refusals.push(refusal("hostname", Reason::Invalid, message));
            None
        }
        Err(error) => {
            let message = format!("\"{}\" is not a hostname: {error}.", validation.hostname);
            refusals.push(refusal("hostname", Reason::Invalid, message));
            None
        }
    };
    hostname.filter(|_| refusals.is_empty()).ok_or(refusals)
}

fn ignored_options<'a>(
    options: Option<&'a BTreeMap<String, String>>,
    at: &'a FieldPath,
) -> impl Iterator<Item = Refusal> + 'a {
    options
        .into_iter()
        .flat_map(BTreeMap::keys)
        .map(|name| Refusal::limited(at.clone(), format!("Option \"{name}\" is unknown and has no effect.")))
}
