//! The channel of watch responses to a client: one at a time, with a notice when it is written.
//!
//! tonic's stream of messages does not report when HTTP/2 has written a message: HTTP/2 takes messages and keeps them
//! until the client reads. So this module supplies the body of the HTTP response itself. HTTP/2 drops the last piece
//! of a message when it has written it, and only then the next message is encoded. At most one message of a watch
//! stream therefore waits in memory, and counts among the unread bytes of the server.

use std::convert::Infallible;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Frame;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::embedded::service::shared_body::{self, GRPC_PREFIX_LEN};
use crate::embedded::unread_bytes::{UnreadBytes, UnreadGuard};
use crate::proto::etcdserverpb::WatchResponse;

/// The client has closed the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamClosed;

/// The sending end.
#[derive(Debug)]
pub(super) struct ResponseSender {
    channel: Arc<Channel>,
    unread: UnreadBytes,
    /// Closes the connection.
    close: CancellationToken,
}

/// The end that HTTP/2 reads.
#[derive(Debug)]
pub(super) struct WatchBody(Arc<Channel>);

#[derive(Debug, Default)]
struct Channel(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// A message that HTTP/2 has not taken yet.
    message: Option<Message>,
    /// Whether a message is unwritten, taken or not.
    unwritten: bool,
    end: StreamEnd,
    /// Whether HTTP/2 has dropped its end.
    is_closed: bool,
    writer: Option<Waker>,
    reader: Option<Waker>,
}

/// A message in two pieces; the second is shared and may be empty.
struct Message {
    head: Option<Bytes>,
    events: Bytes,
    counted: UnreadGuard,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message").field("events", &self.events.len()).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
enum StreamEnd {
    #[default]
    Open,
    /// The status to send after the pending message.
    Closing(Status),
    Closed,
}

/// Both ends of a new stream of messages, whose bytes count as unread; `close` closes its connection.
pub(super) fn channel(unread: UnreadBytes, close: CancellationToken) -> (ResponseSender, WatchBody) {
    let channel = Arc::<Channel>::default();
    (ResponseSender { channel: Arc::clone(&channel), unread, close }, WatchBody(channel))
}

impl ResponseSender {
    /// Waits until all messages are written.
    pub(super) async fn written(&self) -> Result<(), StreamClosed> {
        std::future::poll_fn(|context| self.poll(context, |state| !state.unwritten)).await
    }

    /// Whether all messages are written.
    pub(super) fn is_written(&self) -> bool {
        !self.channel.0.lock().unwritten
    }

    /// Waits until the client has closed the stream.
    pub(super) async fn closed(&self) {
        let never = std::future::poll_fn(|context| self.poll(context, |_| false));
        never.await.unwrap_or_default();
    }

    fn poll(
        &self,
        context: &Context<'_>,
        ready: impl FnOnce(&State) -> bool,
    ) -> Poll<Result<(), StreamClosed>> {
        let mut state = self.channel.0.lock();
        if state.is_closed {
            Poll::Ready(Err(StreamClosed))
        } else if ready(&state) {
            Poll::Ready(Ok(()))
        } else {
            state.writer = Some(context.waker().clone());
            Poll::Pending
        }
    }

    /// Sends one message, `response` with `events` appended, and returns its size in bytes.
    ///
    /// The caller waits until earlier messages are written; a pending message would be lost.
    pub(super) fn send(&self, response: &WatchResponse, events: Bytes) -> usize {
        let head = shared_body::head(response, events.len());
        let length = head.len() - GRPC_PREFIX_LEN + events.len();
        let (head, events) = if events.is_empty() { (None, head) } else { (Some(head), events) };
        let counted = self.unread.count(&events, self.close.clone());
        let message = Message { head, events, counted };
        self.channel.change(|state| {
            debug_assert!(!state.unwritten, "a message was sent before the last one was written");
            state.unwritten = true;
            state.message = Some(message);
            state.reader.take()
        });
        length
    }

