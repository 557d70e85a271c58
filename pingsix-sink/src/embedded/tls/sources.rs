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

use super::error::{CERTIFICATE, CLIENT_CA, KEY, TlsError};
use crate::embedded::watched_files::read_stable;
use crate::pem::{PemError, PemSource, authorities, certificates};

/// The error of a part.
fn tls_error(source: &PemSource, part: &'static str, problem: impl Into<String>) -> TlsError {
    TlsError { part, file: source.file(), problem: problem.into() }
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
        let chain = read(&self.certificate, CERTIFICATE, contents.certificate, certificates)?;
        let validity = validity(&chain);

        let wrong_key = |problem: String| tls_error(&self.key, KEY, problem);
        let key = private_key(contents.key).map_err(wrong_key)?;
        let key = provider.key_provider.load_private_key(key).map_err(|_| {
            wrong_key(
                "is not a key that can be used: RSA from 2048 bits, ECDSA P-256 or P-384, or Ed25519"
                    .to_owned(),
            )
        })?;
        let pair = CertifiedKey::new(chain, key);
        match pair.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                let certificate = self.certificate.file();
                let certificate = certificate.map_or_else(String::new, |file| format!(" {}", file.display()));
                return Err(wrong_key(format!("is not the key of the certificate{certificate}")));
            }
            Err(_) => return Err(tls_error(&self.certificate, CERTIFICATE, unreadable_certificate(1))),
        }

        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has suites of both versions");
        let authorities = match self.client_ca.as_ref().zip(contents.client_ca) {
            None => None,
            Some((source, pem)) => {
                let roots = read(source, CLIENT_CA, pem, authorities)?;
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
    part: &'static str,
    pem: io::Result<Vec<u8>>,
    parse: impl FnOnce(&[u8]) -> Result<T, PemError>,
) -> Result<T, TlsError> {
    let part_error = |problem: String| tls_error(source, part, problem);
    let pem = pem.map_err(|error| part_error(format!("cannot be read: {error}")))?;
    parse(&pem).map_err(|error| match error {
        PemError::Empty if has_pem(&pem) => part_error("holds no certificate".to_owned()),
        PemError::Empty | PemError::Damaged => part_error(NOT_PEM.to_owned()),
        PemError::NotACa { number } => part_error(unreadable_certificate(number)),
    })
}

const NOT_PEM: &str = "is not PEM, or its PEM is damaged";

/// The problem of a file whose certificate with this number, from 1, cannot be parsed.
fn unreadable_certificate(number: usize) -> String {
    format!("holds a certificate that cannot be read, number {number}")
}

/// Parses a key; the error is its problem.
fn private_key(pem: io::Result<Vec<u8>>) -> Result<PrivateKeyDer<'static>, String> {
    let pem = pem.map_err(|error| format!("cannot be read: {error}"))?;
    if contains(&pem, b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || contains(&pem, b"Proc-Type: 4,ENCRYPTED") {
        return Err("is encrypted with a passphrase; store it without one".to_owned());
    }
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
        let has_other = matches!(error, pem::Error::NoItemsFound) && has_pem(&pem);
        if has_other { "holds no private key" } else { NOT_PEM }.to_owned()
    })
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
