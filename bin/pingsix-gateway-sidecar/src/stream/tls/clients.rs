//! The validation of client certificates.

use std::sync::Arc;

use pingsix_translate::stream::{ClientAuthMode, StreamCa};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

/// The most bytes of the certificates of a client. A connection keeps them until its end.
const MAX_CHAIN_BYTES: usize = 16 * 1024;
/// The most bytes of the names of authorities in a request for a certificate. Above it, clients choose without them.
const MAX_HINT_BYTES: usize = 16 * 1024;

/// The authorities of one document of `cas`.
#[derive(Debug)]
pub(super) struct Authorities(RootCertStore);

impl Authorities {
    /// Decodes a document. The error is a sentence that quotes nothing.
    pub(super) fn decode(value: &[u8]) -> Result<Self, &'static str> {
        let ca: StreamCa = serde_json::from_slice(value).map_err(|_| "The document cannot be decoded.")?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca.certs.as_bytes()) {
            let certificate = certificate.map_err(|_| "certs: There is a section that cannot be read.")?;
            roots.add(certificate).map_err(|_| "certs: There is a certificate that cannot be used.")?;
        }
        if roots.is_empty() { Err("certs: There is no certificate.") } else { Ok(Self(roots)) }
    }
}

/// The verifier of the clients of one route.
#[derive(Debug)]
pub(super) struct Clients {
    /// `None` takes any certificate, or none.
    trusted: Option<Arc<dyn ClientCertVerifier>>,
    hints: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Clients {
    /// A verifier with these authorities, at least one for [`ClientAuthMode::RequireAndVerify`].
    ///
    /// # Errors
    /// There is none.
    pub(super) fn new(
        mode: ClientAuthMode,
        authorities: &[Arc<Authorities>],
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, &'static str> {
        let mut roots = RootCertStore::empty();
        roots.extend(authorities.iter().flat_map(|authorities| authorities.0.roots.iter().cloned()));
        let hints = hints(&roots);
        let trusted = match mode {
            ClientAuthMode::Request => None,
            ClientAuthMode::RequireAndVerify => {
                let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(provider));
                Some(builder.build().map_err(|_| "client_auth.ca_ids: There is no authority.")?)
            }
        };
        Ok(Self { trusted, hints, algorithms: provider.signature_verification_algorithms })
    }
}

/// The names of the authorities, by which a client chooses among its certificates.
fn hints(roots: &RootCertStore) -> Vec<DistinguishedName> {
    let mut hints = roots.subjects();
    hints.sort_by(|one, other| one.as_ref().cmp(other.as_ref()));
    hints.dedup_by(|one, other| one.as_ref() == other.as_ref());
    let bytes: usize = hints.iter().map(|hint| hint.as_ref().len()).sum();
    if bytes <= MAX_HINT_BYTES { hints } else { Vec::new() }
}

impl ClientCertVerifier for Clients {
    fn client_auth_mandatory(&self) -> bool {
        self.trusted.is_some()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let bytes: usize = intermediates.iter().map(|certificate| certificate.len()).sum();
        if bytes + end_entity.len() > MAX_CHAIN_BYTES {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        match &self.trusted {
            Some(trusted) => trusted.verify_client_cert(end_entity, intermediates, now),
            None => Ok(ClientCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};
    use rustls::crypto::ring;
    use serde_json::json;

    use super::*;

    /// The authorities of a document with these names.
    fn authorities(names: &[String]) -> Arc<Authorities> {
        let certificate = |name: &String| {
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, name.as_str());
            params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
        };
        let certs: String = names.iter().map(certificate).collect();
        Arc::new(Authorities::decode(json!({ "certs": certs }).to_string().as_bytes()).unwrap())
    }

    fn clients(mode: ClientAuthMode, authorities: &[Arc<Authorities>]) -> Result<Clients, &'static str> {
        Clients::new(mode, authorities, &Arc::new(ring::default_provider()))
    }

    #[test]
    fn clients_are_told_each_name_once_unless_the_names_are_long() {
        let [one, other] = ["one", "other"].map(str::to_owned);
        let both = [authorities(&[one.clone(), other.clone()]), authorities(&[other])];
        for mode in [ClientAuthMode::RequireAndVerify, ClientAuthMode::Request] {
            assert_eq!(clients(mode, &both).unwrap().root_hint_subjects().len(), 2);
        }
        let long: Vec<String> = (0..9).map(|number| number.to_string().repeat(2_000)).collect();
        let long = [authorities(&long), authorities(&[one])];
        let clients = clients(ClientAuthMode::RequireAndVerify, &long).unwrap();
        assert!(clients.root_hint_subjects().is_empty() && clients.client_auth_mandatory());
    }

    #[test]
    fn certificates_are_required_of_some_authority_alone() {
        assert!(clients(ClientAuthMode::RequireAndVerify, &[]).is_err());
        assert!(!clients(ClientAuthMode::Request, &[]).unwrap().client_auth_mandatory());
    }
}
