//! What stands between a client and its protocol: a connection, with TLS or without.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

/// What bytes go through.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An address, and how a connection to it begins.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<Hello>,
}

/// What a client says before a TLS connection stands.
#[derive(Clone, Debug)]
pub(super) struct Hello {
    /// The name it asks for, or `None` for a client that does not say.
    pub(super) sni: Option<String>,
    /// The protocol it wants to speak, by its ALPN name.
    pub(super) alpn: &'static str,
}

/// A connection that stands.
pub(super) struct Opened {
    pub(super) stream: Box<dyn Stream>,
    /// The first certificate that was shown.
    pub(super) certificate: Option<Vec<u8>>,
}

impl Door {
    pub(super) async fn open(&self) -> io::Result<Opened> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => Ok(Opened { stream: Box::new(stream), certificate: None }),
            Some(hello) => hello.shake(stream).await,
        }
    }
}

impl Hello {
    async fn shake(&self, stream: TcpStream) -> io::Result<Opened> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyName(ring::default_provider())))
            .with_no_client_auth();
        config.alpn_protocols = vec![self.alpn.as_bytes().to_vec()];
        config.enable_sni = self.sni.is_some();
        // A name is needed even when it is not sent.
        let name = self.sni.clone().unwrap_or_else(|| "unnamed.test".to_owned());
        let name = ServerName::try_from(name).map_err(io::Error::other)?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let (_, session) = stream.get_ref();
        if session.alpn_protocol() != Some(self.alpn.as_bytes()) {
            return Err(io::Error::other(format!("{} was not agreed on", self.alpn)));
        }
        let shown = session.peer_certificates().and_then(<[_]>::first);
        let certificate = shown.map(|certificate| certificate.as_ref().to_vec());
        Ok(Opened { stream: Box::new(stream), certificate })
    }
}

/// Takes whatever certificate is shown, since which one that is is the question; who shows it must hold its key.
#[derive(Debug)]
struct AnyName(CryptoProvider);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
