//! The listener and its shutdown.

use std::convert::Infallible;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _, pending};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::connection;
use super::error::EmbeddedError;
use super::replica::Replica;
use super::service::Services;

pub(super) async fn serve(
    replica: Arc<Replica>,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), EmbeddedError> {
    let options = replica.options;
    let address = listener.local_addr().map_err(EmbeddedError::Listener)?;
    let tls = replica.tls.clone();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let replica_access = Arc::clone(&replica.access);
    if tls.is_none() && !address.ip().to_canonical().is_loopback() && !options.allow_plaintext_beyond_loopback
    {
        return Err(EmbeddedError::PlaintextBeyondLoopback { address });
    }

    // Watch streams end with this future, also when it is dropped.
    let streams = CancellationToken::new();
    let _end_streams = streams.clone().drop_guard();
    let services = Services::new(Arc::clone(&replica), streams.clone());
    let tasks = services.tasks();
    let router = Server::builder()
        .max_concurrent_streams(options.stream_limit)
        // A client may also stop in the middle of a request.
        .timeout(options.stall_timeout.saturating_mul(2))
        .http2_keepalive_interval(Some(options.keepalive_interval))
        .http2_keepalive_timeout(Some(options.keepalive_timeout))
        .add_service(services.kv())
        .add_service(services.watch())
        .add_service(services.maintenance());
    let incoming = connection::addressed(TcpIncoming::from(listener).with_nodelay(Some(true)));
    let stopped = shutdown.clone().cancelled_owned();
    let (server, rotation): (BoxFuture<'_, _>, BoxFuture<'_, Infallible>) = match tls {
        None => {
            let incoming = connection::accept(incoming, replica);
            let server = router.serve_with_incoming_shutdown(incoming, stopped);
            (server.boxed(), pending().boxed())
        }
        Some(tls) => {
            let counters = Arc::clone(&replica.counters);
            let incoming = connection::accept_tls(incoming, Arc::clone(&tls), replica);
            let server = router.serve_with_incoming_shutdown(incoming, stopped);
            (server.boxed(), tls.keep_current(counters).boxed())
        }
    };
    let access = replica_access.keep_current();
    tracing::info!(%address, scheme, "serving the etcd protocol");

    // The last stream ends with the last connection; afterwards the listener holds no reference to the replica.
    let ended = async {
        let ended = server.await;
        streams.cancel();
        tasks.close();
        tasks.wait().await;
        ended
    };
    let drained = async {
        shutdown.cancelled().await;
        streams.cancel();
        tokio::time::sleep(options.drain_timeout).await;
    };
    tokio::select! {
        ended = ended => ended.map_err(|error| EmbeddedError::Serve(Box::new(error)))?,
        never = rotation => match never {},
        never = access => match never {},
        () = drained => tracing::info!(%address, "connections are still open after the drain timeout"),
    }
    tracing::info!(%address, "stopped serving");
    Ok(())
}
