//! The certificates and keys of a cluster.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls_pki_types::CertificateDer;

/// The certificate of the API server, and the authority with which clients verify it.
pub(crate) struct Authority {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) certificate_pem: String,
    pub(crate) server_certificate_pem: String,
    pub(crate) server_key_pem: String,
    /// Signs the tokens of service accounts.
    pub(crate) token_key_pem: String,
    /// Checks them.
    pub(crate) token_public_key_pem: String,
}

impl Authority {
    /// A new authority, which no other cluster has.
    pub(crate) fn new() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "test cluster");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let names = [
            "127.0.0.1",
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "10.96.0.1",
        ];
        let mut params = CertificateParams::new(names.map(str::to_owned))?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let server_key = KeyPair::generate()?;
        let server = params.signed_by(&server_key, &issuer)?;
        let token_key = KeyPair::generate()?;
        Ok(Self {
            certificate: issuer.der().clone(),
            certificate_pem: issuer.pem(),
            server_certificate_pem: server.pem(),
            server_key_pem: server_key.serialize_pem(),
            token_key_pem: token_key.serialize_pem(),
            token_public_key_pem: token_key.public_key_pem(),
        })
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}
