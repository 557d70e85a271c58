//! CAs, certificates, and clients that use them.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use pingsix_sink::embedded::ServerTls;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SerialNumber};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};

/// The server name in certificates.
pub(crate) const NAME: &str = "feed.test";

/// A CA.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate with this serial number for [`NAME`] and the loopback address.
    pub(crate) fn issue(&self, serial: u64) -> Pair {
        self.issue_with(serial, |_| {})
    }

    pub(crate) fn issue_with(&self, serial: u64, change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![NAME.to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.serial_number = Some(SerialNumber::from(serial));
        change(&mut params);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Pair { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Pair {
    pub(crate) fn server(&self) -> ServerTls {
        ServerTls::from_pem(self.certificate.as_str(), self.key.as_str())
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }
}

/// TLS configuration of a gRPC client.
pub(crate) fn client(authority: &Authority, identity: Option<&Pair>) -> ClientTlsConfig {
    let config =
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority.pem())).domain_name(NAME);
    match identity {
        None => config,
        Some(pair) => config.identity(Identity::from_pem(&pair.certificate, &pair.key)),
    }
}

pub(crate) async fn channel(
    address: SocketAddr,
    tls: ClientTlsConfig,
) -> Result<Channel, tonic::transport::Error> {
    Channel::from_shared(format!("https://{address}")).unwrap().tls_config(tls)?.connect().await
}

/// A TLS client without gRPC, which observes the handshake.
#[derive(Clone)]
pub(crate) struct Prober {
    config: Arc<ClientConfig>,
}

impl Prober {
    pub(crate) fn new(authority: &Authority, identity: Option<&Pair>) -> Self {
        Self::with(&[&version::TLS13, &version::TLS12], "h2", authority, identity)
    }

    pub(crate) fn with(
        versions: &[&'static SupportedProtocolVersion],
        protocol: &str,
        authority: &Authority,
        identity: Option<&Pair>,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(authority.0.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![pair.der()], key).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Self { config: Arc::new(config) }
    }

    pub(crate) async fn connect(&self, address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let connection = TcpStream::connect(address).await?;
        let name = ServerName::try_from(NAME).unwrap();
        TlsConnector::from(Arc::clone(&self.config)).connect(name, connection).await
    }

    /// The current certificate of the server.
    pub(crate) async fn server_certificate(&self, address: SocketAddr) -> CertificateDer<'static> {
        let connection = self.connect(address).await.unwrap();
        connection.get_ref().1.peer_certificates().unwrap()[0].clone()
    }
}
