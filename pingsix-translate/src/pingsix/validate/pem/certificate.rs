//! Certificates that OpenSSL can read.

use der::asn1::{Any, ObjectIdentifier};
use der::{Decode as _, Encode as _, Tag, Tagged as _};
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::name::Name;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoRef};

use super::KeyError;
use super::key::PublicKey;

/// The public key of a certificate.
pub(super) fn public_key(der: &[u8]) -> Result<PublicKey, KeyError> {
    let certificate = parse(der).ok_or(KeyError::Malformed)?;
    let info =
        certificate.tbs_certificate().subject_public_key_info().to_der().map_err(|_| KeyError::Malformed)?;
    PublicKey::read(&SubjectPublicKeyInfoRef::from_der(&info).map_err(|_| KeyError::Malformed)?)
}

/// The certificate; `None` if OpenSSL could not read a part of it, unused parts included.
pub(super) fn parse(der: &[u8]) -> Option<CertificateInner<Raw>> {
    let certificate = CertificateInner::<Raw>::from_der(der).ok()?;
    let body = certificate.tbs_certificate();
    let mut extensions = body.extensions().into_iter().flatten();
    let is_readable = is_algorithm(certificate.signature_algorithm())
        && is_algorithm(body.signature())
        && is_name(body.issuer())
        && is_name(body.subject())
        && extensions.all(|extension| is_minimal(&extension.extn_id));
    is_readable.then_some(certificate)
}

/// Whether the parameters of an algorithm are absent, null, or a sequence, whose content OpenSSL ignores.
fn is_algorithm(algorithm: &AlgorithmIdentifierOwned) -> bool {
    let parameters = algorithm.parameters.as_ref();
    is_minimal(&algorithm.oid)
        && parameters.is_none_or(|parameters| {
            parameters.tag() == Tag::Sequence
                || parameters.tag() == Tag::Null && parameters.value().is_empty()
        })
}

/// Whether no number of an identifier begins with a zero, which OpenSSL refuses.
fn is_minimal(identifier: &ObjectIdentifier) -> bool {
    let bytes = identifier.as_bytes();
    let begins = std::iter::once(true).chain(bytes.iter().map(|byte| byte & 0x80 == 0));
    !bytes.iter().zip(begins).any(|(byte, begins)| begins && *byte == 0x80)
}

/// Whether OpenSSL can read the texts of a name, which it decodes with the certificate.
fn is_name(name: &Name) -> bool {
    name.iter().all(|attribute| is_minimal(&attribute.oid) && is_text(&attribute.value))
}

fn is_text(value: &Any) -> bool {
    const BYTES: [Tag; 4] = [Tag::PrintableString, Tag::Ia5String, Tag::TeletexString, Tag::NumericString];
    let (tag, bytes) = (value.tag(), value.value());
    if tag == Tag::Utf8String {
        return std::str::from_utf8(bytes).is_ok();
    }
    if tag == Tag::BmpString {
        let (pairs, rest) = bytes.as_chunks::<2>();
        // UCS-2, so there are no surrogates.
        return rest.is_empty() && pairs.iter().all(|pair| !(0xd8..=0xdf).contains(&pair[0]));
    }
    BYTES.contains(&tag)
}
