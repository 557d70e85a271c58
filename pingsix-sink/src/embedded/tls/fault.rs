//! What can be wrong with a server's TLS.

use std::fmt;
use std::path::PathBuf;

/// A part of the server's TLS cannot be used. Never shows what a file holds.
#[derive(Debug, thiserror::Error)]
#[error("the {part}{} {fault}", file.as_ref().map_or_else(String::new, |file| format!(" {}", file.display())))]
#[non_exhaustive]
pub struct TlsError {
    /// Which part.
    pub part: TlsPart,
    /// The file it comes from; `None` for one that was given as bytes.
    pub file: Option<PathBuf>,
    /// What is wrong with it.
    pub fault: TlsFault,
}

impl TlsError {
    /// Whether the same call may succeed later: files may be replaced, bytes may not.
    pub fn is_retryable(&self) -> bool {
        self.file.is_some()
    }
}

/// A part of the server's TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPart {
    /// The certificate chain of the server.
    Certificate,
    /// The private key of its first certificate.
    Key,
    /// The authorities that clients need a certificate of.
    ClientCa,
}

impl fmt::Display for TlsPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "TLS certificate",
            Self::Key => "TLS private key",
            Self::ClientCa => "client CA bundle",
        })
    }
}

/// What is wrong with a part; its text continues a sentence that begins with the part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFault {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// There is no PEM in it, or what there is was cut off or damaged.
    #[error("is not PEM, or its PEM is damaged")]
    NotPem,
    /// It is PEM, and none of it is a certificate.
    #[error("holds no certificate")]
    NoCertificate,
    /// It is PEM, and none of it is a private key.
    #[error("holds no private key")]
    NoKey,
    /// The key is protected by a passphrase, which nobody could enter.
    #[error("is encrypted with a passphrase; store it without one")]
    EncryptedKey,
    /// The key is damaged, or of a kind that is not supported.
    #[error("is not a key that can be used: RSA from 2048 bits, ECDSA P-256 or P-384, or Ed25519")]
    UnsupportedKey,
    /// The key belongs to another certificate.
    #[error("is not the key of the certificate{}", certificate.as_ref().map_or_else(String::new, |file| format!(" {}", file.display())))]
    KeyMismatch {
        /// The file of the certificate; `None` for one that was given as bytes.
        certificate: Option<PathBuf>,
    },
    /// A certificate is not one that can be read.
    #[error("holds a certificate that cannot be read, number {number}")]
    InvalidCertificate {
        /// Which one of those in the file, from 1.
        number: usize,
    },
}
