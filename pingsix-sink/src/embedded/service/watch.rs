//! The Watch service: one task per stream, which reads the store's commits at the pace of its client.

mod state;
mod stream;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::Services;
use crate::embedded::store::{KeyRange, Refusal, Store};
use crate::proto::etcdserverpb::{WatchRequest, WatchResponse, watch_server};
use stream::WatchStream;

/// How many responses wait for the client of a stream; what comes after waits in the store's history.
const QUEUE: usize = 4;

pub(in crate::embedded) struct Watch(pub(super) Services);

#[tonic::async_trait]
impl watch_server::Watch for Watch {
    type WatchStream = ReceiverStream<Result<WatchResponse, Status>>;

    async fn watch(
        &self,
        request: Request<Streaming<WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let services = &self.0;
        if !services.replica.read(Store::is_complete) {
            let everything = KeyRange::new(b"\0".as_slice().into(), b"\0".as_slice().into());
            return Err(services.refuse(&everything, Refusal::NotComplete));
        }
        let (sender, receiver) = mpsc::channel(QUEUE);
        let present = services.replica.counters.streams.enter();
        let stream = WatchStream::new(services.clone(), request.into_inner(), sender);
        services.tasks.spawn(async move {
            stream.run().await;
            drop(present);
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}
