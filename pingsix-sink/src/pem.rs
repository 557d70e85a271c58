//! PEM certificates and CAs.

use std::fmt;
use std::io;
use std::path::PathBuf;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, InconsistentKeys, RootCertStore};

/// The source of PEM. `Debug` is redacted.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum PemSource {
    /// Bytes.
    Pem(Vec<u8>),
    /// A file, which is read again for each connection.
    File(PathBuf),
}

impl PemSource {
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Pem(_) => None,
            Self::File(path) => Some(path.clone()),
        }
    }

    /// The current content; a file may be replaced.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Pem(pem) => Ok(pem.clone()),
            Self::File(path) => std::fs::read(path),
        }
    }
}

impl fmt::Debug for PemSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem(_) => f.write_str("given as PEM"),
            Self::File(path) => path.fmt(f),
        }
    }
}

/// Reason why a text has no usable certificates. Never quotes the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PemError {
    Damaged,
    Empty,
    /// The certificate with this number, from one, is no CA.
    NotACa {
        number: usize,
    },
}

impl PemError {
    /// The error, to follow the name of the file.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Damaged => "is not PEM, or its PEM is damaged",
            Self::Empty => "holds no certificate",
            Self::NotACa { .. } => "holds a certificate that is no authority's",
        }
    }
}

/// All certificates of a text, at least one. An unreadable certificate is an error.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(PemError::Empty),
        Ok(certificates) => Ok(certificates),
        Err(_) => Err(PemError::Damaged),
    }
}

/// All certificates of a text, each of which is a CA.
pub(crate) fn authorities(pem: &[u8]) -> Result<RootCertStore, PemError> {
    let mut roots = RootCertStore::empty();
    for (number, certificate) in (1..).zip(certificates(pem)?) {
        roots.add(certificate).map_err(|_| PemError::NotACa { number })?;
    }
    Ok(roots)
}

/// Reason why a certificate and a key cannot be used together. Its text continues a sentence that begins with the
/// part, and never quotes the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdentityError {
    Certificate(&'static str),
    Key(&'static str),
}

/// A chain and the key of its first certificate.
pub(crate) fn identity(
    certificate: &[u8],
    key: &[u8],
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), IdentityError> {
    let chain = certificates(certificate).map_err(|error| IdentityError::Certificate(error.as_str()))?;
    let key = PrivateKeyDer::from_pem_slice(key);
    let key = key.map_err(|_| IdentityError::Key("is no private key in PEM that can be read"))?;
    let loaded = ring::default_provider().key_provider.load_private_key(key.clone_key());
    let loaded = loaded.map_err(|_| IdentityError::Key("is of a kind that cannot be used"))?;
    match CertifiedKey::new(chain.clone(), loaded).keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok((chain, key)),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(IdentityError::Key("does not belong to the certificate"))
        }
        Err(_) => Err(IdentityError::Certificate("cannot be read as a certificate")),
    }
}
