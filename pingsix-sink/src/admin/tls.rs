//! TLS credentials of both ends of a connection to an Admin API.

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::AdminError;
use crate::client_tls::ClientTls;
use crate::pem::{IdentityError, PemSource, authorities, identity};

fn read(source: &PemSource) -> Result<Vec<u8>, &'static str> {
    source.read().map_err(|_| "cannot be read")
}

/// The content of the TLS sources. Files are read for each connection, so a replaced file takes effect at once.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct TlsCredentials {
    ca: Vec<u8>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl ClientTls {
    pub(super) fn read(&self) -> Result<TlsCredentials, AdminError> {
        let ca = read(&self.ca).map_err(|problem| self.ca_error(problem))?;
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

    fn ca_error(&self, problem: &'static str) -> AdminError {
        AdminError::Ca { file: self.ca.file(), problem }
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

/// Client configuration. Without credentials, as for plaintext, the client trusts no CA.
pub(super) fn config(tls: Option<(&ClientTls, &TlsCredentials)>) -> Result<ClientConfig, AdminError> {
    let roots = match tls {
        Some((tls, credentials)) => {
            authorities(&credentials.ca).map_err(|error| tls.ca_error(error.as_str()))?
        }
        None => RootCertStore::empty(),
    };
    let config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("the provider has suites of both versions")
        .with_root_certificates(roots);
    match tls.and_then(|(tls, credentials)| Some((tls, credentials.identity.as_ref()?))) {
        None => Ok(config.with_no_client_auth()),
        Some((tls, (chain, key))) => {
            let (chain, key) = identity(chain, key).map_err(|error| tls.identity_error(error))?;
            let unusable = |_| tls.identity_error(IdentityError::Certificate("cannot be used"));
            config.with_client_auth_cert(chain, key).map_err(unusable)
        }
    }
}
