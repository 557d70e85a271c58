//! Certificates, keys, and whether they belong together.
//!
//! PingSIX refuses a whole publication for one pair that OpenSSL cannot read or that does not match. So the check
//! accepts a certificate and a key only if it understands all their parts. The check derives the public key from the
//! private one and compares both. Refusals name the part that is not understood. `key.rs` lists the algorithms.

mod certificate;
mod key;
mod rsa;
mod section;

use std::fmt;

use der::Decode as _;
use rustls_pki_types::pem::SectionKind;
use x509_cert::spki::SubjectPublicKeyInfoRef;

use self::key::PrivateKey;
pub(crate) use self::section::write_section;
use self::section::{Oddity, all_sections, check_form, sections};
use super::context::Context;
use super::{Encryption, Rule, Severity, Violation};

/// The storage form of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Envelope {
    /// In plain text.
    Plain,
    /// In an encryption envelope, with unknown content.
    Sealed,
}

/// Reports an encryption envelope that PingSIX could not open.
pub(super) fn check_envelope(
    secret: &str,
    field: &str,
    context: &Context<'_>,
    out: &mut Vec<Violation>,
) -> Envelope {
    let Some(rest) = secret.strip_prefix("$pingsix-enc:") else { return Envelope::Plain };
    let message = match context.options.encryption {
        Encryption::Literal => return Envelope::Plain,
        Encryption::Off => Some("The value is encrypted and PingSIX runs without `data_encryption`."),
        Encryption::On => match rest.strip_prefix("v1$").map(decode_base64) {
            None => Some("The value is in an encryption envelope of an unknown version."),
            // The shortest payload has a nonce of 12 bytes and a tag of 16 bytes.
            Some(Some(payload)) if payload.len() >= 28 => None,
            Some(_) => Some("The value is in an encryption envelope that holds no ciphertext."),
        },
    };
    if let Some(message) = message {
        out.push(context.violation(Rule::Envelope, Severity::Rejected, field, message));
    }
    Envelope::Sealed
}

pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

/// The reason why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyError {
    /// The key is malformed or inconsistent.
    Malformed,
    /// The algorithm or the size is unsupported; a noun with its article.
    Unsupported(&'static str),
}

/// The reason why a certificate and its key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertificateError {
    /// There is no certificate, or it is malformed.
    Certificate,
    /// There is no private key, or it is malformed.
    Key,
    /// The text of the certificate has a section with an unknown label.
    CertificateSection,
    /// The certificate is for a key that cannot be used: a noun with its article.
    CertificateOf(&'static str),
    /// The private key cannot be used: a noun with its article.
    KeyOf(&'static str),
    /// The key belongs to another certificate.
    Mismatch,
    /// The key belongs to a certificate behind the first.
    LeafNotFirst,
    /// The sidecar cannot sign with the private key.
    Sidecar,
}

impl CertificateError {
    /// Whether the error is in the text of the key, rather than in the text of the certificate.
    pub(crate) const fn is_of_key(self) -> bool {
        match self {
            Self::Key | Self::KeyOf(_) | Self::Mismatch | Self::Sidecar => true,
            Self::Certificate | Self::CertificateSection | Self::CertificateOf(_) | Self::LeafNotFirst => {
                false
            }
        }
    }
}

/// The advice for authors of unusable keys.
const USABLE: &str = "use RSA of 2048 to 8192 bits, ECDSA on P-256, P-384 or P-521, or Ed25519";

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate => f.write_str("it holds no well-formed certificate"),
            Self::Key => f.write_str("it holds no well-formed private key"),
            Self::CertificateSection => f.write_str(
                "beside the certificate, or in its place, there is a section with a label that is not known",
            ),
            Self::CertificateOf(what) => write!(f, "the certificate is for {what}; {USABLE}"),
            Self::KeyOf(what) => write!(f, "the private key is {what}; {USABLE}"),
            Self::Mismatch => f.write_str("the private key is not that of the certificate"),
            Self::LeafNotFirst => f.write_str(
                "the private key is that of a certificate behind the first, and the leaf must come first",
            ),
            Self::Sidecar => f.write_str(
                "the sidecar cannot sign with the private key; use RSA of 2048, 3072 or 4096 bits with an exponent of \
                 65537 or more, ECDSA on P-256 or P-384, or Ed25519",
            ),
        }
    }
}

