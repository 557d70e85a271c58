//! Certificates with a key of P-256.

use rcgen::{CertificateParams, KeyPair};

/// A self-signed certificate and its key, in PEM.
pub(crate) struct Certificate {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Certificate {
    pub(crate) fn new(names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let chain = CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem();
        Self { chain, key: key.serialize_pem() }
    }
}
