//! Errors of a server's TLS.

use std::path::PathBuf;

use crate::error::SinkErrorSource;

/// The certificate chain of the server.
pub(super) const CERTIFICATE: &str = "TLS certificate";
/// The private key of its first certificate.
pub(super) const KEY: &str = "TLS private key";
/// The CAs that sign client certificates.
pub(super) const CLIENT_CA: &str = "client CA bundle";

/// A part of the server's TLS cannot be used. Messages never contain the content of a file.
#[derive(Debug, thiserror::Error)]
#[error("the {part}{} {problem}", file.as_ref().map_or_else(String::new, |file| format!(" {}", file.display())))]
pub(in crate::embedded) struct TlsError {
    pub(super) part: &'static str,
    /// The file; `None` for bytes.
    pub(super) file: Option<PathBuf>,
    /// The problem; its text continues a sentence that begins with the part.
    pub(super) problem: String,
}

impl SinkErrorSource for TlsError {
    fn category(&self) -> &'static str {
        "tls"
    }

    /// Files may be replaced, bytes may not.
    fn is_retryable(&self) -> bool {
        self.file.is_some()
    }
}
