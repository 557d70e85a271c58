//! A certificate that was read from PEM.

use std::fmt;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, SubjectAltName};
use x509_cert::name::Name;

/// The divisor of the lifetime that is left at the renewal of a certificate.
const RENEWAL_DIVISOR: i32 = 3;

/// A certificate as PEM, with its relevant fields.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    pem: String,
    der: CertificateDer<'static>,
    not_before: Timestamp,
    not_after: Timestamp,
    common_name: Option<String>,
    public_key: Vec<u8>,
    uris: Vec<String>,
    is_authority: bool,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("common_name", &self.common_name)
            .field("uris", &self.uris)
            .field("not_before", &self.not_before)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

impl Certificate {
    /// Reads one certificate; `None` if the text has none, or several.
    pub(crate) fn read(pem: &str) -> Option<Self> {
        let mut all = CertificateDer::pem_slice_iter(pem.as_bytes());
        let der = all.next()?.ok()?.into_owned();
        if all.next().is_some() {
            return None;
        }
        let parsed = CertificateInner::<Raw>::from_der(&der).ok()?;
        let tbs = parsed.tbs_certificate();
        let time = |time: &x509_cert::time::Time| {
            let seconds = i64::try_from(time.to_unix_duration().as_secs()).ok()?;
            Timestamp::from_second(seconds).ok()
        };
        let names = tbs.get_extension::<SubjectAltName>().ok()?;
        let names = names.map(|(_, SubjectAltName(names))| names).unwrap_or_default();
        let constraints = tbs.get_extension::<BasicConstraints>().ok()?;
        Some(Self {
            not_before: time(&tbs.validity().not_before)?,
            not_after: time(&tbs.validity().not_after)?,
            common_name: common_name(tbs.subject()),
            public_key: tbs.subject_public_key_info().subject_public_key.as_bytes()?.to_vec(),
            uris: names.iter().filter_map(uri).collect(),
            is_authority: constraints.is_some_and(|(_, constraints)| constraints.ca),
            pem: pem.to_owned(),
            der,
        })
    }

    /// The PEM text.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// The time of its expiry.
    pub(crate) const fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// The time of its renewal: two thirds of its lifetime are over.
    pub(crate) fn renewal(&self) -> Timestamp {
        let left = self.not_after.duration_since(self.not_before) / RENEWAL_DIVISOR;
        self.not_after.checked_sub(left).unwrap_or(self.not_before)
    }

    /// Whether the renewal is due: by age, or because the certificate is from the future.
    pub(crate) fn needs_renewal(&self, now: Timestamp) -> bool {
        now >= self.renewal() || now < self.not_before
    }

    /// Whether the certificate has expired.
    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        now > self.not_after
    }

    pub(super) const fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// Whether the subject is this common name, without other attributes.
    pub(super) fn is_of(&self, name: &str) -> bool {
        self.common_name.as_deref() == Some(name)
    }

    pub(super) fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    pub(super) fn uris(&self) -> &[String] {
        &self.uris
    }

    pub(super) const fn is_authority(&self) -> bool {
        self.is_authority
    }
}

/// The attribute `commonName` of a distinguished name.
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// The common name, of a name without other attributes.
fn common_name(name: &Name) -> Option<String> {
    let mut attributes = name.iter();
    let attribute = attributes.next().filter(|first| first.oid == COMMON_NAME)?;
    if attributes.next().is_some() {
        return None;
    }
    std::str::from_utf8(attribute.value.value()).ok().map(str::to_owned)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "there are kinds of names, and one of them is meant")]
fn uri(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::UniformResourceIdentifier(uri) => Some(uri.as_str().to_owned()),
        _ => None,
    }
}
