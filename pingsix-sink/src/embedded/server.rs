//! The listener and its end.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::replica::Replica;
use super::service::Services;
use crate::error::SinkError;

pub(super) async fn serve(
    replica: Arc<Replica>,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), SinkError> {
    let options = replica.options;
    let address = listener.local_addr().map_err(SinkError::Listener)?;
    if !address.ip().is_loopback() && !options.allow_plaintext_beyond_loopback {
        return Err(SinkError::PlaintextBeyondLoopback { address });
    }

    // Watch streams end when the serving ends for whatever reason, also when this future is dropped.
    let streams = CancellationToken::new();
    let _end_streams = streams.clone().drop_guard();
    let services = Services::new(replica, address, streams.clone());
    let tasks = services.tasks();
    let server = Server::builder()
        .http2_keepalive_interval(Some(options.keepalive_interval))
        .http2_keepalive_timeout(Some(options.keepalive_timeout))
        .add_service(services.kv())
        .add_service(services.watch())
        .add_service(services.lease())
        .add_service(services.cluster())
        .add_service(services.maintenance())
        .add_service(services.auth())
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            shutdown.clone().cancelled_owned(),
        );
    tracing::info!(%address, "serving the etcd protocol");

    // With the last connection ends the last stream; then nothing holds the replica on behalf of this listener.
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
        ended = ended => ended.map_err(|error| SinkError::Serve(Box::new(error)))?,
        () = drained => tracing::info!(%address, "connections were still open at the end of the drain"),
    }
    tracing::info!(%address, "stopped serving");
    Ok(())
}
