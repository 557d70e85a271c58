//! TLS credentials of both ends of a connection to an Admin API.

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::AdminError;
use crate::pem::{IdentityError, PemSource, authorities, identity};

fn read(source: &PemSource) -> Result<Vec<u8>, &'static str> {
    source.read().map_err(|_| "cannot be read")
}

/// TLS sources of a sink over https. Files are read for each connection, so a replaced file takes effect at once.
#[derive(Clone, Default)]
pub(super) struct Tls {
    pub(super) ca: Option<PemSource>,
    /// The chain and its key.
    pub(super) identity: Option<(PemSource, PemSource)>,
}

/// The content of the TLS sources.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct TlsCredentials {
    ca: Vec<u8>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl Tls {
    pub(super) fn read(&self) -> Result<TlsCredentials, AdminError> {
        let Some(ca) = &self.ca else {
            return Err(AdminError::Ca { file: None, problem: "is not given, and https needs one" });
        };
        let ca = read(ca).map_err(|problem| self.ca_error(problem))?;
        let identity = match &self.identity {
            None => None,
            Some((chain, key)) => {
                let chain = read(chain)
                    .map_err(|problem| self.identity_error(IdentityError::Certificate(problem)))?;
                let key = read(key).map_err(|problem| self.identity_error(IdentityError::Key(problem)))?;
                Some((chain, key))
            }
        };
        Ok(TlsCredentials { ca, identity })
    }

    /// Client configuration. Without credentials, as for plaintext, the client trusts no CA.
    pub(super) fn config(&self, credentials: Option<&TlsCredentials>) -> Result<ClientConfig, AdminError> {
        let roots = match credentials {
            Some(credentials) => {
                authorities(&credentials.ca).map_err(|error| self.ca_error(error.as_str()))?
            }
            None => RootCertStore::empty(),
        };
        let config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|_| self.ca_error("cannot be used with any version of TLS"))?
            .with_root_certificates(roots);
        match credentials.and_then(|credentials| credentials.identity.as_ref()) {
            None => Ok(config.with_no_client_auth()),
            Some((chain, key)) => {
                let (chain, key) = identity(chain, key).map_err(|error| self.identity_error(error))?;
                let unusable = |_| self.identity_error(IdentityError::Certificate("cannot be used"));
                config.with_client_auth_cert(chain, key).map_err(unusable)
            }
        }
    }

    fn ca_error(&self, problem: &'static str) -> AdminError {
        AdminError::Ca { file: self.ca.as_ref().and_then(PemSource::file), problem }
    }

    fn identity_error(&self, error: IdentityError) -> AdminError {
        let (chain, key) =
            self.identity.as_ref().map_or((None, None), |(chain, key)| (chain.file(), key.file()));
        match error {
            IdentityError::Certificate(problem) => {
                AdminError::Identity { part: "certificate", file: chain, problem }
            }
            IdentityError::Key(problem) => AdminError::Identity { part: "key", file: key, problem },
        }
    }
}
