//! HTTP servers for developers, of which every wait has an end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

/// Connections served at a time.
const MAX_CONNECTIONS: usize = 64;

/// The time limits of the head of a request and of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(5);

/// The size limit of the head of a request over HTTP/1, in bytes.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// Answers requests until it is stopped.
pub(super) async fn run<F>(listener: TcpListener, respond: F, stop: CancellationToken) -> anyhow::Result<()>
where
    F: Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Send + Sync + 'static,
{
    let respond = Arc::new(respond);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let (stream, place) = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            accepted = accept(&listener, &places) => match accepted {
                Some(accepted) => accepted,
                None => continue,
            },
        };
        let (respond, stop) = (Arc::clone(&respond), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let respond = Arc::clone(&respond);
                // An answer may take a processor for a while.
                async move { Ok::<_, Infallible>(block_in_place(|| respond(&request))) }
            });
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder
                .http1()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(MAX_HEAD_BYTES);
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            // The result of a connection has no consequence.
            tokio::select! {
                _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection) => {}
                () = stop.cancelled() => {}
            }
            drop(place);
        });
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            tracing::warn!(error = %error, "cannot accept a connection, retrying");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}
