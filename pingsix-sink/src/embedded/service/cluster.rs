//! The Cluster service: one member at the address of the listener.

use tonic::{Request, Response, Status};

use super::{MEMBER_ID, Services};
use crate::proto::etcdserverpb::{Member, MemberListRequest, MemberListResponse, cluster_server};

pub(in crate::embedded) struct Cluster(pub(super) Services);

#[tonic::async_trait]
impl cluster_server::Cluster for Cluster {
    async fn member_list(
        &self,
        _: Request<MemberListRequest>,
    ) -> Result<Response<MemberListResponse>, Status> {
        let member = Member {
            id: MEMBER_ID,
            name: "pingsix-sink".to_owned(),
            peer_ur_ls: Vec::new(),
            client_ur_ls: vec![format!("{}://{}", self.0.scheme(), self.0.address)],
            is_learner: false,
        };
        Ok(Response::new(MemberListResponse { header: Some(self.0.header()), members: vec![member] }))
    }
}
