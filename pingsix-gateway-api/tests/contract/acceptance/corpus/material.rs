//! Certificates, keys, and texts that no longer are.

use rcgen::{CertifiedKey, KeyPair};

/// Certificates and keys.
pub(super) struct Material {
    pub(super) cert: String,
    pub(super) key: String,
    pub(super) other_cert: String,
    pub(super) other_key: String,
    pub(super) public_key: String,
}

impl Material {
    pub(super) fn new() -> Self {
        let certified = |name: &str| -> CertifiedKey<KeyPair> {
            rcgen::generate_simple_self_signed([name.to_owned()]).unwrap()
        };
        let (one, other) = (certified("one.t"), certified("other.t"));
        Self {
            cert: one.cert.pem(),
            key: one.signing_key.serialize_pem(),
            public_key: one.signing_key.public_key_pem(),
            other_cert: other.cert.pem(),
            other_key: other.signing_key.serialize_pem(),
        }
    }

    /// Texts that hold certificates and keys, and some that no longer do.
    pub(super) fn texts(&self) -> Vec<String> {
        let Self { cert, key, other_cert, other_key, public_key } = self;
        let mut texts: Vec<String> =
            [cert, key, other_cert, other_key, public_key].into_iter().cloned().collect();
        for pem in [cert, key] {
            texts.extend([
                pem.replace('\n', "\r\n"),
                pem.replace('\n', ""),
                pem.trim_end().to_owned(),
                format!("text before\n{pem}"),
                format!("{pem}text behind"),
                format!("{pem}{other_cert}"),
                format!("{other_cert}{pem}"),
                format!("{pem}{pem}"),
                format!("{key}{cert}"),
                pem.replacen("MI", "!I", 1),
                pem.replace("-----END", "----END"),
                pem.replace("BEGIN ", "BEGIN TRUSTED "),
                pem.chars().take(pem.len() / 2).collect(),
                format!(" {}", pem.replace('\n', "\n ")),
            ]);
        }
        texts.push("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".to_owned());
        texts.push("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned());
        texts.push("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".to_owned());
        texts
    }
}
