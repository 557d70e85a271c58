//! A connector for one connection.
//!
//! A channel of tonic connects again whenever its connection has ended, possibly to another server behind the same
//! name. Replicas of the embedded server count their own revisions, so a list of one must not be continued by a watch
//! of another.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::codegen::{Service, StdError};

/// Connects at the first call, and fails at every later one.
#[derive(Debug)]
pub(super) struct SingleConnection(Option<HttpConnector>);

impl SingleConnection {
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        // tonic adds TLS.
        connector.enforce_http(false);
        connector.set_nodelay(true);
        Self(Some(connector))
    }
}

impl Service<Uri> for SingleConnection {
    type Response = TokioIo<TcpStream>;
    type Error = StdError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, StdError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StdError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.0.take();
        Box::pin(async move {
            let mut connector = connector.ok_or("the connection has ended")?;
            Ok(connector.call(uri).await?)
        })
    }
}
