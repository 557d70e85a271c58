//! TLS options for an etcd.

use std::path::PathBuf;

use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use super::error::EtcdError;
use crate::pem::{PemSource, authorities};

fn read(source: &PemSource, option: &'static str) -> Result<Vec<u8>, EtcdError> {
    source.read().map_err(|error| failure(source, option, &error.to_string()))
}

/// Reads certificates, at least one. The error prevents that an unreadable certificate is ignored silently.
fn read_certificates(source: &PemSource, option: &'static str) -> Result<Vec<u8>, EtcdError> {
    let pem = read(source, option)?;
    match authorities(&pem) {
        Ok(_) => Ok(pem),
        Err(problem) => Err(failure(source, option, problem.as_str())),
    }
}

/// The error of an option, or the retryable error of a file, which may be replaced.
fn failure(source: &PemSource, option: &'static str, problem: &str) -> EtcdError {
    let problem = problem.to_owned();
    match source {
        PemSource::Pem(_) => EtcdError::Option { option, value: "in the options".to_owned(), problem },
        PemSource::File(file) => EtcdError::File { option, file: file.clone(), problem },
    }
}

/// CAs of an etcd and the client certificate.
///
/// Files are read when the sink is built and again for every new connection, so that certificates may be replaced
/// while the sink is in use. The server's certificate is always verified.
#[derive(Clone, Debug)]
pub struct ClientTls {
    pub(super) ca: PemSource,
    pub(super) identity: Option<(PemSource, PemSource)>,
    pub(super) domain: Option<String>,
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

    /// The error of the options as a whole, for instance a certificate and a key of different editions.
    pub(super) fn failure(&self, problem: &str) -> EtcdError {
        let (option, pem) = match &self.identity {
            // One of the two may be a file and the other bytes.
            Some((certificate @ PemSource::File(_), _)) => ("client certificate", certificate),
            Some((_, key)) => ("client key", key),
            None => ("CA", &self.ca),
        };
        failure(pem, option, problem)
    }

    /// Client configuration from the current files. They are small and read only for a new connection.
    pub(super) fn load(&self) -> Result<ClientTlsConfig, EtcdError> {
        let ca = Certificate::from_pem(read_certificates(&self.ca, "CA")?);
        let mut config = ClientTlsConfig::new().ca_certificate(ca);
        if let Some((certificate, key)) = &self.identity {
            let certificate = read_certificates(certificate, "client certificate")?;
            config = config.identity(Identity::from_pem(certificate, read(key, "client key")?));
        }
        if let Some(domain) = &self.domain {
            config = config.domain_name(domain.clone());
        }
        Ok(config)
    }
}