/// Checks the first certificate of a PEM text against a private key, as PingSIX does for its listeners. Returns the
/// understood parts of the key as PKCS#8 in PEM.
pub(crate) fn check_leaf_and_key(certificates: &str, key: &str) -> Result<String, CertificateError> {
    check_pair(&read_leaf_first(certificates)?, key)
}

/// As [`check_leaf_and_key`], and every other certificate must parse too.
pub(crate) fn check_chain_and_key(certificates: &str, key: &str) -> Result<String, CertificateError> {
    let chain = read_leaf_first(certificates)?;
    if chain.iter().any(|der| certificate::parse(der).is_none()) {
        return Err(CertificateError::Certificate);
    }
    check_pair(&chain, key)
}

fn read_leaf_first(text: &str) -> Result<Vec<Vec<u8>>, CertificateError> {
    check_form(text).map_err(|oddity| match oddity {
        Oddity::Label(_) => CertificateError::CertificateSection,
        Oddity::Form => CertificateError::Certificate,
    })?;
    Ok(read_certificates(text))
}

/// As [`check_chain_and_key`], and the sidecar must be able to sign with the key.
pub(crate) fn check_for_sidecar(certificates: &str, key: &str) -> Result<(), CertificateError> {
    check_chain_and_key(certificates, key)?;
    if read_key(key)?.is_for_ring { Ok(()) } else { Err(CertificateError::Sidecar) }
}

/// The certificates of a PEM text as DER, up to the first section that cannot be read.
pub(crate) fn read_certificates(text: &str) -> Vec<Vec<u8>> {
    sections(text).filter_map(|(kind, der)| (kind == SectionKind::Certificate).then_some(der)).collect()
}

/// Checks that a PEM text consists of readable certificates.
pub(crate) fn check_authorities(text: &str) -> Result<(), CertificateError> {
    read_authorities(text).map(|_| ())
}

/// The certificates of a PEM text as DER: at least one, and all of them readable.
pub(crate) fn read_authorities(text: &str) -> Result<Vec<Vec<u8>>, CertificateError> {
    let sections = all_sections(text).ok_or(CertificateError::Certificate)?.into_iter();
    let certificates: Vec<Vec<u8>> =
        sections.filter_map(|(kind, der)| (kind == SectionKind::Certificate).then_some(der)).collect();
    let well_formed =
        !certificates.is_empty() && certificates.iter().all(|der| certificate::parse(der).is_some());
    if well_formed { Ok(certificates) } else { Err(CertificateError::Certificate) }
}

fn check_pair(chain: &[Vec<u8>], key: &str) -> Result<String, CertificateError> {
    let [leaf, others @ ..] = chain else { return Err(CertificateError::Certificate) };
    let public = certificate::public_key(leaf).map_err(|error| match error {
        KeyError::Malformed => CertificateError::Certificate,
        KeyError::Unsupported(what) => CertificateError::CertificateOf(what),
    })?;
    let private = read_key(key)?;
    if public == private.public {
        Ok(write_section("PRIVATE KEY", &private.pkcs8))
    } else if others.iter().any(|other| certificate::public_key(other).as_ref() == Ok(&private.public)) {
        Err(CertificateError::LeafNotFirst)
    } else {
        Err(CertificateError::Mismatch)
    }
}

