//! The connection of a client, with TLS or without.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::credulous;

/// The stream of bytes.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An address, and how a connection to it begins.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    pub(super) address: SocketAddr,
    /// The address of this machine that the connection comes from; `None` for that of the system's choice.
    pub(super) source: Option<IpAddr>,
    pub(super) tls: Option<TlsHello>,
}

/// The first bytes of a client before TLS.
#[derive(Clone, Debug)]
pub(super) struct TlsHello {
    /// The name it asks for, or `None` for a client that does not say.
    pub(super) sni: Option<String>,
    /// The protocol it wants to speak, by its ALPN name.
    pub(super) alpn: &'static str,
}

/// A connection that stands.
pub(super) struct OpenStream {
    pub(super) stream: Box<dyn Stream>,
    /// The first certificate that was shown.
    pub(super) certificate: Option<Vec<u8>>,
}

impl Connector {
    pub(super) async fn open(&self) -> io::Result<OpenStream> {
        let stream = match self.source {
            None => TcpStream::connect(self.address).await?,
            Some(source) => {
                let socket = TcpSocket::new_v4()?;
                socket.bind(SocketAddr::new(source, 0))?;
                socket.connect(self.address).await?
            }
        };
        stream.set_nodelay(true)?;
        match &self.tls {
            None => Ok(OpenStream { stream: Box::new(stream), certificate: None }),
            Some(hello) => hello.handshake(stream).await,
        }
    }
}

impl TlsHello {
    async fn handshake(&self, stream: TcpStream) -> io::Result<OpenStream> {
        let mut config = credulous::client(self.alpn);
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
        Ok(OpenStream { stream: Box::new(stream), certificate })
    }
}
