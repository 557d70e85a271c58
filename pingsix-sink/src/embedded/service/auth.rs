//! The Auth service: authentication. Users and roles cannot be managed here.

use std::time::Duration;

use tonic::{Request, Response, Status};

use super::Services;
use crate::embedded::access::Denied;
use crate::proto::etcdserverpb::auth_server;
use crate::proto::etcdserverpb::{
    AuthStatusRequest, AuthStatusResponse, AuthenticateRequest, AuthenticateResponse,
};

/// Delay of the response to a wrong password, against guessing.
const FENCE_INTERVAL: Duration = Duration::from_millis(500);

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
        request: Request<AuthenticateRequest>,
    ) -> Result<Response<AuthenticateResponse>, Status> {
        let services = &self.0;
        let AuthenticateRequest { name, password } = request.into_inner();
        match services.replica.access.authenticate(&name, &password) {
            Ok(token) => Ok(Response::new(AuthenticateResponse { header: Some(services.header()), token })),
            Err(denied) => {
                if denied == Denied::WrongPassword {
                    if services.replica.log_limiter.should_log("wrong password") {
                        tracing::warn!("authentication failed: unknown user or wrong password");
                    }
                    tokio::time::sleep(FENCE_INTERVAL).await;
                }
                Err(services.deny(denied))
            }
        }
    }
}