/// The first private key of a PEM text, which OpenSSL uses.
fn read_key(text: &str) -> Result<PrivateKey, CertificateError> {
    check_form(text).map_err(|oddity| match oddity {
        Oddity::Label(what) => CertificateError::KeyOf(what),
        Oddity::Form => CertificateError::Key,
    })?;
    let read = sections(text).find_map(|(kind, der)| private_key(kind, &der));
    read.unwrap_or(Err(KeyError::Malformed)).map_err(|error| match error {
        KeyError::Malformed => CertificateError::Key,
        KeyError::Unsupported(what) => CertificateError::KeyOf(what),
    })
}

/// The private key of a section.
fn private_key(kind: SectionKind, der: &[u8]) -> Option<Result<PrivateKey, KeyError>> {
    if kind == SectionKind::PrivateKey {
        Some(PrivateKey::of_pkcs8(der))
    } else if kind == SectionKind::RsaPrivateKey {
        Some(PrivateKey::of_pkcs1(der))
    } else if kind == SectionKind::EcPrivateKey {
        Some(PrivateKey::of_sec1(der))
    } else {
        None
    }
}

/// The labels of public sections.
const PUBLIC: [&str; 3] = ["CERTIFICATE", "PUBLIC KEY", RSA_PUBLIC_KEY];

/// The label of a bare RSA public key (PKCS #1), which the PEM reader does not know.
const RSA_PUBLIC_KEY: &str = "RSA PUBLIC KEY";

const MALFORMED: &str = "has no well-formed public key in PEM";

/// The first section of a PEM text of public keys and certificates, encoded anew: public keys are published and shown in
/// plain text, so no other part of the text leaves with them. The error completes a sentence about the text, and quotes
/// nothing of it.
pub(crate) fn read_public_key(text: &str) -> Result<String, &'static str> {
    let labels = text.split("-----BEGIN").skip(1);
    let mut labels = labels.map(|rest| rest.trim_start().split("-----").next().unwrap_or_default());
    if labels.clone().any(|label| label.contains("PRIVATE KEY")) {
        return Err("has a private key, and a public key belongs there");
    }
    if labels.clone().any(|label| !PUBLIC.contains(&label)) {
        return Err("has a section that is neither a public key nor a certificate");
    }
    let first = labels.next().ok_or(MALFORMED)?;
    let der = if first == RSA_PUBLIC_KEY {
        let body = text.split("-----").nth(2).unwrap_or_default();
        let body: String = body.split_ascii_whitespace().collect();
        decode_base64(&body).filter(|der| key::is_bare_rsa_key(der))
    } else {
        sections(text).next().and_then(|(kind, der)| {
            let is_public = kind == SectionKind::PublicKey && SubjectPublicKeyInfoRef::from_der(&der).is_ok()
                || kind == SectionKind::Certificate && certificate::parse(&der).is_some();
            is_public.then_some(der)
        })
    };
    der.map(|der| write_section(first, &der)).ok_or(MALFORMED)
}

/// Whether a text has a public key for the verification of RSA or elliptic-curve tokens by PingSIX.
pub(super) fn holds_public_key(text: &str, elliptic: bool) -> bool {
    let wanted = if elliptic { key::EC } else { key::RSA };
    let Some((kind, der)) = sections(text).next() else { return false };
    let algorithm = if kind == SectionKind::PublicKey {
        SubjectPublicKeyInfoRef::from_der(&der).ok().map(|info| info.algorithm.oid)
    } else if kind == SectionKind::Certificate {
        certificate::parse(&der)
            .map(|certificate| certificate.tbs_certificate().subject_public_key_info().algorithm.oid)
    } else {
        private_key(kind, &der).and_then(|key| Some(key.ok()?.public.algorithm()))
    };
    algorithm == Some(wanted)
}

/// Whether a text has the label of a bare RSA public key. The check covers the label alone.
pub(super) fn holds_bare_rsa_key(text: &str) -> bool {
    text.contains("-----BEGIN RSA PUBLIC KEY-----")
}
