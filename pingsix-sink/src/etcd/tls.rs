//! TLS of connections to an etcd.

use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use super::error::EtcdError;
use crate::client_tls::ClientTls;
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

impl ClientTls {
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
