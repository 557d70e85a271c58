//! Errors of a server's TLS.

use std::fmt;
use std::path::PathBuf;

/// A part of the server's TLS cannot be used. Messages never contain the content of a file.
#[derive(Debug, thiserror::Error)]
#[error("the {part}{} {kind}", file.as_ref().map_or_else(String::new, |file| format!(" {}", file.display())))]
#[non_exhaustive]
pub struct TlsError {
    /// The part.
    pub part: TlsPart,
    /// The file; `None` for bytes.
    pub file: Option<PathBuf>,
    /// The reason.
    pub kind: TlsErrorKind,
}

impl TlsError {
    /// Whether a retry may succeed: files may be replaced, bytes may not.
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
    /// The CAs that sign client certificates.
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

/// Why a part cannot be used; its text continues a sentence that begins with the part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsErrorKind {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// The text is no PEM, or the PEM is incomplete or damaged.
    #[error("is not PEM, or its PEM is damaged")]
    NotPem,
    /// The PEM has no certificate.
    #[error("holds no certificate")]
    NoCertificate,
    /// The PEM has no private key.
    #[error("holds no private key")]
    NoKey,
    /// The key is protected by a passphrase, which cannot be entered.
    #[error("is encrypted with a passphrase; store it without one")]
    EncryptedKey,
    /// The key is damaged or of an unsupported kind.
    #[error("is not a key that can be used: RSA from 2048 bits, ECDSA P-256 or P-384, or Ed25519")]
    UnsupportedKey,
    /// The key belongs to another certificate.
    #[error("is not the key of the certificate{}", certificate.as_ref().map_or_else(String::new, |file| format!(" {}", file.display())))]
    KeyMismatch {
        /// The file of the certificate; `None` for bytes.
        certificate: Option<PathBuf>,
    },
    /// A certificate cannot be parsed.
    #[error("holds a certificate that cannot be read, number {number}")]
    InvalidCertificate {
        /// The number of the certificate in the file, from 1.
        number: usize,
    },
}
