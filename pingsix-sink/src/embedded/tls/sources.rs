//! The configuration of a handshake from PEM.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{self, InconsistentKeys, ServerConfig};
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode as _;

use super::error::{TlsError, TlsErrorKind, TlsPart};
use crate::embedded::watched_files::read_stable;
use crate::pem::{PemError, PemSource, authorities, certificates};

/// The error of a part.
fn tls_error(source: &PemSource, part: TlsPart, kind: TlsErrorKind) -> TlsError {
    TlsError { part, file: source.file(), kind }
}

/// The sources of all parts.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    pub(super) certificate: PemSource,
    pub(super) key: PemSource,
    pub(super) client_ca: Option<PemSource>,
}

impl Sources {
    /// The current content of the sources; `known` is the fingerprint of the previous content.
    pub(super) fn read(&self, known: Option<Fingerprint>) -> (Fingerprint, Contents) {
        read_stable(known, || {
            let contents = self.read_once();
            (contents.fingerprint(), contents)
        })
    }

    fn read_once(&self) -> Contents {
        Contents {
            certificate: self.certificate.read(),
            key: self.key.read(),
            client_ca: self.client_ca.as_ref().map(PemSource::read),
        }
    }

    /// Builds the configuration from the content.
    pub(super) fn load(&self, contents: Contents) -> Result<LoadedTls, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let chain = read(&self.certificate, TlsPart::Certificate, contents.certificate, certificates)?;
        let validity = validity(&chain);

        let wrong_key = |error| tls_error(&self.key, TlsPart::Key, error);
        let key = private_key(contents.key).map_err(wrong_key)?;
        let key = provider
            .key_provider
            .load_private_key(key)
            .map_err(|_| wrong_key(TlsErrorKind::UnsupportedKey))?;
        let pair = CertifiedKey::new(chain, key);
        match pair.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                let certificate = self.certificate.file();
                return Err(wrong_key(TlsErrorKind::KeyMismatch { certificate }));
            }
            Err(_) => {
                let error = TlsErrorKind::InvalidCertificate { number: 1 };
                return Err(tls_error(&self.certificate, TlsPart::Certificate, error));
            }
        }

        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has suites of both versions");
        let authorities = match self.client_ca.as_ref().zip(contents.client_ca) {
            None => None,
            Some((source, pem)) => {
                let roots = read(source, TlsPart::ClientCa, pem, authorities)?;
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .expect("there is an authority, and no revocation list");
                Some(verifier)
            }
        };
        let builder = match authorities.clone() {
            None => builder.with_no_client_auth(),
            Some(verifier) => builder.with_client_cert_verifier(verifier),
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(pair)));
        config.alpn_protocols = vec![b"h2".to_vec()];
        // A resumed session would skip the client certificate.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(LoadedTls { config: Arc::new(config), authorities, validity })
    }
}

/// The content of the sources at one time. Has no `Debug`, because one part is a private key.
pub(super) struct Contents {
    certificate: io::Result<Vec<u8>>,
    key: io::Result<Vec<u8>>,
    client_ca: Option<io::Result<Vec<u8>>>,
}

/// Digest of contents, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl Contents {
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let mut hash = Sha256::new();
        for part in [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()].into_iter().flatten()
        {
            match part {
                Ok(pem) => {
                    hash.update(b"read");
                    hash.update((pem.len() as u64).to_be_bytes());
                    hash.update(pem);
                }
                Err(error) => hash.update(format!("{error}")),
            }
        }
        Fingerprint(hash.finalize().into())
    }
}

/// The configuration of handshakes.
pub(super) struct LoadedTls {
    pub(super) config: Arc<ServerConfig>,
    /// The verifier of client certificates; `None` without client authentication.
    pub(super) authorities: Option<Arc<dyn ClientCertVerifier>>,
    /// The validity period common to the whole chain; `None` when the dates cannot be read.
    pub(super) validity: Option<Range<SystemTime>>,
}

/// Parses a part as certificates or CAs.
fn read<T>(
    source: &PemSource,
    part: TlsPart,
    pem: io::Result<Vec<u8>>,
    parse: impl FnOnce(&[u8]) -> Result<T, PemError>,
) -> Result<T, TlsError> {
    let part_error = |error| tls_error(source, part, error);
    let pem = pem.map_err(|error| part_error(TlsErrorKind::Unreadable(error)))?;
    parse(&pem).map_err(|error| {
        part_error(match error {
            PemError::Empty if has_pem(&pem) => TlsErrorKind::NoCertificate,
            PemError::Empty | PemError::Damaged => TlsErrorKind::NotPem,
            PemError::NotACa { number } => TlsErrorKind::InvalidCertificate { number },
        })
    })
}

fn private_key(pem: io::Result<Vec<u8>>) -> Result<PrivateKeyDer<'static>, TlsErrorKind> {
    let pem = pem.map_err(TlsErrorKind::Unreadable)?;
    if contains(&pem, b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || contains(&pem, b"Proc-Type: 4,ENCRYPTED") {
        return Err(TlsErrorKind::EncryptedKey);
    }
    match PrivateKeyDer::from_pem_slice(&pem) {
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) if has_pem(&pem) => Err(TlsErrorKind::NoKey),
        Err(_) => Err(TlsErrorKind::NotPem),
    }
}

fn has_pem(text: &[u8]) -> bool {
    contains(text, b"-----BEGIN ")
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The validity period common to these certificates.
fn validity(chain: &[CertificateDer<'_>]) -> Option<Range<SystemTime>> {
    let mut all: Option<Range<SystemTime>> = None;
    for certificate in chain {
        let certificate = CertificateInner::<Raw>::from_der(certificate).ok()?;
        let validity = certificate.tbs_certificate().validity();
        let start = SystemTime::UNIX_EPOCH.checked_add(validity.not_before.to_unix_duration())?;
        let end = SystemTime::UNIX_EPOCH.checked_add(validity.not_after.to_unix_duration())?;
        all = Some(all.map_or(start..end, |all| all.start.max(start)..all.end.min(end)));
    }
    all
}
