//! The Auth service: there is no authentication by passwords.
//!
//! `etcdctl` with a user continues without one after this refusal, and PingSIX with a user logs it.

use tonic::{Request, Response, Status};

use super::Services;
use crate::proto::etcdserverpb::auth_server;
use crate::proto::etcdserverpb::{
    AuthStatusRequest, AuthStatusResponse, AuthenticateRequest, AuthenticateResponse,
};

pub(in crate::embedded) struct Auth(pub(super) Services);

#[tonic::async_trait]
impl auth_server::Auth for Auth {
    async fn auth_status(
        &self,
        _: Request<AuthStatusRequest>,
    ) -> Result<Response<AuthStatusResponse>, Status> {
        let enabled = self.0.replica.access.is_enabled();
        Ok(Response::new(AuthStatusResponse { header: Some(self.0.header()), enabled, auth_revision: 1 }))
    }

    async fn authenticate(
        &self,
        _: Request<AuthenticateRequest>,
    ) -> Result<Response<AuthenticateResponse>, Status> {
        Err(Status::failed_precondition("etcdserver: authentication is not enabled"))
    }
}
