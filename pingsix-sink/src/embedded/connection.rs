//! Connections: their acceptance and their closure by the server.
//!
//! - A client that connects without an HTTP/2 preface is closed after a timeout.
//! - A client that falls silent is detected by HTTP/2 pings.
//! - A client that answers pings but leaves a watch response unread is closed by its watch stream, because nothing
//!   else frees the memory of HTTP/2. The same holds for any other response that is not small
//!   ([`responses`](super::responses)).
//! - At the limit of connections, the client with the most gives one to a client with fewer; other connections are
//!   closed at once ([`fair_limit`](super::fair_limit)).

mod handshakes;

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use super::access::Certificate;
use super::fair_limit::{Holder, Identity};
use super::peer::Peer;
use super::replica::Replica;
pub(super) use handshakes::accept_tls;

/// Length of the HTTP/2 client preface.
const PREFACE_LEN: usize = 24;

/// Delay after a failed `accept`. Without it, a process without file descriptors would retry in a busy loop.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A connection that is counted while it is open.
pub(super) struct Connection<S> {
    io: S,
    peer: Arc<Peer>,
    close: Pin<Box<WaitForCancellationFutureOwned>>,
    preface: Option<Preface>,
    /// Whether the read buffer was touched.
    is_touched: bool,
    _open: Open,
}

/// The place of a connection is free when the connection ends, though requests may still hold its peer.
struct Open(Arc<Peer>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.release_slot();
    }
}

/// The missing part of the HTTP/2 preface.
struct Preface {
    missing: usize,
    deadline: Pin<Box<Sleep>>,
}

impl<S> Connection<S> {
    /// Admits a connection from this address, of a client with this certificate, within the client's share.
    fn admit(replica: &Replica, io: S, from: IpAddr, certificate: Option<Certificate>) -> Option<Self> {
        let network = from.into();
        let identity = match &certificate {
            Some(certificate) => Identity::Certificate(certificate.identity()),
            None => Identity::Address(network),
        };
        let (holder, close) = (Holder { identity, network }, CancellationToken::new());
        let Some(slot) = replica.connections.take(holder.clone(), close.clone()) else {
            replica.counters.update(|stats| stats.connections_refused += 1);
            if replica.log_limiter.should_log("too many connections") {
                let client = certificate.as_ref().and_then(Certificate::common_name).map(|name| &**name);
                let limit = replica.options.connection_limit;
                tracing::warn!(limit, %from, client, "connection limit reached; new connections of clients with the most are closed");
            }
            return None;
        };
        let peer = Arc::new(Peer::new(certificate, holder, slot, close.clone()));
        Some(Self {
            io,
            close: Box::pin(close.cancelled_owned()),
            _open: Open(Arc::clone(&peer)),
            peer,
            preface: Some(Preface::within(replica.options.preface_timeout)),
            is_touched: false,
        })
    }

    /// Fails after the connection was closed by the server.
    fn poll_closed(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.close.as_mut().poll(context) {
            Poll::Pending => Ok(()),
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

/// Connections with their addresses.
pub(super) fn addressed(
    incoming: impl Stream<Item = io::Result<TcpStream>>,
) -> impl Stream<Item = io::Result<(TcpStream, IpAddr)>> {
    // A connection without an address has been reset.
    incoming.try_filter_map(async |connection| {
        let from = connection.peer_addr().ok();
        Ok(from.map(|from| (connection, from.ip())))
    })
}

/// The connections of a plaintext listener.
pub(super) fn accept<S>(
    incoming: impl Stream<Item = io::Result<(S, IpAddr)>>,
    replica: Arc<Replica>,
) -> impl Stream<Item = Result<Connection<S>, Infallible>> {
    incoming.filter_map(move |accepted| {
        let replica = Arc::clone(&replica);
        async move {
            match accepted {
                Ok((connection, from)) => Connection::admit(&replica, connection, from, None).map(Ok),
                Err(error) => {
                    listener_failed(&replica, &error).await;
                    None
                }
            }
        }
    })
}

/// Logs a failed `accept` and waits before the next.
async fn listener_failed(replica: &Replica, error: &io::Error) {
    if replica.log_limiter.should_log("accept") {
        tracing::warn!(%error, "a connection could not be accepted");
    } else {
        tracing::debug!(%error, "a connection could not be accepted");
    }
    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
}

impl Preface {
    fn within(timeout: Duration) -> Self {
        Self { missing: PREFACE_LEN, deadline: Box::pin(tokio::time::sleep(timeout)) }
    }
}

impl<S> Connected for Connection<S> {
    type ConnectInfo = Arc<Peer>;

    fn connect_info(&self) -> Arc<Peer> {
        Arc::clone(&self.peer)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_closed(context)?;
        if self.preface.is_none() && !std::mem::replace(&mut self.is_touched, true) {
            // Frames of a watching client are few and small, and fill this buffer from its beginning to its end. Its
            // pages would otherwise become resident one by one over half an hour, and the server would seem to grow.
            buffer.initialize_unfilled();
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        if let Some(preface) = &mut self.preface {
            let count = buffer.filled().len() - before;
            preface.missing = preface.missing.saturating_sub(count);
            if preface.missing == 0 {
                self.preface = None;
            } else if read.is_pending() {
                ready!(preface.deadline.as_mut().poll(context));
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_closed(context)?;
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_closed(context)?;
        Pin::new(&mut self.io).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_closed(context)?;
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_closed(context)?;
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;
    use std::net::Ipv4Addr;

    use futures::{future, stream};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::*;
    use crate::embedded::EmbeddedEtcd;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test(start_paused = true)]
    async fn a_failed_listener_is_retried_after_a_delay() {
        let etcd = EmbeddedEtcd::builder().start().await.unwrap();
        let failures = (0..10).map(|_| Err(io::Error::other("no more files")));
        let incoming = stream::iter(failures.chain([Ok(tokio::io::empty())]));
        let started = Instant::now();
        let incoming = incoming.map_ok(|connection| (connection, LOOPBACK));
        let accepted: Vec<_> = accept(incoming, Arc::clone(&etcd.replica)).collect().await;
        assert_eq!(accepted.len(), 1);
        assert_eq!(etcd.stats().connections, 1);
        assert!(started.elapsed() >= 10 * ACCEPT_RETRY_DELAY, "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn the_read_buffer_is_touched_before_the_first_frame() {
        let etcd = EmbeddedEtcd::builder().start().await.unwrap();
        let (mut client, server) = tokio::io::duplex(64);
        let mut connection = Connection::admit(&etcd.replica, server, LOOPBACK, None).unwrap();
        client.write_all(&[0; PREFACE_LEN]).await.unwrap();
        connection.read_exact(&mut [0; PREFACE_LEN]).await.unwrap();
        client.write_all(&[0; 9]).await.unwrap();
        let mut memory = [MaybeUninit::uninit(); 8_192];
        let mut buffer = ReadBuf::uninit(&mut memory);
        let read = future::poll_fn(|context| Pin::new(&mut connection).poll_read(context, &mut buffer));
        read.await.unwrap();
        assert_eq!((buffer.filled().len(), buffer.initialized().len()), (9, 8_192));
    }
}
