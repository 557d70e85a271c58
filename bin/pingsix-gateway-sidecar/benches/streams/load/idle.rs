//! Connections that are idle after one exchange.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;

use super::{MESSAGE_BYTES, tls};

/// The command to open the connections, with or without TLS.
pub(crate) const PLAIN: &str = "plain";
pub(crate) const TLS: &str = "tls";

/// Opens connections when it is asked.
pub(super) async fn run(address: SocketAddr, count: usize, mut commands: mpsc::UnboundedReceiver<String>) {
    let (mut plain, mut encrypted) = (Vec::new(), Vec::new());
    let connector = TlsConnector::from(tls::client());
    while let Some(command) = commands.recv().await {
        for _ in 0..count {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let mut message = [7; MESSAGE_BYTES];
            if command == TLS {
                let mut stream = connector.connect(tls::server_name(), stream).await.unwrap();
                stream.write_all(&message).await.unwrap();
                stream.read_exact(&mut message).await.unwrap();
                encrypted.push(stream);
            } else {
                stream.write_all(&message).await.unwrap();
                stream.read_exact(&mut message).await.unwrap();
                plain.push(stream);
            }
        }
        println!("open");
    }
}
