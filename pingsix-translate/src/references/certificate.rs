//! Certificate references to certificates with their keys.

mod chain;

use std::fmt;
use std::sync::Arc;

pub(crate) use gateway_api::gateways::GatewayListenersTlsCertificateRefs as CertificateRef;

use sha2::{Digest as _, Sha256};

use chain::CertificateChain;
pub use chain::certificate_validity;

use super::References;
use crate::model::{Capability, FieldPath, Hostname, Kind, ObjectKey, ObjectName, Reason, Refusal};
use crate::pingsix::validate::{check_leaf_and_key, read_certificates, write_section};
use crate::snapshot::Secret;

/// A certificate and its key, checked to belong together. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) secret: ObjectName,
    /// The reference that led here.
    pub(crate) at: FieldPath,
    /// The key pair of the Secret. All references to the Secret share it.
    pair: Arc<KeyPair>,
}

impl Certificate {
    /// The Secret it was read from.
    pub(crate) fn key(&self) -> Arc<ObjectKey> {
        Arc::new(ObjectKey { kind: Kind::Secret, name: self.secret.clone() })
    }

    /// The certificate itself as canonical PEM, without the chain behind it.
    pub(crate) fn leaf(&self) -> &str {
        &self.pair.chain[..self.pair.leaf]
    }

    /// All certificates as canonical PEM, leaf first.
    pub(crate) fn chain(&self) -> &str {
        &self.pair.chain
    }

    /// The private key as canonical PEM.
    pub(crate) fn private_key(&self) -> &str {
        &self.pair.key
    }

    /// The DNS names of the leaf, sorted. Unlike that of any other [`Hostname`], a wildcard stands for one label only
    /// (RFC 6125, section 6.4.3).
    pub(crate) fn names(&self) -> &[Hostname] {
        &self.pair.names
    }

    /// The SHA-256 of the leaf and the key.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.pair.digest
    }

    /// Whether PingSIX serves the same certificate for both.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.pair.digest == other.pair.digest
    }

    /// The limitation for a chain with intermediate certificates, which PingSIX does not send.
    pub(crate) fn chain_limitation(&self) -> Option<Refusal> {
        (self.pair.intermediates > 0).then(|| {
            Capability::IntermediateCertificates.limit_with(self.at.clone(), &[&self.secret.to_string()])
        })
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("secret", &self.secret)
            .field("at", &self.at)
            .field("pair", &self.pair)
            .finish()
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
        let secret = ObjectKey { kind: Kind::Secret, name };
        self.check_permission(referrer, &secret, at)?;
        self.certificate_of(secret.name, at, &at.child("name"))
    }

    /// The certificate of a Secret that may be used. A missing Secret is refused at `at_name`, an unusable one at `at`.
    pub(crate) fn certificate_of(
        &self,
        name: ObjectName,
        at: &FieldPath,
        at_name: &FieldPath,
    ) -> Result<Certificate, Refusal> {
        match self.reference_cache.key_pairs.get(&name) {
            None => Err(Refusal::new(
                at_name.clone(),
                Reason::InvalidCertificateRef,
                format!("Secret {name} does not exist."),
            )),
            Some(Err((reason, message))) => Err(Refusal::new(at.clone(), *reason, message.clone())),
            Some(Ok(pair)) => Ok(Certificate { secret: name, at: at.clone(), pair: pair.clone() }),
        }
    }
}

/// A certificate chain and its key from a Secret, checked to belong together. `Debug` shows neither.
#[derive(PartialEq, Eq)]
pub(super) struct KeyPair {
    /// Canonical PEM, leaf first.
    chain: Box<str>,
    /// Length of the leaf in `chain`.
    leaf: usize,
    /// Canonical PEM.
    key: Box<str>,
    /// SHA-256 of leaf and key, by which certificates are compared for each of many names.
    digest: [u8; 32],
    /// The DNS names of the leaf, sorted.
    names: Box<[Hostname]>,
    /// The number of intermediate certificates that a client needs.
    intermediates: usize,
}

impl KeyPair {
    /// Reads the entries `tls.crt` and `tls.key`; the error is a sentence.
    pub(super) fn read(name: &ObjectName, secret: &Secret) -> Result<Self, String> {
        // The type of the Secret does not matter. The specification asks for `kubernetes.io/tls`, but many Opaque Secrets
        // have both entries, and these decide whether PingSIX can serve the certificate.
        let text = |entry: &str| {
            // In a manifest, `stringData` overrides `data`.
            let written = secret.string_data.as_ref().and_then(|data| Some(data.get(entry)?.as_bytes()));
            let bytes = written
                .or_else(|| Some(&*secret.data.as_ref()?.get(entry)?.0))
                .ok_or_else(|| format!("Secret {name} has no entry {entry}."))?;
            str::from_utf8(bytes).map_err(|_| format!("Entry {entry} of Secret {name} is not PEM."))
        };
        let unusable = |error: &dyn fmt::Display| format!("Secret {name} cannot be used: {error}.");
        let (chain, key) = (text("tls.crt")?, text("tls.key")?);
        // One bad pair would block every route of the data plane.
        let key = check_leaf_and_key(chain, key).map_err(|error| unusable(&error))?;
        let chain = read_certificates(chain);
        let CertificateChain { names, intermediates } =
            CertificateChain::read(&chain).map_err(|error| unusable(&error))?;
        let mut certificates = chain.iter().map(|der| write_section("CERTIFICATE", der));
        let mut chain = certificates.next().ok_or_else(|| unusable(&"it holds no certificate"))?;
        let leaf = chain.len();
        let digest = Sha256::new().chain_update(&chain).chain_update(&key).finalize().into();
        chain.extend(certificates);
        Ok(Self { chain: chain.into(), leaf, key: key.into(), digest, names, intermediates })
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
