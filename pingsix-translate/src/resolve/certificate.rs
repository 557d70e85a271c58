//! Certificate references to certificates with their keys.

mod chain;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

pub(crate) use gateway_api::gateways::GatewayListenersTlsCertificateRefs as CertificateRef;

use chain::Chain;
pub use chain::certificate_validity;

use super::References;
use crate::attach::Hostname;
use crate::field::FieldPath;
use crate::object::{Kind, ObjectKey, ObjectName};
use crate::pingsix::validate::check_leaf_and_key;
use crate::route::{Limit, Refusal};
use crate::snapshot::Secret;
use crate::verdict::Reason;

/// A certificate and its key, checked to belong together. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) secret: ObjectName,
    /// The reference that led here.
    pub(crate) at: FieldPath,
    /// As PEM, leaf first.
    pub(crate) chain: Arc<str>,
    /// As PEM of PKCS#8, encoded anew.
    pub(crate) key: Arc<str>,
    /// The DNS names of the leaf. Unlike that of any other [`Hostname`], a wildcard stands for one label only
    /// (RFC 6125, section 6.4.3).
    pub(crate) names: BTreeSet<Hostname>,
    /// How many certificates of the chain a client needs besides the leaf and a root.
    pub(crate) intermediates: usize,
}

impl Certificate {
    /// The Secret it was read from.
    pub(crate) fn key(&self) -> Arc<ObjectKey> {
        Arc::new(ObjectKey { kind: Kind::Secret, name: self.secret.clone() })
    }

    /// Whether clients cannot tell one from the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.chain, &self.key) == (&other.chain, &other.key)
    }

    /// What clients do not get although it is shown.
    pub(crate) fn chain_limit(&self) -> Option<Limit> {
        (self.intermediates > 0).then(|| {
            let message = format!(
                "PingSIX sends the first certificate of Secret {} only, so clients that do not know its issuer, an \
                 intermediate authority, cannot verify it.",
                self.secret
            );
            Limit::new(self.at.clone(), message)
        })
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("secret", &self.secret)
            .field("at", &self.at)
            .field("names", &self.names)
            .field("intermediates", &self.intermediates)
            .finish_non_exhaustive()
    }
}

impl References<'_> {
    /// Resolves a listener's certificateRef to a Secret with entries `tls.crt` and `tls.key`.
    pub(crate) fn certificate(
        &self,
        referrer: &ObjectKey,
        reference: &CertificateRef,
        at: &FieldPath,
    ) -> Result<Certificate, Refusal> {
        let group = reference.group.as_deref().unwrap_or_default();
        let kind = reference.kind.as_deref().unwrap_or(Kind::Secret.as_str());
        if !group.is_empty() || kind != Kind::Secret.as_str() {
            return Err(Refusal::new(
                at.child("kind"),
                Reason::InvalidCertificateRef,
                format!("A certificate is a Secret, not {kind} of group \"{group}\"."),
            ));
        }
        let namespace = reference.namespace.as_deref().unwrap_or(&referrer.name.namespace);
        let name = ObjectName::new(namespace, reference.name.as_str());
        // Judged before existence, so that nobody learns what another namespace holds.
        if !self.reading.grants.permit(referrer, Kind::Secret, &name) {
            return Err(Refusal::new(
                at.child("namespace"),
                Reason::RefNotPermitted,
                format!("No ReferenceGrant in namespace {namespace} lets {referrer} use Secret {name}."),
            ));
        }
        self.certificate_of(name, at, &at.child("name"))
    }

    /// The certificate of a Secret of a namespace that may be used. A Secret that is missing is a matter of the field
    /// `at_name`, one that cannot be used of the field `at`.
    pub(crate) fn certificate_of(
        &self,
        name: ObjectName,
        at: &FieldPath,
        at_name: &FieldPath,
    ) -> Result<Certificate, Refusal> {
        match self.reading.key_pairs.get(&name) {
            None => Err(Refusal::new(
                at_name.clone(),
                Reason::InvalidCertificateRef,
                format!("Secret {name} does not exist."),
            )),
            Some(Err((reason, message))) => Err(Refusal::new(at.clone(), *reason, message.clone())),
            Some(Ok(KeyPair { chain, key, names, intermediates })) => Ok(Certificate {
                secret: name,
                at: at.clone(),
                chain: chain.clone(),
                key: key.clone(),
                names: names.clone(),
                intermediates: *intermediates,
            }),
        }
    }
}

/// What a Secret holds for TLS, checked to belong together. `Debug` shows neither certificate nor key.
#[derive(Clone)]
pub(super) struct KeyPair {
    chain: Arc<str>,
    key: Arc<str>,
    names: BTreeSet<Hostname>,
    intermediates: usize,
}

impl KeyPair {
    /// Reads entries `tls.crt` and `tls.key`, or says in one sentence why they cannot be used.
    pub(super) fn read(name: &ObjectName, secret: &Secret) -> Result<Self, String> {
        // `type` is not looked at: `kubernetes.io/tls` is what the specification asks for and what
        // `kubectl create secret tls` writes, but the entries decide whether a certificate can be served, and many
        // an Opaque Secret has both.
        let text = |entry: &str| {
            // In a manifest, `stringData` replaces what `data` has.
            let written = secret.string_data.as_ref().and_then(|data| data.get(entry));
            let bytes = written
                .map(|text| text.clone().into_bytes())
                .or_else(|| Some(secret.data.as_ref()?.get(entry)?.0.clone()))
                .ok_or_else(|| format!("Secret {name} has no entry {entry}."))?;
            String::from_utf8(bytes).map_err(|_| format!("Entry {entry} of Secret {name} is not PEM."))
        };
        let chain = text("tls.crt")?;
        let key = text("tls.key")?;
        // One bad pair would freeze every route of the data plane.
        let key = check_leaf_and_key(&chain, &key)
            .map_err(|fault| format!("Secret {name} cannot be used: {fault}."))?;
        let Chain { names, intermediates } = Chain::read(&chain);
        Ok(Self { chain: chain.into(), key: key.into(), names, intermediates })
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair")
            .field("names", &self.names)
            .field("intermediates", &self.intermediates)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