    /// Ends the stream with `status` after the pending message.
    pub(super) fn end(&self, status: Status) {
        self.channel.change(|state| {
            state.end = StreamEnd::Closing(status);
            state.reader.take()
        });
    }
}

impl Drop for ResponseSender {
    fn drop(&mut self) {
        self.channel.change(|state| {
            if matches!(state.end, StreamEnd::Open) {
                state.end = StreamEnd::Closing(Status::ok(""));
            }
            state.reader.take()
        });
    }
}

impl Channel {
    /// Changes the state, then wakes the other end outside of the lock.
    fn change(&self, change: impl FnOnce(&mut State) -> Option<Waker>) {
        let waker = change(&mut self.0.lock());
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl http_body::Body for WatchBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut state = self.0.0.lock();
        if let Some(mut message) = state.message.take() {
            if let Some(head) = message.head.take() {
                state.message = Some(message);
                return Poll::Ready(Some(Ok(Frame::data(head))));
            }
            let last = Bytes::from_owner(LastPiece {
                bytes: message.events,
                channel: Arc::clone(&self.0),
                _counted: message.counted,
            });
            return Poll::Ready(Some(Ok(Frame::data(last))));
        }
        match mem::replace(&mut state.end, StreamEnd::Closed) {
            StreamEnd::Closing(status) => Poll::Ready(shared_body::trailers(&status).map(Ok)),
            StreamEnd::Closed => Poll::Ready(None),
            StreamEnd::Open => {
                state.end = StreamEnd::Open;
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        let message = {
            let mut state = self.0.0.lock();
            state.is_closed = true;
            state.message.take()
        };
        drop(message);
        self.0.change(|state| state.writer.take());
    }
}

/// The last piece of a message. HTTP/2 drops it when it is written or discarded.
struct LastPiece {
    bytes: Bytes,
    channel: Arc<Channel>,
    _counted: UnreadGuard,
}

impl AsRef<[u8]> for LastPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for LastPiece {
    fn drop(&mut self) {
        self.channel.change(|state| {
            state.unwritten = false;
            state.writer.take()
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use http_body::Body as _;
    use prost::Message as _;
    use tonic::Code;

    use super::*;

    fn unbounded() -> (ResponseSender, WatchBody) {
        channel(UnreadBytes::new(usize::MAX, Arc::default()), CancellationToken::new())
    }

    fn frame(body: &mut WatchBody) -> Option<Frame<Bytes>> {
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).now_or_never();
        frame.flatten().map(Result::unwrap)
    }

    fn response(watch_id: i64) -> WatchResponse {
        WatchResponse { watch_id, ..WatchResponse::default() }
    }

    #[test]
    fn a_message_is_written_when_its_last_piece_is_dropped_and_not_before() {
        let (channel, mut body) = unbounded();
        assert_eq!(channel.written().now_or_never(), Some(Ok(())));
        assert!(frame(&mut body).is_none());

        let events = WatchResponse { canceled: true, ..WatchResponse::default() }.encode_to_vec();
        let shared = Bytes::from(events);
        channel.send(&response(7), shared.clone());
        let pieces = [frame(&mut body).unwrap(), frame(&mut body).unwrap()].map(|it| it.into_data().unwrap());
        assert!(frame(&mut body).is_none());
        assert_eq!(channel.written().now_or_never(), None);
        assert_eq!(pieces[1].as_ptr(), shared.as_ptr(), "the shared bytes are not copied");
        let whole = pieces.concat();
        assert_eq!(
            whole[..GRPC_PREFIX_LEN],
            [0, 0, 0, 0, u8::try_from(whole.len() - GRPC_PREFIX_LEN).unwrap()]
        );
        let decoded = WatchResponse::decode(&whole[GRPC_PREFIX_LEN..]).unwrap();
        assert_eq!((decoded.watch_id, decoded.canceled), (7, true));

        let [head, last] = pieces;
        drop(head);
        assert_eq!(channel.written().now_or_never(), None);
        drop(last);
        assert_eq!(channel.written().now_or_never(), Some(Ok(())));
    }

    #[test]
    fn the_status_follows_the_pending_message() {
        let (channel, mut body) = unbounded();
        channel.send(&response(1), Bytes::new());
        channel.end(Status::unavailable("later"));
        drop(channel);
        assert!(frame(&mut body).unwrap().is_data());
        let trailers = frame(&mut body).unwrap().into_trailers().unwrap();
        assert_eq!(Status::from_header_map(&trailers).unwrap().code(), Code::Unavailable);
        assert!(frame(&mut body).is_none());
    }

    #[test]
    fn a_closed_client_is_noticed_in_every_state() {
        let (channel, body) = unbounded();
        channel.send(&response(1), Bytes::new());
        assert_eq!(channel.closed().now_or_never(), None);
        drop(body);
        assert_eq!(channel.closed().now_or_never(), Some(()));
        assert_eq!(channel.written().now_or_never(), Some(Err(StreamClosed)));
    }
}
