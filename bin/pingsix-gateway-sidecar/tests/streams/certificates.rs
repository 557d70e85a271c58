//! Certificates, and TLS clients.

use std::io;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::connect;

/// An authority with an intermediate one below it.
pub(crate) struct Authority {
    /// The intermediate certificate and the root.
    issuers: [rcgen::Certificate; 2],
    issuer: Issuer<'static, KeyPair>,
}

/// A chain, leaf first, and the key of the leaf.
#[derive(Clone)]
pub(crate) struct Certificate {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pem: String,
    key: String,
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

impl Authority {
    pub(crate) fn new() -> Self {
        let params = authority_params("root");
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap();
        let root_issuer = Issuer::new(params, key);
        let params = authority_params("intermediate");
        let key = KeyPair::generate().unwrap();
        let intermediate = params.signed_by(&key, &root_issuer).unwrap();
        Self { issuers: [intermediate, root], issuer: Issuer::new(params, key) }
    }

    /// A certificate for these names, with a key of P-256.
    pub(crate) fn certificate(&self, names: &[&str]) -> Certificate {
        self.certify(names, &KeyPair::generate().unwrap())
    }

    /// A certificate for these names, with an RSA key.
    pub(crate) fn rsa_certificate(&self, names: &[&str]) -> Certificate {
        self.certify(names, &KeyPair::from_pem(include_str!("rsa-key.pem")).unwrap())
    }

    fn certify(&self, names: &[&str], key: &KeyPair) -> Certificate {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let leaf = CertificateParams::new(names).unwrap().signed_by(key, &self.issuer).unwrap();
        let chain = || [&leaf].into_iter().chain(&self.issuers);
        Certificate {
            chain: chain().map(|certificate| certificate.der().clone()).collect(),
            pem: chain().map(rcgen::Certificate::pem).collect(),
            key: key.serialize_pem(),
        }
    }

    /// The document `cas/<id>` of the root.
    pub(crate) fn document(&self, id: &str) -> (String, Value) {
        (format!("cas/{id}"), json!({"certs": self.issuers[1].pem()}))
    }

    /// A client that trusts the authority.
    pub(crate) fn client(&self, version: &'static SupportedProtocolVersion) -> Client {
        self.picky_client(version, None)
    }

    /// A client that trusts the authority, and takes signatures of one scheme alone.
    pub(crate) fn picky_client(
        &self,
        version: &'static SupportedProtocolVersion,
        scheme: Option<SignatureScheme>,
    ) -> Client {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.issuers[1].der().clone()).unwrap();
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
        let verifier = Picky { verifier: verifier.build().unwrap(), scheme };
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Client { config: Arc::new(config) }
    }
}

impl Certificate {
    /// The certificate with its issuers repeated, so that it has at least so many bytes.
    pub(crate) fn lengthened(&self, bytes: usize) -> Self {
        let mut long = self.clone();
        while long.chain.iter().map(|certificate| certificate.len()).sum::<usize>() < bytes {
            long.chain.extend_from_slice(&self.chain[1..]);
        }
        long
    }

    /// The certificate with the key of another.
    pub(crate) fn with_key_of(&self, other: &Self) -> Self {
        Self { key: other.key.clone(), ..self.clone() }
    }

    /// The document `ssls/<id>`.
    pub(crate) fn document(&self, id: &str) -> (String, Value) {
        (format!("ssls/{id}"), json!({"cert": self.pem, "key": self.key}))
    }
}

/// A TLS client, which keeps the tickets it gets.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) config: Arc<ClientConfig>,
}

impl Client {
    /// The client with these protocols of ALPN.
    pub(crate) fn offering(mut self, protocols: &[&str]) -> Self {
        let config = Arc::make_mut(&mut self.config);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        self
    }

    /// The client with a certificate of its own, shown to every server that asks for one.
    pub(crate) fn showing(mut self, certificate: &Certificate) -> Self {
        let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).unwrap();
        let key = ring::sign::any_supported_type(&key).unwrap();
        let shown = SingleCertAndKey::from(CertifiedKey::new(certificate.chain.clone(), key));
        Arc::make_mut(&mut self.config).client_auth_cert_resolver = Arc::new(shown);
        self
    }

    /// A connection to a port for a server name, after its handshake.
    pub(crate) async fn open(&self, port: u16, name: &str) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        TlsConnector::from(Arc::clone(&self.config)).connect(name, connect(port).await).await
    }
}

/// A verifier that may know one scheme alone.
#[derive(Debug)]
struct Picky {
    verifier: Arc<WebPkiServerVerifier>,
    scheme: Option<SignatureScheme>,
}

impl ServerCertVerifier for Picky {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.scheme.map_or_else(|| self.verifier.supported_verify_schemes(), |scheme| vec![scheme])
    }
}
