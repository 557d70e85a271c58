//! The Lease service. A lease lives and expires as in etcd, but keys cannot be attached to it. Every authorised
//! reader may have leases.

use std::collections::BTreeMap;
use std::pin::Pin;

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::Services;
use crate::proto::etcdserverpb::lease_server;
use crate::proto::etcdserverpb::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseLeasesRequest,
    LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse, LeaseStatus, LeaseTimeToLiveRequest,
    LeaseTimeToLiveResponse,
};

/// etcd's own limit.
const MAX_TTL: i64 = 9_000_000_000;

/// Limit of live leases. Leases have no use here, so the limit is generous.
const MAX_LEASES: usize = 10_000;

/// The live leases.
#[derive(Debug, Default)]
pub(in crate::embedded) struct LeaseTable {
    leases: Mutex<Leases>,
}

#[derive(Debug, Default)]
struct Leases {
    alive: BTreeMap<i64, Granted>,
    last_id: i64,
}

#[derive(Clone, Copy, Debug)]
struct Granted {
    ttl: i64,
    expires: Instant,
}

impl Granted {
    fn new(ttl: i64, now: Instant) -> Self {
        Self { ttl, expires: now + Duration::from_secs(ttl.unsigned_abs()) }
    }
}

impl LeaseTable {
    fn grant(&self, id: i64, ttl: i64, now: Instant) -> Result<i64, Status> {
        if ttl > MAX_TTL {
            return Err(Status::out_of_range("etcdserver: too large lease TTL"));
        }
        let mut leases = self.leases.lock();
        leases.alive.retain(|_, lease| lease.expires > now);
        if leases.alive.len() >= MAX_LEASES {
            return Err(Status::resource_exhausted("too many leases"));
        }
        let id = if id == 0 {
            while leases.last_id == 0 || leases.alive.contains_key(&leases.last_id) {
                leases.last_id = leases.last_id.checked_add(1).unwrap_or(1);
            }
            leases.last_id
        } else if leases.alive.contains_key(&id) {
            return Err(Status::failed_precondition("etcdserver: lease already exists"));
        } else {
            id
        };
        leases.alive.insert(id, Granted::new(ttl.max(1), now));
        Ok(id)
    }

    fn revoke(&self, id: i64, now: Instant) -> Result<(), Status> {
        match self.leases.lock().alive.remove(&id) {
            Some(lease) if lease.expires > now => Ok(()),
            Some(_) | None => Err(Status::not_found("etcdserver: requested lease not found")),
        }
    }

    /// Renews a lease and returns its TTL; zero for an unknown lease, as in etcd.
    fn keep_alive(&self, id: i64, now: Instant) -> i64 {
        match self.leases.lock().alive.get_mut(&id) {
            Some(lease) if lease.expires > now => {
                *lease = Granted::new(lease.ttl, now);
                lease.ttl
            }
            Some(_) | None => 0,
        }
    }

    /// The remaining and the granted TTL in seconds of a live lease.
    fn time_to_live(&self, id: i64, now: Instant) -> Option<(i64, i64)> {
        let lease = self.leases.lock().alive.get(&id).copied().filter(|lease| lease.expires > now)?;
        let left = lease.expires.duration_since(now).as_secs();
        Some((i64::try_from(left).unwrap_or(i64::MAX), lease.ttl))
    }

    fn alive(&self, now: Instant) -> Vec<i64> {
        self.leases.lock().alive.iter().filter(|(_, lease)| lease.expires > now).map(|(id, _)| *id).collect()
    }
}

pub(in crate::embedded) struct Lease(pub(super) Services);

impl Lease {
    fn table(&self) -> &LeaseTable {
        &self.0.replica.leases
    }
}

#[tonic::async_trait]
impl lease_server::Lease for Lease {
    type LeaseKeepAliveStream = Pin<Box<dyn Stream<Item = Result<LeaseKeepAliveResponse, Status>> + Send>>;

    async fn lease_grant(
        &self,
        request: Request<LeaseGrantRequest>,
    ) -> Result<Response<LeaseGrantResponse>, Status> {
        self.0.reader(&super::peer(&request))?;
        let request = request.into_inner();
        let id = self.table().grant(request.id, request.ttl, Instant::now())?;
        let header = Some(self.0.header());
        Ok(Response::new(LeaseGrantResponse { header, id, ttl: request.ttl.max(1), error: String::new() }))
    }

    async fn lease_revoke(
        &self,
        request: Request<LeaseRevokeRequest>,
    ) -> Result<Response<LeaseRevokeResponse>, Status> {
        self.0.reader(&super::peer(&request))?;
        self.table().revoke(request.into_inner().id, Instant::now())?;
        Ok(Response::new(LeaseRevokeResponse { header: Some(self.0.header()) }))
    }

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<LeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        self.0.reader(&super::peer(&request))?;
        let services = self.0.clone();
        let ended = services.shutdown.clone().cancelled_owned();
        let responses = request.into_inner().map(move |request| {
            let id = request?.id;
            let ttl = services.replica.leases.keep_alive(id, Instant::now());
            Ok(LeaseKeepAliveResponse { header: Some(services.header()), id, ttl })
        });
        Ok(Response::new(Box::pin(futures::StreamExt::take_until(responses, ended))))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<LeaseTimeToLiveRequest>,
    ) -> Result<Response<LeaseTimeToLiveResponse>, Status> {
        self.0.reader(&super::peer(&request))?;
        let id = request.into_inner().id;
        // etcd answers -1 for an unknown lease instead of an error.
        let (ttl, granted_ttl) = self.table().time_to_live(id, Instant::now()).unwrap_or((-1, 0));
        let header = Some(self.0.header());
        Ok(Response::new(LeaseTimeToLiveResponse { header, id, ttl, granted_ttl, keys: Vec::new() }))
    }

    async fn lease_leases(
        &self,
        request: Request<LeaseLeasesRequest>,
    ) -> Result<Response<LeaseLeasesResponse>, Status> {
        self.0.reader(&super::peer(&request))?;
        let leases = self.table().alive(Instant::now()).into_iter().map(|id| LeaseStatus { id }).collect();
        Ok(Response::new(LeaseLeasesResponse { header: Some(self.0.header()), leases }))
    }
}
