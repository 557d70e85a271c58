//! Identity, grants and validity of a client certificate.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::oid::AssociatedOid as _;
use x509_cert::der::{Decode as _, Encode as _, Tag, Tagged as _};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::uri::{Grant, grant_of, has_our_scheme};
use crate::desired::Scope;
use crate::document::Digest;

/// The attribute `commonName` of a distinguished name.
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// Length limit of a URI in the log.
const MAX_LOGGED_URI_LEN: usize = 256;

/// A client certificate that a handshake verified.
pub(in crate::embedded) struct Certificate {
    /// The chain; the client's certificate is the first.
    chain: Vec<CertificateDer<'static>>,
    common_name: Option<Arc<str>>,
    /// Digest of the identity that a certificate shares with its successors.
    identity: Digest,
    grants: Arc<[Grant]>,
    /// The expiry; `None` when it cannot be read.
    end: Option<SystemTime>,
    /// The edition of the CAs of the last verification.
    verified: AtomicU64,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("common_name", &self.common_name)
            .field("grants", &self.grants)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Certificate {
    /// Reads a chain that was verified with this edition of the CAs.
    pub(in crate::embedded) fn of(chain: &[CertificateDer<'_>], edition: u64) -> Option<Self> {
        let own = chain.first()?;
        let parsed = CertificateInner::<Raw>::from_der(own).ok();
        let end = parsed.as_ref().and_then(|certificate| {
            let end = certificate.tbs_certificate().validity().not_after.to_unix_duration();
            SystemTime::UNIX_EPOCH.checked_add(end)
        });
        Some(Self {
            chain: chain.iter().map(|certificate| certificate.clone().into_owned()).collect(),
            common_name: parsed.as_ref().and_then(common_name),
            identity: parsed.as_ref().and_then(identity).unwrap_or_else(|| Digest::of(own)),
            grants: Arc::default(),
            end,
            verified: AtomicU64::new(edition),
        })
    }

    /// The certificate with the prefixes of its URIs; `complain` receives each malformed URI of our scheme.
    pub(in crate::embedded) fn with_uris(self, mut complain: impl FnMut(&str)) -> Self {
        let names = self.chain.first().map_or(Ok(Vec::new()), |own| alternative_names(own));
        let Ok(names) = names else {
            complain("(the alternative names cannot be read)");
            return self;
        };
        let mut grants = BTreeSet::new();
        for name in &names {
            let GeneralName::UniformResourceIdentifier(uri) = name else { continue };
            let uri = uri.as_str();
            match grant_of(uri) {
                Some(grant) => {
                    grants.insert(grant);
                }
                None if has_our_scheme(uri) => complain(uri.get(..MAX_LOGGED_URI_LEN).unwrap_or(uri)),
                None => {}
            }
        }
        Self { grants: grants.into_iter().collect(), ..self }
    }

    /// The common name of the subject; `None` unless there is exactly one.
    pub(in crate::embedded) fn common_name(&self) -> Option<&Arc<str>> {
        self.common_name.as_ref()
    }

    /// Digest of the identity: equal for all certificates with the same subject and alternative names.
    pub(in crate::embedded) fn identity(&self) -> Digest {
        self.identity
    }

    /// The prefixes that the URIs grant, provided that the prefixes have the named owners.
    pub(super) fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Whether a URI names this prefix for an owner other than `owner`.
    pub(in crate::embedded) fn is_of_another(&self, scope: &Scope, owner: Option<&Arc<str>>) -> bool {
        self.grants.iter().any(|grant| grant.scope == *scope && grant.owner.as_ref() != owner)
    }

    /// Whether the certificate has expired. A certificate with an unreadable expiry counts as expired.
    pub(in crate::embedded) fn has_ended(&self, now: SystemTime) -> bool {
        self.end.is_none_or(|end| now > end)
    }

    /// Whether a handshake with this edition of the CAs would verify the certificate as well.
    pub(in crate::embedded) fn is_valid_under(
        &self,
        authorities: &dyn ClientCertVerifier,
        edition: u64,
        now: SystemTime,
    ) -> bool {
        if self.verified.load(Ordering::Relaxed) == edition {
            return true;
        }
        let Some((own, others)) = self.chain.split_first() else { return false };
        let now = UnixTime::since_unix_epoch(now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
        let is_verified = authorities.verify_client_cert(own, others, now).is_ok();
        if is_verified {
            self.verified.store(edition, Ordering::Relaxed);
        }
        is_verified
    }
}

fn common_name(certificate: &CertificateInner<Raw>) -> Option<Arc<str>> {
    let subject = certificate.tbs_certificate().subject();
    let mut names = subject.iter().filter(|attribute| attribute.oid == COMMON_NAME);
    let name = names.next().filter(|_| names.next().is_none())?;
    // All string types that a name in ASCII or UTF-8 may have.
    let is_text = matches!(name.value.tag(), Tag::Utf8String | Tag::PrintableString | Tag::Ia5String);
    std::str::from_utf8(name.value.value()).ok().filter(|_| is_text).map(Arc::from)
}

/// Digest of the subject and the alternative names; `None` for a certificate without either.
fn identity(certificate: &CertificateInner<Raw>) -> Option<Digest> {
    let certificate = certificate.tbs_certificate();
    let names = certificate.extensions().into_iter().flatten();
    let names = names.filter(|extension| extension.extn_id == SubjectAltName::OID);
    let names: Vec<&[u8]> = names.map(|extension| extension.extn_value.as_bytes()).collect();
    let subject = certificate.subject();
    if subject.is_empty() && names.is_empty() {
        return None;
    }
    // DER contains its length, so the concatenation is unambiguous.
    Some(Digest::of(&[subject.to_der().ok()?, names.concat()].concat()))
}

/// All alternative names, or an error: a name beside an unreadable one is not trustworthy.
fn alternative_names(certificate: &CertificateDer<'_>) -> Result<Vec<GeneralName>, ()> {
    let certificate = CertificateInner::<Raw>::from_der(certificate).map_err(|_| ())?;
    match certificate.tbs_certificate().get_extension::<SubjectAltName>() {
        Ok(names) => Ok(names.map(|(_, SubjectAltName(names))| names).unwrap_or_default()),
        Err(_) => Err(()),
    }
}
