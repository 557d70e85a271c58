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
