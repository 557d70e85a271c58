//! The certificate of one document of `ssls`.

use std::sync::Arc;

use pingsix_translate::stream::StreamSsl;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, SignatureScheme};

/// A chain with its key. `Debug` shows the key not.
#[derive(Debug)]
pub(super) struct Certificate(Arc<CertifiedKey>);

impl Certificate {
    /// Decodes a document. The error is a sentence that quotes nothing, because texts of decoders quote values.
    pub(super) fn decode(value: &[u8], provider: &CryptoProvider) -> Result<Self, &'static str> {
        let ssl: StreamSsl = serde_json::from_slice(value).map_err(|_| "The document cannot be decoded.")?;
        let chain: Vec<_> = CertificateDer::pem_slice_iter(ssl.cert.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|_| "cert: There is a section that cannot be read.")?;
        if chain.is_empty()
            || chain.iter().any(|certificate| ParsedCertificate::try_from(certificate).is_err())
        {
            return Err("cert: There must be well-formed certificates alone.");
        }
        let key = PrivateKeyDer::from_pem_slice(ssl.key.as_bytes())
            .map_err(|_| "key: There is no private key that can be read.")?;
        match CertifiedKey::from_der(chain, key, provider) {
            Ok(key) => Ok(Self(Arc::new(key))),
            Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                Err("key: The private key is not that of the first certificate.")
            }
            Err(_) => Err("key: The private key is malformed, or of a kind that is not served."),
        }
    }

    /// The chain and the key.
    pub(super) fn key(&self) -> &Arc<CertifiedKey> {
        &self.0
    }

    /// Whether a client that wants this server name, and knows these schemes of signatures, can take the certificate.
    /// Its time does not matter.
    pub(super) fn suits(&self, name: &ServerName<'_>, schemes: &[SignatureScheme]) -> bool {
        let is_valid = || {
            let leaf = self.0.end_entity_cert().and_then(ParsedCertificate::try_from);
            leaf.is_ok_and(|leaf| verify_server_name(&leaf, name).is_ok())
        };
        self.0.key.choose_scheme(schemes).is_some() && is_valid()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use pingsix_test_programs as programs;
    use pingsix_translate::stream::{StreamConfig, validate};

    use super::*;

    /// Kinds of keys that PingSIX serves, as arguments of `openssl genpkey`, and whether the sidecar serves them.
    const KINDS: [(&str, bool); 9] = [
        ("-algorithm RSA -pkeyopt rsa_keygen_bits:2047", false),
        ("-algorithm RSA -pkeyopt rsa_keygen_bits:2048", true),
        ("-algorithm RSA -pkeyopt rsa_keygen_bits:3072", true),
        ("-algorithm RSA -pkeyopt rsa_keygen_bits:2560", false),
        ("-algorithm RSA -pkeyopt rsa_keygen_bits:2048 -pkeyopt rsa_keygen_pubexp:3", false),
        ("-algorithm EC -pkeyopt ec_paramgen_curve:P-256", true),
        ("-algorithm EC -pkeyopt ec_paramgen_curve:P-384", true),
        ("-algorithm EC -pkeyopt ec_paramgen_curve:P-521", false),
        ("-algorithm ED25519", true),
    ];

    #[test]
    fn translation_refuses_every_key_that_cannot_sign_here() {
        let Some(openssl) = programs::find("openssl") else {
            programs::skipped("openssl is not installed, so keys of several kinds are NOT TRIED");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &str| {
            let output = Command::new(&openssl)
                .args(arguments.split(' '))
                .current_dir(folder.path())
                .output()
                .unwrap();
            assert!(output.status.success(), "{arguments}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        for (kind, is_served) in KINDS {
            run(&format!("genpkey {kind} -out key.pem"));
            let cert = run("req -x509 -new -key key.pem -subj /CN=a.test -days 30");
            let key = std::fs::read_to_string(folder.path().join("key.pem")).unwrap();
            let ssl = StreamSsl { cert, key };
            let decoded = Certificate::decode(
                &serde_json::to_vec(&ssl).unwrap(),
                &rustls::crypto::ring::default_provider(),
            );
            assert_eq!(decoded.is_ok(), is_served, "{kind}: {decoded:?}");
            let mut config = StreamConfig::new();
            config.insert("a", ssl);
            let errors = validate(&config);
            assert_eq!(errors.is_empty(), is_served, "{kind}: {errors:?}");
        }
    }
}
