//! How an Admin API proves itself, and how we do.

use std::fs;
use std::path::{Path, PathBuf};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::AdminError;
use crate::pem::{authorities, certificates};

/// The files of a sink that talks https. They are read for each connection: whoever replaces them replaces them in force.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    pub(super) ca: Option<PathBuf>,
    /// A chain, and its key.
    pub(super) identity: Option<(PathBuf, PathBuf)>,
}

/// What was in the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Material {
    ca: Vec<u8>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl Files {
    pub(super) fn read(&self) -> Result<Material, AdminError> {
        let Some(ca) = &self.ca else {
            return Err(AdminError::Ca { file: None, problem: "is not given, and https needs one" });
        };
        let ca = fs::read(ca).map_err(|_| self.fault_of_ca("cannot be read"))?;
        let read = |path: &Path| fs::read(path).map_err(|_| fault_of_identity(path, "cannot be read"));
        let identity = self.identity.as_ref();
        let identity = identity.map(|(chain, key)| Ok((read(chain)?, read(key)?))).transpose()?;
        Ok(Material { ca, identity })
    }

    /// What connections are made with; without material, as for plaintext, nobody is trusted.
    pub(super) fn config(&self, material: Option<&Material>) -> Result<ClientConfig, AdminError> {
        let roots = match material {
            Some(material) => authorities(&material.ca).map_err(|fault| self.fault_of_ca(fault.as_str()))?,
            None => RootCertStore::empty(),
        };
        let config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|_| self.fault_of_ca("cannot be used with any version of TLS"))?
            .with_root_certificates(roots);
        match (&self.identity, material.and_then(|material| material.identity.as_ref())) {
            (Some((chain_file, key_file)), Some((chain, key))) => {
                let chain =
                    certificates(chain).map_err(|fault| fault_of_identity(chain_file, fault.as_str()))?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|_| fault_of_identity(key_file, "holds no private key"))?;
                let config = config.with_client_auth_cert(chain, key);
                config.map_err(|_| fault_of_identity(key_file, "is not the key of the certificate"))
            }
            (Some(_) | None, _) => Ok(config.with_no_client_auth()),
        }
    }

    fn fault_of_ca(&self, problem: &'static str) -> AdminError {
        AdminError::Ca { file: self.ca.clone(), problem }
    }
}

fn fault_of_identity(file: &Path, problem: &'static str) -> AdminError {
    AdminError::Identity { file: file.to_owned(), problem }
}
