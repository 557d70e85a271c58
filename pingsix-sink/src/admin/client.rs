//! Requests to an Admin API.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::listed::ListedResource;
use super::tls::{Tls, TlsCredentials};
use super::{AdminError, AdminUrl};
use crate::backoff::Backoff;
use crate::document::{Document, Key};
use crate::resource::ResourceKind;
use crate::revision::Revision;

/// Size limit of a response. PingSIX reads at most 4 MiB from etcd, and JSON may lengthen them.
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;

/// Attempts of a write that conflicts with other writers.
const MAX_ATTEMPTS: u32 = 10;

const FIRST_DELAY: Duration = Duration::from_millis(40);
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Message of PingSIX for a resource that cannot be deleted because another refers to it
/// (`GraphError::ReferentialConflict` in `src/proxy/graph_mutation.rs`). The other conflict is between two writers.
const STILL_REFERENCED_MESSAGE: &str = "conflicting references";

pub(super) struct Client {
    url: AdminUrl,
    api_key: HeaderValue,
    timeout: Duration,
    tls: Tls,
    /// The HTTP client and the credentials from which it was made.
    current: Mutex<Option<(Option<TlsCredentials>, Http)>>,
}

type Http = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Outcome of a write.
pub(super) enum PutOutcome {
    /// The revision of the write.
    Committed(Revision),
    /// The reason why PingSIX refused the document. The text may quote any document.
    Refused(String),
}

/// Outcome of a deletion.
pub(super) enum DeleteOutcome {
    /// The resource is absent.
    Gone,
    /// The resource stays, because others refer to it.
    StillReferenced,
}

/// A response with its body.
struct UnexpectedResponse {
    status: StatusCode,
    body: Bytes,
}

#[derive(Deserialize)]
struct List {
    list: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    key: String,
    value: Map<String, Value>,
    #[serde(rename = "modifiedIndex")]
    modified: i64,
}

#[derive(Deserialize)]
struct Committed {
    revision: i64,
}

impl Client {
    pub(super) fn new(
        url: AdminUrl,
        api_key: HeaderValue,
        tls: Tls,
        timeout: Duration,
    ) -> Result<Self, AdminError> {
        let client = Self { url, api_key, timeout, tls, current: Mutex::default() };
        client.http()?;
        Ok(client)
    }

    /// An HTTP client with the current content of the files. PingSIX closes each connection after a response, so the
    /// next connection uses the content of that time.
    fn http(&self) -> Result<Http, AdminError> {
        let credentials = if self.url.is_plaintext() { None } else { Some(self.tls.read()?) };
        let mut current = self.current.lock();
        if let Some((held, http)) = &*current
            && *held == credentials
        {
            return Ok(http.clone());
        }
        let config = self.tls.config(credentials.as_ref())?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(self.timeout));
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        // PingSIX closes the connection after each response, so a pooled connection would break.
        let http = legacy::Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        *current = Some((credentials, Http::clone(&http)));
        Ok(http)
    }

    pub(super) const fn url(&self) -> &AdminUrl {
        &self.url
    }

    /// All resources of a kind.
    pub(super) async fn list(&self, kind: ResourceKind) -> Result<Vec<ListedResource>, AdminError> {
        let answer = self.send(Method::GET, kind.as_str(), None).await?;
        if answer.status != StatusCode::OK {
            return Err(AdminError::Status { request: format!("GET {kind}"), status: answer.status });
        }
        // A message of serde_json may quote a value.
        let list: List = serde_json::from_slice(&answer.body).map_err(|_| AdminError::answer(kind))?;
        list.list
            .into_iter()
            .map(|entry| entry.listed(kind).ok_or_else(|| AdminError::answer(kind)))
            .collect()
    }

    /// Writes a document.
    pub(super) async fn put(&self, sent: &Document) -> Result<PutOutcome, AdminError> {
        let request = || format!("PUT {}", sent.key);
        let mut conflicts = Conflicts::new();
        loop {
            let answer = self.send(Method::PUT, sent.key.as_str(), Some(sent.value.clone())).await?;
            match answer.status {
                StatusCode::OK | StatusCode::CREATED => {
                    let committed = serde_json::from_slice::<Committed>(&answer.body).ok();
                    let revision = committed.and_then(|committed| Revision::new(committed.revision));
                    return revision
                        .map(PutOutcome::Committed)
                        .ok_or_else(|| AdminError::UnexpectedResponse { request: request() });
                }
                StatusCode::CONFLICT => conflicts.pause(request).await?,
                StatusCode::BAD_REQUEST => return Ok(PutOutcome::Refused(answer.text())),
                status => return Err(AdminError::Status { request: request(), status }),
            }
        }
    }

    /// Deletes a resource.
    pub(super) async fn delete(&self, key: &Key) -> Result<DeleteOutcome, AdminError> {
        let request = || format!("DELETE {key}");
        let mut conflicts = Conflicts::new();
        loop {
            let answer = self.send(Method::DELETE, key.as_str(), None).await?;
            match answer.status {
                // Another client has deleted the resource, or the response to an earlier request was lost.
                StatusCode::OK | StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => {
                    return Ok(DeleteOutcome::Gone);
                }
                StatusCode::CONFLICT if answer.text().contains(STILL_REFERENCED_MESSAGE) => {
                    return Ok(DeleteOutcome::StillReferenced);
                }
                StatusCode::CONFLICT => conflicts.pause(request).await?,
                status => return Err(AdminError::Status { request: request(), status }),
            }
        }
    }

    async fn send(
        &self,
        method: Method,
        resource: &str,
        body: Option<Bytes>,
    ) -> Result<UnexpectedResponse, AdminError> {
        let named = || format!("{method} {resource}");
        let send_once = self.send_once(self.http()?, &method, resource, body);
        match tokio::time::timeout(self.timeout, send_once).await {
            Err(_) => Err(AdminError::Timeout { request: named() }),
            Ok(Err(source)) => Err(AdminError::Connection { request: named(), source }),
            Ok(Ok(answer)) if answer.status == StatusCode::FORBIDDEN => Err(AdminError::ApiKey),
            Ok(Ok(answer)) => Ok(answer),
        }
    }

    async fn send_once(
        &self,
        http: Http,
        method: &Method,
        resource: &str,
        body: Option<Bytes>,
    ) -> Result<UnexpectedResponse, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}/apisix/admin/{resource}", self.url))
            .header("x-api-key", &self.api_key);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let response = http.request(request.body(Full::new(body.unwrap_or_default()))?).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await?.to_bytes();
        Ok(UnexpectedResponse { status, body })
    }
}

impl Entry {
    fn listed(self, kind: ResourceKind) -> Option<ListedResource> {
        let (_, id) = self.key.rsplit_once('/')?;
        Some(ListedResource {
            key: Key::new(format!("{kind}/{id}")).ok()?,
            kind,
            fields: self.value,
            revision: Revision::new(self.modified)?,
        })
    }
}

impl UnexpectedResponse {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The conflicts of a write with other writers, up to a limit of attempts.
struct Conflicts {
    attempts: u32,
    backoff: Backoff,
}

impl Conflicts {
    fn new() -> Self {
        Self { attempts: 0, backoff: Backoff::new(FIRST_DELAY, MAX_DELAY) }
    }

    /// Waits before the next attempt.
    async fn pause(&mut self, request: impl FnOnce() -> String) -> Result<(), AdminError> {
        self.attempts += 1;
        if self.attempts >= MAX_ATTEMPTS {
            return Err(AdminError::Contended { request: request() });
        }
        self.backoff.pause().await;
        Ok(())
    }
}
