use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, HeaderValue};
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, trace};

use super::activity::{Activity, Waiting, after};
use super::answer::answer;
use super::io::Io;
use super::options::Options;

/// hyper refuses to read with less.
const MIN_HEADER_BYTES: usize = 8 * 1024;
/// As many as PingSIX lets pass.
const MAX_HEADERS: usize = 256;
const MAX_STREAMS: u32 = 128;
const WINDOW_BYTES: u32 = 64 * 1024;
/// The time limit of a connection that was asked to close: a client that answers needs a round trip.
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// After an answer without its body, at most so many times `max_body_bytes` are read before the connection is cut.
const LINGER_FACTOR: usize = 16;

/// The shared state of all connections of a responder.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    /// No new requests, please.
    pub(crate) stop: CancellationToken,
    /// No more patience.
    pub(crate) cut: CancellationToken,
    /// An idle connection should give way to one that waits.
    pub(crate) crowded: Notify,
    pub(crate) tasks: TaskTracker,
}

/// Runs the streams of HTTP/2 connections where shutdown waits for them.
#[derive(Clone, Debug)]
struct Streams(TaskTracker);

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        self.0.spawn(stream);
    }
}

/// Serves one connection to its end, and then frees its place.
pub(crate) async fn run(stream: TcpStream, shared: Arc<Shared>, _place: OwnedSemaphorePermit) {
    let activity = Activity::new();
    let (io, rest) = Io::new(stream, Arc::clone(&activity));
    let linger = drive(io, &shared, &activity).await;
    if linger && let Ok(rest) = rest.await {
        tokio::select! {
            () = shared.cut.cancelled() => {}
            _ = timeout(shared.options.body_timeout, read_rest(rest, shared.options.max_body_bytes)) => {}
        }
    }
}

/// Returns whether there may be input left that has to be read for the answer to arrive.
async fn drive(io: Io, shared: &Arc<Shared>, activity: &Arc<Activity>) -> bool {
    let service = {
        let (shared, activity) = (Arc::clone(shared), Arc::clone(activity));
        service_fn(move |request| respond(request, Arc::clone(&shared), Arc::clone(&activity)))
    };
    let builder = builder(&shared.options, &shared.tasks);
    let connection = builder.serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);

    let mut stopping = false;
    let mut closing: Option<Instant> = None;
    loop {
        let waiting = activity.waiting(&shared.options);
        let deadline = waiting.map(|waiting| match (waiting, closing) {
            (Waiting::Head(deadline), _) => deadline,
            (Waiting::Idle(since), Some(closing)) => since.max(closing) + CLOSE_GRACE,
            (Waiting::Idle(since), None) => after(since, shared.options.idle_timeout),
        });
        let idle = matches!(waiting, Some(Waiting::Idle(_)));
        tokio::select! {
            result = connection.as_mut() => {
                let Err(error) = result else { return activity.has_body_left() };
                debug!(error = %error, "connection failed");
                // hyper has answered what it could not parse, and not read the rest of it.
                return error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
            }
            () = shared.cut.cancelled() => return false,
            () = shared.stop.cancelled(), if !stopping => {
                stopping = true;
                closing = Some(Instant::now());
                connection.as_mut().graceful_shutdown();
            }
            () = activity.changed() => {}
            () = shared.crowded.notified(), if idle && closing.is_none() => {
                closing = Some(Instant::now());
                connection.as_mut().graceful_shutdown();
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                if !idle || closing.is_some() {
                    debug!(idle, "connection cut");
                    return false;
                }
                closing = Some(Instant::now());
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

fn builder(options: &Options, tasks: &TaskTracker) -> Builder<Streams> {
    let header_bytes = options.max_header_bytes.max(MIN_HEADER_BYTES);
    let mut builder = Builder::new(Streams(tasks.clone()));
    builder
        .http1()
        .timer(TokioTimer::new())
        // See `Activity`.
        .header_read_timeout(None)
        .max_headers(MAX_HEADERS)
        .max_buf_size(header_bytes);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(header_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES * 2)
        .max_send_buf_size(16 * 1024);
    builder
}

async fn respond(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let _in_flight = activity.begin(request.version());
    let (head, body) = request.into_parts();
    let answer = answer(&head);
    let status = answer.status().as_u16();
    debug!(status, version = ?head.version, "answered");
    let mut response = answer.to_response(&head.method);
    let version = head.version;
    // A client with `Expect: 100-continue` has the answer now, and sends no body.
    let asks = head.headers.contains_key(EXPECT);
    // The head can be large, and the body may take its time.
    drop(head);

    if body.is_end_stream() {
        return Ok(response);
    }
    if version == Version::HTTP_2 {
        // The answer need not wait. But to drop the body is to reset the stream, and PingSIX takes a reset, though it
        // is no error, for one: its client would lose an answer that has arrived.
        let limit = shared.options.max_body_bytes.saturating_mul(LINGER_FACTOR);
        let time = shared.options.body_timeout;
        shared.tasks.spawn(async move { timeout(time, drain(body, limit)).await });
    } else {
        let limit = shared.options.max_body_bytes;
        let hopeless = body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX);
        let read = drain(body, limit);
        if asks || hopeless || !timeout(shared.options.body_timeout, read).await.unwrap_or(false) {
            trace!(status, "body left unread");
            activity.body_left();
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
    Ok(response)
}

/// Reads a body to its end; `false` if it is too large or broken.
async fn drain(mut body: Incoming, limit: usize) -> bool {
    let mut bytes = 0_usize;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        bytes = bytes.saturating_add(frame.data_ref().map_or(0, Bytes::len));
        if bytes > limit {
            return false;
        }
    }
    true
}

/// Reads and forgets what the peer still sends, up to a limit.
async fn read_rest(mut rest: OwnedReadHalf, max_body_bytes: usize) {
    let mut left = max_body_bytes.saturating_mul(LINGER_FACTOR);
    let mut buffer = [0_u8; 8 * 1024];
    while left > 0 {
        match rest.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(bytes) => left = left.saturating_sub(bytes),
        }
    }
}
