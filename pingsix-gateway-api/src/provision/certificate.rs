//! The certificate for clients that ask for no name, or for an unknown one.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

/// A self-signed placeholder certificate and its key, as PEM. PingSIX needs a certificate to start, and never refuses a
/// handshake. `None` on a machine without randomness.
pub(super) fn certificate(name: &str) -> Option<(String, String)> {
    let key = KeyPair::generate().ok()?;
    let mut params = CertificateParams::new(vec!["default.invalid".to_owned()]).ok()?;
    params.distinguished_name = DistinguishedName::new();
    // No common name is longer.
    let name: String = name.chars().take(64).collect();
    params.distinguished_name.push(DnType::CommonName, name);
    let certificate = params.self_signed(&key).ok()?;
    Some((certificate.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_key_of_its_own() {
        let (certificate, key) = certificate(&"infra/web".repeat(30)).unwrap();
        assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----"), "{certificate}");
        assert!(key.contains("PRIVATE KEY"));
        assert_ne!(super::certificate("infra/web").unwrap().1, key);
    }
}
