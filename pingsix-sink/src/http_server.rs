//! The HTTP server of pages for operators and developers: probes, status, metrics, dumps and explanations.
//!
//! Every wait has an end, and every buffer a limit. A new connection always finds a place, because the oldest one ends when
//! all places are taken. The answer to a probe takes milliseconds, so clients with idle connections cannot delay it.

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

/// Connections at a time.
const MAX_CONNECTIONS: usize = 256;

/// The time limit of a request's head, from the time when the connection could carry one.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The lifetime of a connection; a request in progress is still answered.
const CONNECTION_LIFETIME: Duration = Duration::from_mins(5);

/// The time limit of the end of connections.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Bytes of a request's head over HTTP/1.1.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The delay after a failure to accept a connection, most likely for lack of file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// The versions of HTTP of a server without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/1.1, and HTTP/2 for clients that begin with its preface.
    Http1And2,
}

/// Answers requests that arrive at a listener until it is stopped. Then it lets those in progress end for a short while.
pub async fn serve<S, B>(listener: TcpListener, service: S, versions: Versions, stop: CancellationToken)
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    if versions == Versions::Http1 {
        builder = builder.http1_only();
    }
    let tasks = TaskTracker::new();
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let stream = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            stream = accept(&listener) => stream,
        };
        if open.len() >= MAX_CONNECTIONS {
            open.retain(|connection| !connection.is_finished());
        }
        if open.len() >= MAX_CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            debug!("all places are taken, so the oldest connection ends");
            oldest.abort();
        }
        open.push_back(
            tasks.spawn(converse(builder.clone(), stream, service.clone(), stop.clone())).abort_handle(),
        );
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                warn!(%error, "cannot accept a connection, retrying");
                sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
}

/// Serves a connection to its end.
async fn converse<S, B>(
    builder: auto::Builder<TokioExecutor>,
    stream: TcpStream,
    service: S,
    stop: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop.cancelled() => None,
        () = sleep(CONNECTION_LIFETIME) => None,
    };
    let ended = if let Some(ended) = ended {
        Ok(ended)
    } else {
        connection.as_mut().graceful_shutdown();
        timeout(GRACE_PERIOD, connection).await
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "connection ended with a fault"),
        Err(_) => debug!("connection cut at its end"),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use hyper::service::service_fn;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = service_fn(async |_| Ok::<_, Infallible>(Response::new("live\n".to_owned())));
        let server = tokio::spawn(serve(listener, answer, Versions::Http1, CancellationToken::new()));
        let mut silent = TcpStream::connect(address).await.unwrap();
        silent.write_all(b"GET /livez HTTP/1.1\r\nhost").await.unwrap();
        let begin = tokio::time::Instant::now();
        // An answer with 408 or none: the connection ends.
        let _ = silent.read_to_end(&mut Vec::new()).await;
        assert!(begin.elapsed() <= HEAD_TIMEOUT + Duration::from_secs(1), "{:?}", begin.elapsed());
        server.abort();
    }

    #[tokio::test]
    async fn idle_connections_take_no_place_from_a_request() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let answer = service_fn(async |_| Ok::<_, Infallible>(Response::new("live\n".to_owned())));
        let server = tokio::spawn(serve(listener, answer, Versions::Http1And2, stop.clone()));
        let mut idle = Vec::new();
        for _ in 0..=MAX_CONNECTIONS {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK") && text.ends_with("live\n"), "{text}");
        assert_eq!(idle[0].read(&mut [0]).await.unwrap(), 0, "the oldest connection has ended");
        stop.cancel();
        drop(idle);
        server.await.unwrap();
    }

    #[tokio::test]
    async fn http2_is_served_where_it_is_asked_for() {
        for (versions, frame) in [(Versions::Http1, None), (Versions::Http1And2, Some(4))] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let answer = service_fn(async |_| Ok::<_, Infallible>(Response::new("live\n".to_owned())));
            let server = tokio::spawn(serve(listener, answer, versions, CancellationToken::new()));
            // The preface, and an empty frame with the settings of the client, which the server answers with its own.
            stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
            let mut head = [0; 9];
            let answered = stream.read_exact(&mut head).await.is_ok() && !head.starts_with(b"HTTP");
            assert_eq!(answered.then_some(head[3]), frame, "{head:?}");
            server.abort();
        }
    }
}
