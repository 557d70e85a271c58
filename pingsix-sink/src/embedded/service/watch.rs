//! The Watch service: one task per stream, which reads the store's commits at the pace of its client.

mod channel;
mod state;
mod stream;

use tonic::body::Body;
use tonic::{Request, Response, Status, Streaming};

use super::{Services, shared_body};
use crate::embedded::store::{KeyRange, Store, StoreError};
use crate::proto::etcdserverpb::{WatchRequest, WatchResponse, watch_server};
use stream::WatchStream;

#[derive(Debug)]
pub(in crate::embedded) struct Watch(pub(super) Services);

#[tonic::async_trait]
impl watch_server::Watch for Watch {
    type WatchStream = futures::stream::Pending<Result<WatchResponse, Status>>;

    async fn watch(
        &self,
        request: Request<Streaming<WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let services = &self.0;
        if !services.replica.read(Store::is_complete) {
            let everything = KeyRange::new(b"\0", b"\0");
            return Err(services.refuse(&everything, StoreError::NotComplete));
        }
        let peer = super::peer(&request);
        let place = services.replica.streams.take(peer.holder(), peer.close_token()).ok_or_else(|| {
            services.replica.counters.update(|stats| stats.watches_refused += 1);
            Status::resource_exhausted("etcdserver: too many requests")
        })?;
        let (channel, body) = channel::channel(services.replica.unread.clone(), peer.close_token());
        let stream = WatchStream::new(services.clone(), peer, request.into_inner(), channel);
        services.tasks.spawn(async move {
            stream.run().await;
            drop(place);
        });
        Ok(shared_body::with_body(futures::stream::pending(), Body::new(body)))
    }
}
