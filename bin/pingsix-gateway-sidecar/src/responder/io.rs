use std::io::{Error, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;

use super::activity::Activity;

/// A TCP stream that reports the bytes that are read, and gives its reading half back when it is done.
///
/// Closing a socket with unread input resets the connection, and a reset can overtake the answer just written.
/// With the reading half in hand the rest can be read first.
#[derive(Debug)]
pub(crate) struct Io {
    read: Option<OwnedReadHalf>,
    write: OwnedWriteHalf,
    give_back: Option<oneshot::Sender<OwnedReadHalf>>,
    activity: Arc<Activity>,
}

impl Io {
    pub(crate) fn new(
        stream: TcpStream,
        activity: Arc<Activity>,
    ) -> (Self, oneshot::Receiver<OwnedReadHalf>) {
        let (read, write) = stream.into_split();
        let (give_back, receiver) = oneshot::channel();
        (Self { read: Some(read), write, give_back: Some(give_back), activity }, receiver)
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        if let (Some(read), Some(give_back)) = (self.read.take(), self.give_back.take()) {
            // The receiver is gone after the connection was cut.
            let _ = give_back.send(read);
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Error>> {
        let filled = buffer.filled().len();
        let Some(read) = self.read.as_mut() else { return Poll::Ready(Ok(())) };
        let poll = Pin::new(read).poll_read(cx, buffer);
        if buffer.filled().len() > filled {
            self.activity.bytes_read();
        }
        poll
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Error>> {
        Pin::new(&mut self.write).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        Pin::new(&mut self.write).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.write.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.write).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.write).poll_shutdown(cx)
    }
}
