//! TLS of a client.

use std::path::PathBuf;

use crate::pem::PemSource;

/// The CAs that verify a server, and the certificate of its client.
///
/// Files are read when the sink is built and again for every new connection, so that certificates may be replaced
/// while the sink is in use. The server's certificate is always verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    pub(crate) ca: PemSource,
    /// The chain and its key.
    pub(crate) identity: Option<(PemSource, PemSource)>,
    pub(crate) domain: Option<String>,
}

impl ClientTls {
    /// Trusts the CAs in this PEM file.
    pub fn ca_file(path: impl Into<PathBuf>) -> Self {
        Self { ca: PemSource::File(path.into()), identity: None, domain: None }
    }

    /// Trusts these CAs in PEM.
    pub fn ca_pem(pem: impl Into<Vec<u8>>) -> Self {
        Self { ca: PemSource::Pem(pem.into()), identity: None, domain: None }
    }

    /// Presents a client certificate from PEM files with chain and key.
    #[must_use]
    pub fn identity_files(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((PemSource::File(certificate.into()), PemSource::File(key.into())));
        self
    }

    /// Presents a client certificate with chain and key in PEM.
    #[must_use]
    pub fn identity_pem(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.identity = Some((PemSource::Pem(certificate.into()), PemSource::Pem(key.into())));
        self
    }

    /// The name in the certificates of all endpoints. Default: the host of each.
    #[must_use]
    pub fn domain(mut self, name: impl Into<String>) -> Self {
        self.domain = Some(name.into());
        self
    }
}
