//! The KV service: reads are answered, writes are refused.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use tonic::body::Body;
use tonic::{Request, Response, Status};

use super::range::{Cost, RangeError};
use super::{Services, range, refusal, shared_body, txn};
use crate::embedded::LIST_LIMIT;
use crate::embedded::peer::Peer;
use crate::embedded::responses::{PendingResponses, ResponseRoom};
use crate::embedded::store::Store;
use crate::proto::etcdserverpb::kv_server;
use crate::proto::etcdserverpb::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse,
    RangeRequest, RangeResponse, TxnRequest, TxnResponse,
};

pub(in crate::embedded) struct Kv(pub(super) Services);

#[tonic::async_trait]
impl kv_server::Kv for Kv {
    async fn range(&self, request: Request<RangeRequest>) -> Result<Response<RangeResponse>, Status> {
        let services = &self.0;
        let peer = super::peer(&request);
        let reader = services.reader(&peer);
        let request = request.into_inner();
        refusal::check_range(&request)?;
        let range = range::range_of(&request);
        services.permit(&reader?, &range)?;
        services.fence().await?;
        let replica = &services.replica;
        let (bytes, body) = if range::is_plain(&request) {
            let respond = || {
                let read = |store: &Store| Ok((range::plain(store, &range, &replica.lists)?, store.header()));
                let ((pairs, is_new), header) =
                    replica.read(read).map_err(|range_error| services.range_error(range_error))?;
                replica.counters.update(|stats| stats.lists_encoded += u64::from(is_new));
                Ok((pairs.len(), (pairs, header)))
            };
            let ((pairs, header), room) = services.with_room(&peer, respond).await?;
            let own = RangeResponse { header: Some(super::header(header)), ..RangeResponse::default() };
            let head = shared_body::head(&own, pairs.len());
            let bytes = own.encoded_len() + pairs.len();
            let pairs = services.track(&peer, pairs, room);
            (bytes, shared_body::message([head, pairs]))
        } else {
            let respond = |store: &Store| range::respond(store, &request, &mut Cost::default());
            services.whole_response(&peer, respond).await?
        };
        replica.counters.update(|stats| {
            stats.lists += 1;
            stats.list_bytes += bytes as u64;
        });
        if bytes > LIST_LIMIT {
            let key = refusal::truncated_key(&request.key);
            tracing::warn!(key, bytes, limit = LIST_LIMIT, "a list is larger than PingSIX can read");
        }
        Ok(shared_body::with_body(RangeResponse::default(), body))
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let services = &self.0;
        let peer = super::peer(&request);
        let reader = services.reader(&peer);
        let request = request.into_inner();
        txn::check(&request)?;
        let reader = reader?;
        txn::ranges(&request).try_for_each(|range| services.permit(&reader, &range))?;
        services.fence().await?;
        let (_, body) = services.whole_response(&peer, |store| txn::respond(store, &request)).await?;
        Ok(shared_body::with_body(TxnResponse::default(), body))
    }

    async fn put(&self, _: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        Err(refusal::read_only())
    }

    async fn delete_range(
        &self,
        _: Request<DeleteRangeRequest>,
    ) -> Result<Response<DeleteRangeResponse>, Status> {
        Err(refusal::read_only())
    }

    /// Always refused: the server bounds its history itself, and a client must not cancel the watches of others.
    async fn compact(&self, _: Request<CompactionRequest>) -> Result<Response<CompactionResponse>, Status> {
        Err(refusal::read_only())
    }
}

impl Services {
    /// Raises the header above that of every other server.
    async fn fence(&self) -> Result<(), Status> {
        self.replica.fence().await.map_err(|error| {
            tracing::warn!(%error, "no revision above those of other servers is available for a list");
            Status::unavailable("no revision above those of the other servers could be reserved")
        })
    }

    /// The size and the body of a response that no other client shares.
    async fn whole_response<M: Message>(
        &self,
        peer: &Peer,
        respond: impl Fn(&Store) -> Result<M, RangeError>,
    ) -> Result<(usize, Body), Status> {
        let respond = || {
            let response = self.replica.read(&respond).map_err(|error| self.range_error(error))?;
            Ok((response.encoded_len(), response))
        };
        let (response, room) = self.with_room(peer, respond).await?;
        let whole = shared_body::head(&response, 0);
        Ok((response.encoded_len(), shared_body::message([self.track(peer, whole, room)])))
    }

    /// The result of `respond` with its size in bytes, once its connection has room. Without room, `respond` runs again
    /// later, because a waiting request must neither occupy room nor return old data.
    async fn with_room<T>(
        &self,
        peer: &Peer,
        respond: impl Fn() -> Result<(usize, T), Status>,
    ) -> Result<(T, ResponseRoom), Status> {
        let bytes = {
            let (bytes, response) = respond()?;
            if let Some(room) = PendingResponses::try_reserve(peer, bytes) {
                return Ok((response, room));
            }
            bytes
        };
        let room = self.replica.responses.wait_for_room(peer, bytes).await?;
        self.fence().await?;
        let (_, response) = respond()?;
        Ok((response, room))
    }

    /// The bytes of a response, which take room until the client has read them.
    fn track(&self, peer: &Peer, bytes: Bytes, room: ResponseRoom) -> Bytes {
        let replica = Arc::downgrade(&self.replica);
        self.replica.responses.track(peer, bytes, room, move || {
            if let Some(replica) = replica.upgrade() {
                replica.counters.update(|stats| stats.streams_stalled += 1);
            }
            tracing::warn!("connection closed: its client left a response unread");
        })
    }
}
