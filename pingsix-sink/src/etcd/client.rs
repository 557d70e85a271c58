//! Requests to an etcd cluster: authentication, endpoints and timeouts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

use super::endpoints::Endpoints;
use super::error::{EtcdError, RequestError};
use super::single_connection::SingleConnection;
use crate::desired::Scope;
use crate::proto::etcdserverpb::auth_client::AuthClient;
use crate::proto::etcdserverpb::kv_client::KvClient;
use crate::proto::etcdserverpb::watch_client::WatchClient;
use crate::proto::etcdserverpb::watch_request::RequestUnion;
use crate::proto::etcdserverpb::{
    AuthenticateRequest, RangeRequest, RangeResponse, TxnRequest, TxnResponse, WatchCreateRequest,
    WatchRequest, WatchResponse,
};

/// Byte limit of a list, and of a response of a watch. A scope that is too large for PingSIX must remain readable for its repair.
const MAX_LIST_BYTES: usize = 256 << 20;

/// The number of keys in a page.
const PAGE_SIZE: i64 = 1_000;

/// Name and password.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The token that etcd issues for a name and a password; never shown.
type Token = MetadataValue<Ascii>;

/// One connection to one endpoint.
pub(super) struct Connection<'c> {
    client: &'c Client,
    channel: Arc<Channel>,
}

impl Connection<'_> {
    /// All keys under the scope, in at most so many bytes.
    pub(super) async fn list(&self, scope: &Scope, max_bytes: usize) -> Result<RangeResponse, EtcdError> {
        let list =
            self.call(scope, list_request(scope), |channel, request| list(channel, request, max_bytes));
        list.await.map_err(|error| error.or_too_large(scope, max_bytes))
    }

    /// The changes under the scope from `start_revision` on.
    pub(super) async fn watch(
        &self,
        scope: &Scope,
        start_revision: i64,
        max_bytes: usize,
    ) -> Result<Streaming<WatchResponse>, EtcdError> {
        let create = watch_request(scope, start_revision);
        self.call(scope, create, |channel, request| open_watch(channel, request, max_bytes)).await
    }

    async fn call<I: Clone, O, A: Future<Output = Result<Response<O>, Status>>>(
        &self,
        scope: &Scope,
        message: I,
        send: impl Fn(Channel, Request<I>) -> A,
    ) -> Result<O, EtcdError> {
        let answer = self.client.send(&self.channel, message, send).await;
        answer.map_err(|error| error.about(scope))
    }
}

/// The next response of a watch.
pub(super) fn received(
    scope: &Scope,
    message: Result<Option<WatchResponse>, Status>,
) -> Result<WatchResponse, EtcdError> {
    match message {
        Ok(Some(response)) => Ok(response),
        Ok(None) => Err(EtcdError::Unavailable("the watch ended".to_owned())),
        Err(status) => Err(RequestError::of(&status).about(scope)),
    }
}

fn list_request(scope: &Scope) -> RangeRequest {
    let (key, range_end) = scope.key_range();
    RangeRequest { key, range_end, ..RangeRequest::default() }
}

async fn list(
    channel: Channel,
    request: Request<RangeRequest>,
    max_bytes: usize,
) -> Result<Response<RangeResponse>, Status> {
    KvClient::new(channel).max_decoding_message_size(max_bytes).range(request).await
}

fn watch_request(scope: &Scope, start_revision: i64) -> WatchCreateRequest {
    let (key, range_end) = scope.key_range();
    WatchCreateRequest { key, range_end, start_revision, ..WatchCreateRequest::default() }
}

async fn open_watch(
    channel: Channel,
    create: Request<WatchCreateRequest>,
    max_bytes: usize,
) -> Result<Response<Streaming<WatchResponse>>, Status> {
    let request = create.map(|create| {
        let request_union = Some(RequestUnion::CreateRequest(create));
        stream::iter([WatchRequest { request_union }]).chain(stream::pending())
    });
    WatchClient::new(channel).max_decoding_message_size(max_bytes).watch(request).await
}

#[derive(Debug)]
pub(super) struct Client {
    endpoints: Endpoints,
    credentials: Option<Credentials>,
    timeout: Duration,
    token: Mutex<Option<Token>>,
}

impl Client {
    pub(super) fn new(endpoints: Endpoints, credentials: Option<Credentials>, timeout: Duration) -> Self {
        Self { endpoints, credentials, timeout, token: Mutex::default() }
    }

    /// All keys under the scope, as of one linearizable revision.
    pub(super) async fn list(&self, scope: &Scope) -> Result<RangeResponse, EtcdError> {
        self.call(scope, list_request(scope), |channel, request| list(channel, request, MAX_LIST_BYTES)).await
    }

