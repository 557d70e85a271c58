//! Certificates and private keys as canonical PEM.
//!
//! A PEM text may hold comments, headers and further sections. Canonical PEM is the DER of one section, encoded anew: its
//! length is a function of the DER alone, and documents hold nothing that PingSIX would skip.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::{PemObject as _, SectionKind};

/// Characters in a line of base64 (RFC 7468, section 2).
const LINE: usize = 64;

/// A certificate as PEM.
pub(super) fn certificate(der: &[u8]) -> String {
    encode("CERTIFICATE", der)
}

/// The DER of the first private key of a PEM text, which is the one that PingSIX reads, with the label of its section.
pub(super) fn private_key(text: &str) -> Option<(&'static str, Vec<u8>)> {
    let mut sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()).map_while(Result::ok);
    sections.find_map(|(kind, der)| Some((label(kind)?, der)))
}

/// The label of a section with a private key.
fn label(kind: SectionKind) -> Option<&'static str> {
    let labels = [
        (SectionKind::PrivateKey, "PRIVATE KEY"),
        (SectionKind::RsaPrivateKey, "RSA PRIVATE KEY"),
        (SectionKind::EcPrivateKey, "EC PRIVATE KEY"),
    ];
    labels.into_iter().find_map(|(known, label)| (known == kind).then_some(label))
}

/// A section with this label.
pub(super) fn encode(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut text = String::with_capacity(encoded.len() + encoded.len() / LINE + 2 * label.len() + 34);
    text.push_str("-----BEGIN ");
    text.push_str(label);
    text.push_str("-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        // Base64 is ASCII, so each byte is a character.
        let (line, behind) = rest.split_at(rest.len().min(LINE));
        text.push_str(line);
        text.push('\n');
        rest = behind;
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::pem::{EC_KEY_SEC1, RSA_CERT, RSA_KEY_PKCS1, RSA_KEY_PKCS8};
    use crate::pingsix::validate::read_certificates;

    #[test]
    fn what_openssl_writes_is_canonical() {
        assert_eq!(certificate(&read_certificates(RSA_CERT)[0]), RSA_CERT);
        for key in [EC_KEY_SEC1, RSA_KEY_PKCS1, RSA_KEY_PKCS8] {
            let (label, der) = private_key(key).unwrap();
            assert_eq!(encode(label, &der), key);
        }
    }

    #[test]
    fn comments_and_other_sections_are_left_out() {
        let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
        let text = format!("Bag Attributes\r\n  x: y\r\n{parameters}{EC_KEY_SEC1}{RSA_KEY_PKCS1}");
        let (label, der) = private_key(&text).unwrap();
        assert_eq!(encode(label, &der), EC_KEY_SEC1);
        assert_eq!(private_key(RSA_CERT), None);
    }
}
