//! Connections of one exchange, one after the other.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{MESSAGE_BYTES, end, tls};
use crate::proxies::NAME;

/// The connections at a time.
const CONNECTIONS: usize = 64;

/// The number of connections, and their seconds.
pub(super) async fn plain(address: SocketAddr) -> Vec<f64> {
    all(async move || exchange(&mut TcpStream::connect(address).await?, &[7; MESSAGE_BYTES]).await).await
}

/// The same; each connection begins with a `ClientHello`, which the backend returns.
pub(super) async fn hellos(address: SocketAddr) -> Vec<f64> {
    let hello: Arc<[u8]> = tls::hello(NAME).into();
    all(async move || exchange(&mut TcpStream::connect(address).await?, &hello).await).await
}

/// The same after a TLS handshake.
pub(super) async fn handshakes(address: SocketAddr) -> Vec<f64> {
    let connector = TlsConnector::from(tls::client());
    all(async move || {
        let mut stream = shake(&connector, address).await?;
        exchange(&mut stream, &[7; MESSAGE_BYTES]).await?;
        stream.shutdown().await
    })
    .await
}

/// One request over HTTPS for each connection.
pub(super) async fn https(address: SocketAddr) -> Vec<f64> {
    let connector = TlsConnector::from(tls::client());
    let request = format!("GET / HTTP/1.1\r\nhost: {NAME}\r\nconnection: close\r\n\r\n");
    all(async move || {
        let mut stream = shake(&connector, address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = [0; MESSAGE_BYTES];
        stream.read_exact(&mut answer).await?;
        assert!(answer.starts_with(b"HTTP/1.1 200"));
        stream.shutdown().await
    })
    .await
}

async fn shake(connector: &TlsConnector, address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    connector.connect(tls::server_name(), stream).await
}

async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    stream.write_all(message).await?;
    let mut answer = [0; 1_024];
    let answer = &mut answer[..message.len()];
    stream.read_exact(answer).await?;
    assert!(answer == message);
    Ok(())
}

async fn all(one: impl AsyncFn() -> io::Result<()> + Clone + 'static) -> Vec<f64> {
    let (started, end) = (Instant::now(), end());
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let one = one.clone();
        tasks.spawn_local(async move {
            let mut count = 0;
            while Instant::now() < end {
                one().await.unwrap();
                count += 1;
            }
            count
        });
    }
    let count: u32 = tasks.join_all().await.into_iter().sum();
    vec![f64::from(count), started.elapsed().as_secs_f64()]
}