    /// All keys below a prefix whose last segment is `name`, read in pages, because the prefix may have many other
    /// keys.
    pub(super) async fn keys(&self, below: &Scope, name: &str) -> Result<Vec<Bytes>, EtcdError> {
        let (mut key, range_end) = below.key_range();
        let mut found = Vec::new();
        loop {
            let request = RangeRequest {
                key: key.clone(),
                range_end: range_end.clone(),
                keys_only: true,
                limit: PAGE_SIZE,
                ..RangeRequest::default()
            };
            let page =
                self.call(below, request, |channel, request| list(channel, request, MAX_LIST_BYTES)).await?;
            let is_it = |key: &Bytes| key.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes());
            found.extend(page.kvs.iter().map(|kv| &kv.key).filter(|key| is_it(key)).cloned());
            let Some(last) = page.kvs.last().filter(|_| page.more) else { return Ok(found) };
            // The next key in order.
            key = [&*last.key, &[0]].concat().into();
        }
    }

    /// The value of a key; errors name `scope`.
    pub(super) async fn get(&self, scope: &Scope, key: Bytes) -> Result<Option<Bytes>, EtcdError> {
        let request = RangeRequest { key, ..RangeRequest::default() };
        let found =
            self.call(scope, request, |channel, request| list(channel, request, MAX_LIST_BYTES)).await?;
        Ok(found.kvs.into_iter().next().map(|kv| kv.value))
    }

    /// A transaction. A failure with an unknown outcome repeats the transaction, so it must compare the keys that it
    /// changes: the repetition then fails its comparisons and changes nothing.
    pub(super) async fn txn(&self, scope: &Scope, request: TxnRequest) -> Result<TxnResponse, EtcdError> {
        self.call(scope, request, |channel, request| async move { KvClient::new(channel).txn(request).await })
            .await
    }

    /// The changes under the scope from `start_revision` on.
    pub(super) async fn watch(
        &self,
        scope: &Scope,
        start_revision: i64,
    ) -> Result<Streaming<WatchResponse>, EtcdError> {
        let create = watch_request(scope, start_revision);
        self.call(scope, create, |channel, request| open_watch(channel, request, MAX_LIST_BYTES)).await
    }

    /// The error of a cancelled watch. There is none if the watch is compacted, because a new list replaces it.
    pub(super) fn cancelled(&self, scope: &Scope, response: &WatchResponse) -> Result<(), EtcdError> {
        if response.compact_revision > 0 {
            tracing::debug!(%scope, response.compact_revision, "the watch is compacted");
            return Ok(());
        }
        // It may be the reason.
        self.forget_token();
        let reason = &response.cancel_reason;
        Err(if reason.contains("permission denied") {
            EtcdError::PermissionDenied { scope: scope.clone() }
        } else {
            EtcdError::Unavailable(format!("the watch was cancelled: {reason}"))
        })
    }

    fn forget_token(&self) {
        *self.token.lock() = None;
    }

    /// A connection to the current endpoint that is not made anew when it has ended.
    pub(super) async fn connect(&self, scope: &Scope) -> Result<Connection<'_>, EtcdError> {
        let endpoint = self.endpoints.current()?;
        let connecting = endpoint.connect_with_connector(SingleConnection::new());
        let channel = connecting.await.map_err(|error| {
            let status = Status::from_error(error.into());
            RequestError::of(&status).about(scope)
        })?;
        Ok(Connection { client: self, channel: Arc::new(channel) })
    }

    /// Uses the next endpoint for the next [`connect`](Self::connect).
    pub(super) fn leave_endpoint(&self) {
        self.endpoints.advance();
    }

    /// Sends a request to one endpoint after the other.
    async fn call<I: Clone, O, A: Future<Output = Result<Response<O>, Status>>>(
        &self,
        scope: &Scope,
        message: I,
        send: impl Fn(Channel, Request<I>) -> A,
    ) -> Result<O, EtcdError> {
        let mut endpoints = self.endpoints.count();
        loop {
            let channel = self.endpoints.channel()?;
            let error = match self.send(&channel, message.clone(), &send).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if let RequestError::Endpoint(error) = &error {
                self.endpoints.fail_over(&channel);
                endpoints -= 1;
                if endpoints > 0 {
                    tracing::debug!(%error, "an endpoint of etcd failed, trying the next");
                    continue;
                }
            }
            return Err(error.about(scope));
        }
    }

    /// Sends a request, and repeats it with a new token if the old one was refused.
    async fn send<I: Clone, O, A: Future<Output = Result<Response<O>, Status>>>(
        &self,
        channel: &Arc<Channel>,
        message: I,
        send: impl Fn(Channel, Request<I>) -> A,
    ) -> Result<O, RequestError> {
        match self.try_once(channel, message.clone(), &send).await {
            Err(RequestError::Token(_)) if self.credentials.is_some() => {
                self.forget_token();
                self.try_once(channel, message, send).await
            }
            answer => answer,
        }
    }

    async fn try_once<I, O, A: Future<Output = Result<Response<O>, Status>>>(
        &self,
        channel: &Arc<Channel>,
        message: I,
        send: impl Fn(Channel, Request<I>) -> A,
    ) -> Result<O, RequestError> {
        let mut request = Request::new(message);
        // With this header, a member without a leader refuses requests and ends watches instead of staying silent.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = self.token(channel).await? {
            request.metadata_mut().insert("token", token);
        }
        self.with_timeout(send(Channel::clone(channel), request)).await
    }

    async fn token(&self, channel: &Arc<Channel>) -> Result<Option<Token>, RequestError> {
        let Some(Credentials { user, password }) = &self.credentials else { return Ok(None) };
        if let Some(token) = self.token.lock().clone() {
            return Ok(Some(token));
        }
        let request = AuthenticateRequest { name: user.clone(), password: password.clone() };
        let mut auth = AuthClient::new(Channel::clone(channel));
        let answer = self.with_timeout(auth.authenticate(request)).await?;
        let mut token: Token = answer.token.parse().map_err(|_| {
            RequestError::Answer(EtcdError::Authentication("its token is no text for a header".to_owned()))
        })?;
        token.set_sensitive(true);
        *self.token.lock() = Some(token.clone());
        Ok(Some(token))
    }

    async fn with_timeout<O>(
        &self,
        answer: impl Future<Output = Result<Response<O>, Status>>,
    ) -> Result<O, RequestError> {
        match tokio::time::timeout(self.timeout, answer).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(RequestError::of(&status)),
            Err(_) => Err(RequestError::Endpoint(EtcdError::Timeout(self.timeout))),
        }
    }
}
