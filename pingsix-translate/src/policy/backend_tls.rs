//! A BackendTLSPolicy to the name a backend has to prove.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_api::backendtlspolicies::{
    BackendTlsPolicyTargetRefs as TargetRef, BackendTlsPolicyValidation as Validation,
};

use crate::model::{Age, FieldPath, Hostname, Kind, Limit, ObjectKey, ObjectName, Reason, Refusal};
use crate::references::References;
use crate::snapshot::{BackendTlsPolicy, key_of};

/// The one value of `wellKnownCACertificates` that Gateway API defines.
const SYSTEM: &str = "System";

/// What a BackendTLSPolicy asks for.
#[derive(Debug)]
pub(crate) struct BackendTls {
    pub(crate) key: Arc<ObjectKey>,
    pub(crate) generation: i64,
    pub(crate) age: Age,
    /// One per targetRef, in order.
    pub(crate) targets: Vec<Result<PolicyTarget, Refusal>>,
    /// The name to ask for and to verify; or why no connection can be made as the policy wants, at least one reason.
    pub(crate) verified: Result<Hostname, Vec<Refusal>>,
    /// References to CA certificates that lead nowhere.
    pub(crate) unresolved: Vec<Refusal>,
    pub(crate) limits: Vec<Limit>,
}

/// A Service, or one of its ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PolicyTarget {
    pub(crate) service: ObjectName,
    /// The name of a port; without one, every port is meant.
    pub(crate) port: Option<String>,
}

impl BackendTls {
    /// Reads a policy. Never fails: what is wrong with it is part of the result.
    pub(crate) fn read(policy: &BackendTlsPolicy, references: &References<'_>) -> Self {
        let key = Arc::new(key_of(Kind::BackendTlsPolicy, &policy.metadata));
        let spec = FieldPath::new("spec");
        let targets = policy
            .spec
            .target_refs
            .iter()
            .enumerate()
            .map(|(index, target)| read_target(&key, target, &spec.child("targetRefs").index(index)))
            .collect();
        let at = spec.child("validation");
        let validation = &policy.spec.validation;
        let unresolved: Vec<Refusal> = validation
            .ca_certificate_refs
            .iter()
            .flatten()
            .enumerate()
            .filter_map(|(index, reference)| {
                let at = at.child("caCertificateRefs").index(index);
                references.certificate_authorities(&key.name.namespace, reference, &at).err()
            })
            .collect();
        Self {
            generation: policy.metadata.generation.unwrap_or_default(),
            age: Age::of(&policy.metadata),
            targets,
            verified: verified_name(validation, unresolved.len(), &at),
            unresolved,
            limits: ignored_options(policy.spec.options.as_ref(), &spec.child("options")).collect(),
            key,
        }
    }
}

fn read_target(policy: &ObjectKey, target: &TargetRef, at: &FieldPath) -> Result<PolicyTarget, Refusal> {
    if !target.group.is_empty() || target.kind != Kind::Service.as_str() {
        let group = if target.group.is_empty() { "the core group" } else { &target.group };
        let field = if target.kind == Kind::Service.as_str() { "group" } else { "kind" };
        return Err(Refusal::new(
            at.child(field),
            Reason::Invalid,
            format!("A BackendTLSPolicy is for Services, not for a {} of {group}.", target.kind),
        ));
    }
    Ok(PolicyTarget {
        service: ObjectName::new(policy.name.namespace.clone(), target.name.as_str()),
        // Empty is as good as not written.
        port: target.section_name.clone().filter(|name| !name.is_empty()),
    })
}

/// The name PingSIX is to verify, if it can do all the policy asks for: it has one store of CA certificates, and
/// verifies the name it sends and no other (`src/proxy/upstream`).
fn verified_name(
    validation: &Validation,
    unresolved: usize,
    at: &FieldPath,
) -> Result<Hostname, Vec<Refusal>> {
    let mut flaws = Vec::new();
    let mut flaw = |field: &str, reason, message: String| {
        let at = if field.is_empty() { at.clone() } else { at.child(field) };
        flaws.push(Refusal::new(at, reason, message));
    };
    let references = validation.ca_certificate_refs.as_deref().unwrap_or_default();
    let well_known = validation.well_known_ca_certificates.as_deref().filter(|name| !name.is_empty());
    if !references.is_empty() {
        if unresolved == references.len() {
            let message = "No reference leads to a CA certificate.".to_owned();
            flaw("caCertificateRefs", Reason::NoValidCaCertificate, message);
        } else if well_known.is_none() {
            flaw(
                "caCertificateRefs",
                Reason::UnsupportedValue,
                "PingSIX has one store of CA certificates for all backends and takes none for a single Service; \
                 add the CA to that store and use wellKnownCACertificates: System."
                    .to_owned(),
            );
        }
    }
    match (references, well_known) {
        ([], None) => flaw(
            "",
            Reason::Invalid,
            "One of caCertificateRefs and wellKnownCACertificates has to be set.".to_owned(),
        ),
        ([_, ..], Some(_)) => flaw(
            "wellKnownCACertificates",
            Reason::Invalid,
            "Only one of caCertificateRefs and wellKnownCACertificates may be set.".to_owned(),
        ),
        ([], Some(other)) if other != SYSTEM => flaw(
            "wellKnownCACertificates",
            Reason::Invalid,
            format!("\"{other}\" is no set of CA certificates that is known here; only {SYSTEM} is."),
        ),
        ([], Some(_)) | ([_, ..], None) => {}
    }
    if validation.subject_alt_names.as_deref().is_some_and(|names| !names.is_empty()) {
        flaw(
            "subjectAltNames",
            Reason::UnsupportedValue,
            "PingSIX verifies the name it sends to the backend and cannot be given others to verify."
                .to_owned(),
        );
    }
    let hostname = match Hostname::parse(&validation.hostname) {
        Ok(hostname) if !hostname.is_wildcard() => Some(hostname),
        Ok(_) => {
            let message = format!("\"{}\" is a wildcard; one name is needed.", validation.hostname);
            flaw("hostname", Reason::Invalid, message);
            None
        }
        Err(what) => {
            let message = format!("\"{}\" is not the name of a host: {what}.", validation.hostname);
            flaw("hostname", Reason::Invalid, message);
            None
        }
    };
    hostname.filter(|_| flaws.is_empty()).ok_or(flaws)
}

fn ignored_options<'a>(
    options: Option<&'a BTreeMap<String, String>>,
    at: &'a FieldPath,
) -> impl Iterator<Item = Limit> + 'a {
    options
        .into_iter()
        .flat_map(BTreeMap::keys)
        .map(|name| Limit::new(at.clone(), format!("Option \"{name}\" is not known here and has no effect.")))
}
