//! The KV service: reads are answered, writes are refused.

use std::sync::Arc;

use prost::Message;
use tonic::{Request, Response, Status};

use super::{Services, own_body, range, refusal, txn};
use crate::embedded::LIST_LIMIT;
use crate::embedded::connection::Peer;
use crate::embedded::receptions::Asked;
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
        let asked = Asked::now(request.metadata());
        let reader = services.reader(&request);
        let client = request.extensions().get::<Arc<Peer>>().map(|peer| Arc::clone(peer.client()));
        let request = request.into_inner();
        if request.key.is_empty() {
            return Err(refusal::empty_key());
        }
        services.permit(&reader?, &range::range_of(&request))?;
        services.fence().await?;
        let (replica, range) = (&services.replica, range::range_of(&request));
        let (bytes, response) = if range::is_plain(&request) {
            let (list, header) = replica
                .read(|store| Ok((replica.shared_lists.get(store, &range)?, store.header())))
                .map_err(|refusal| services.refuse(&range, refusal))?;
            if let Some(client) = client {
                client.listed(&range, header, asked);
            }
            let pairs = list.encoded(|| replica.counters.lists_encoded.add(1)).clone();
            let own = RangeResponse { header: Some(super::header(header)), ..RangeResponse::default() };
            let bytes = own.encoded_len() + pairs.len();
            (bytes, own_body::with_body(RangeResponse::default(), own_body::message(&own, pairs)))
        } else {
            let response = replica
                .read(|store| range::answer(store, &request))
                .map_err(|refusal| services.refuse(&range, refusal))?;
            (response.encoded_len(), Response::new(response))
        };
        replica.counters.lists.add(1);
        replica.counters.list_bytes.add(bytes);
        if bytes > LIST_LIMIT {
            let key = refusal::loggable(&request.key);
            tracing::warn!(key, bytes, limit = LIST_LIMIT, "a list is larger than PingSIX can read");
        }
        Ok(response)
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let services = &self.0;
        let reader = services.reader(&request);
        let request = request.into_inner();
        txn::check(&request)?;
        let reader = reader?;
        txn::ranges(&request).try_for_each(|range| services.permit(&reader, &range))?;
        services.fence().await?;
        let response = services
            .replica
            .read(|store| txn::answer(store, &request))
            .map_err(|unanswered| services.refuse_txn(unanswered))?;
        Ok(Response::new(response))
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

    /// Refused: the past is bounded by itself, and a client must not be able to cancel the watches of others.
    async fn compact(&self, _: Request<CompactionRequest>) -> Result<Response<CompactionResponse>, Status> {
        Err(refusal::read_only())
    }
}

impl Services {
    /// Makes sure that the header to be answered is above that of every other server.
    async fn fence(&self) -> Result<(), Status> {
        self.replica.fence().await.map_err(|error| {
            tracing::warn!(%error, "a list cannot be answered with a revision above those of other servers");
            Status::unavailable("no revision above those of the other servers could be reserved")
        })
    }
}
