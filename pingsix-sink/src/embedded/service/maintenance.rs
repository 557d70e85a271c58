//! The Maintenance service, as far as health checks need it.

use tonic::{Request, Response, Status};

use super::{MEMBER_ID, Services, refusal};
use crate::proto::etcdserverpb::alarm_request::AlarmAction;
use crate::proto::etcdserverpb::{
    AlarmRequest, AlarmResponse, StatusRequest, StatusResponse, maintenance_server,
};

/// The etcd version whose behaviour this server has.
const VERSION: &str = "3.5.0";

pub(in crate::embedded) struct Maintenance(pub(super) Services);

#[tonic::async_trait]
impl maintenance_server::Maintenance for Maintenance {
    async fn alarm(&self, request: Request<AlarmRequest>) -> Result<Response<AlarmResponse>, Status> {
        match request.into_inner().action() {
            AlarmAction::Get => {
                Ok(Response::new(AlarmResponse { header: Some(self.0.header()), alarms: Vec::new() }))
            }
            AlarmAction::Activate | AlarmAction::Deactivate => Err(refusal::read_only()),
        }
    }

    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        let bytes: usize = self.0.replica.read(|store| store.scopes().map(|(_, size)| size.bytes).sum());
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let header = self.0.header();
        let index = header.revision.unsigned_abs();
        Ok(Response::new(StatusResponse {
            version: VERSION.to_owned(),
            db_size: bytes,
            db_size_in_use: bytes,
            leader: MEMBER_ID,
            raft_index: index,
            raft_applied_index: index,
            raft_term: header.raft_term,
            header: Some(header),
            errors: Vec::new(),
            is_learner: false,
        }))
    }
}
