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
use tokio_rustls::rustls::pki_types::ServerName;

use super::AdminError;
use super::listed::ListedResource;
use super::tls::{self, TlsCredentials};
use super::url::AdminUrl;
use crate::backoff::Backoff;
use crate::client_tls::ClientTls;
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
    tls: Option<ClientTls>,
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
struct Answer {
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
        tls: Option<ClientTls>,
        timeout: Duration,
    ) -> Result<Self, AdminError> {
        let client = Self { url, api_key, timeout, tls, current: Mutex::default() };
        client.http()?;
        Ok(client)
    }

    /// An HTTP client with the current content of the files. PingSIX closes each connection after a response, so the
    /// next connection uses the content of that time.
    fn http(&self) -> Result<Http, AdminError> {
        let tls = match &self.tls {
            _ if self.url.is_plaintext() => None,
            Some(tls) => Some((tls, tls.read()?)),
            None => {
                return Err(AdminError::Ca { file: None, problem: "is not given, and https needs one" });
            }
        };
        let credentials = tls.as_ref().map(|(_, credentials)| credentials);
        let mut current = self.current.lock();
        if let Some((held, http)) = &*current
            && held.as_ref() == credentials
        {
            return Ok(http.clone());
        }
        let config = tls::config(tls.as_ref().map(|(tls, credentials)| (*tls, credentials)))?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(self.timeout));
        tcp.set_nodelay(true);
        let mut connector = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
        if let Some(domain) = tls.as_ref().and_then(|(tls, _)| tls.domain.clone()) {
            connector =
                connector.with_server_name_resolver(move |_: &_| ServerName::try_from(domain.clone()));
        }
        let connector = connector.enable_http1().wrap_connector(tcp);
        // PingSIX closes the connection after each response, so a pooled connection would break.
        let http = legacy::Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        *current = Some((credentials.cloned(), Http::clone(&http)));
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
        let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY);
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                backoff.pause().await;
            }
            let answer = self.send(Method::PUT, sent.key.as_str(), Some(sent.value.clone())).await?;
            match answer.status {
                StatusCode::OK | StatusCode::CREATED => {
                    let committed = serde_json::from_slice::<Committed>(&answer.body).ok();
                    let revision = committed.and_then(|committed| Revision::new(committed.revision));
                    return revision
                        .map(PutOutcome::Committed)
                        .ok_or_else(|| AdminError::UnexpectedResponse { request: request() });
                }
                StatusCode::CONFLICT => {}
                StatusCode::BAD_REQUEST => return Ok(PutOutcome::Refused(answer.text())),
                status => return Err(AdminError::Status { request: request(), status }),
            }
        }
        Err(AdminError::Contended { request: request() })
    }

    /// Deletes a resource.
    pub(super) async fn delete(&self, key: &Key) -> Result<DeleteOutcome, AdminError> {
        let request = || format!("DELETE {key}");
        let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY);
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                backoff.pause().await;
            }
            let answer = self.send(Method::DELETE, key.as_str(), None).await?;
            match answer.status {
                // Another client has deleted the resource, or the response to an earlier request was lost.
                StatusCode::OK | StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => {
                    return Ok(DeleteOutcome::Gone);
                }
                StatusCode::CONFLICT if answer.text().contains(STILL_REFERENCED_MESSAGE) => {
                    return Ok(DeleteOutcome::StillReferenced);
                }
                StatusCode::CONFLICT => {}
                status => return Err(AdminError::Status { request: request(), status }),
            }
        }
        Err(AdminError::Contended { request: request() })
    }

    async fn send(&self, method: Method, resource: &str, body: Option<Bytes>) -> Result<Answer, AdminError> {
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
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
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
        Ok(Answer { status, body })
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

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
