//! An Admin API with PingSIX's rules (`src/admin/mod.rs` and `src/proxy/graph_mutation.rs` of PingSIX), in memory.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use pingsix_sink::resource::{ResourceKind, masked};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub(crate) const KEY: &str = "sesame";

/// The API on a loopback address, until the test ends.
#[derive(Clone)]
pub(crate) struct AdminDouble {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    revision: i64,
    resources: BTreeMap<(ResourceKind, String), Stored>,
    writes: Vec<String>,
    history: Vec<BTreeMap<String, Value>>,
    /// The number of further writes that conflict.
    conflicts: usize,
    /// The number of further writes before the store fails.
    writes_until_failure: Option<usize>,
    /// The number of further writes with a response.
    writes_until_loss: Option<usize>,
    /// Whether no request is answered.
    silent: bool,
}

#[derive(Clone)]
struct Stored {
    value: Value,
    created: i64,
    modified: i64,
}

impl AdminDouble {
    pub(crate) async fn start() -> Self {
        Self::serve(None).await
    }

    pub(crate) async fn start_tls(acceptor: TlsAcceptor) -> Self {
        Self::serve(Some(acceptor)).await
    }

    async fn serve(acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let double = Self { address: listener.local_addr().unwrap(), state: Arc::default() };
        let served = double.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (double, acceptor) = (served.clone(), acceptor.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request| double.clone().answer(request));
                    // PingSIX closes the connection after each response.
                    let mut http = hyper::server::conn::http1::Builder::new();
                    http.keep_alive(false);
                    match acceptor {
                        None => drop(http.serve_connection(TokioIo::new(stream), service).await),
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                drop(http.serve_connection(TokioIo::new(stream), service).await);
                            }
                        }
                    }
                });
            }
        });
        double
    }

    /// The writes by method and key; the call clears them.
    pub(crate) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().writes)
    }

    /// The stored value with secrets.
    pub(crate) fn stored(&self, key: &str) -> Option<Value> {
        self.state.lock().resources.get(&parse(key).unwrap()).map(|stored| stored.value.clone())
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.state.lock().resources.keys().map(|(kind, id)| format!("{kind}/{id}")).collect()
    }

    /// Writes as another user of the API.
    pub(crate) fn write(&self, key: &str, value: Value) {
        let mut state = self.state.lock();
        state.put(&parse(key).unwrap(), value).unwrap();
        state.writes.pop();
        state.history.pop();
    }

    pub(crate) fn remove(&self, key: &str) {
        self.state.lock().resources.remove(&parse(key).unwrap());
    }

    pub(crate) fn conflict_with(&self, conflicts: usize) {
        self.state.lock().conflicts = conflicts;
    }

    pub(crate) fn fail_after(&self, writes: Option<usize>) {
        self.state.lock().writes_until_failure = writes;
    }

    /// Writes everything, and closes the connection instead of responding after so many more writes.
    pub(crate) fn lose_responses_after(&self, writes: Option<usize>) {
        self.state.lock().writes_until_loss = writes;
    }

    /// Stops responding, or resumes.
    pub(crate) fn stall(&self, is_stalled: bool) {
        self.state.lock().silent = is_stalled;
    }

    /// Every stored value by key.
    pub(crate) fn all(&self) -> BTreeMap<String, Value> {
        self.state.lock().all(|_| true)
    }

    /// The stored values after each write over the API, without unmarked resources.
    pub(crate) fn history(&self) -> Vec<BTreeMap<String, Value>> {
        let state = self.state.lock();
        [BTreeMap::new()].into_iter().chain(state.history.iter().cloned()).collect()
    }

    /// Whether every reference resolves.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().dangling().is_none()
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, std::io::Error> {
        if self.state.lock().silent {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let (status, text) = match self.route(&head, &body) {
            Ok(value) => (StatusCode::OK, value),
            Err((status, text)) => (status, text),
        };
        if head.method != Method::GET
            && let Some(left) = &mut self.state.lock().writes_until_loss
        {
            if *left == 0 {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
            *left -= 1;
        }
        Ok(Response::builder().status(status).body(Full::new(Bytes::from(text))).unwrap())
    }

    fn route(&self, head: &http::request::Parts, body: &[u8]) -> Result<String, (StatusCode, String)> {
        let bad = |text: &str| Err((StatusCode::BAD_REQUEST, text.to_owned()));
        if head.headers.get("x-api-key").is_none_or(|key| key != KEY) {
            return Err((StatusCode::FORBIDDEN, "Invalid API key".to_owned()));
        }
        let not_found = (StatusCode::NOT_FOUND, "Not Found".to_owned());
        let path = head.uri.path().strip_prefix("/apisix/admin/").ok_or(not_found.clone())?;
        let mut state = self.state.lock();
        if head.method == Method::GET {
            let kind = ResourceKind::ALL.into_iter().find(|kind| kind.as_str() == path).ok_or(not_found)?;
            return Ok(state.list(kind));
        }
        let key = parse(path).ok_or(not_found)?;
        if head.method == Method::PUT {
            if head.headers.get("content-type").is_none_or(|value| value != "application/json") {
                return bad("Content-Type must be application/json");
            }
            if body.len() > 1_048_576 {
                return bad("Request body too large");
            }
        }
        if state.conflicts > 0 {
            state.conflicts -= 1;
            return Err((
                StatusCode::CONFLICT,
                "Conflict: configuration graph changed concurrently".to_owned(),
            ));
        }
        if let Some(left) = &mut state.writes_until_failure {
            if *left == 0 {
                let text = "Backend configuration store unavailable";
                return Err((StatusCode::INTERNAL_SERVER_ERROR, text.to_owned()));
            }
            *left -= 1;
        }
        if head.method == Method::PUT {
            let value: Value = match serde_json::from_slice(body) {
                Ok(value) => value,
                Err(error) => return bad(&format!("Validation error: Invalid JSON: {error}")),
            };
            assert!(value.is_object(), "this crashes the request in PingSIX");
            let revision = state.put(&key, value).map_err(|text| (StatusCode::BAD_REQUEST, text))?;
            Ok(json!({ "revision": revision }).to_string())
        } else if head.method == Method::DELETE {
            state.delete(&key)
        } else {
            Err((StatusCode::METHOD_NOT_ALLOWED, "Method not allowed".to_owned()))
        }
    }
}

impl State {
    fn list(&self, kind: ResourceKind) -> String {
        let list: Vec<Value> = self
            .resources
            .iter()
            .filter(|((of, _), _)| *of == kind)
            .map(|((_, id), stored)| {
                json!({
                    "key": format!("/apisix/{kind}/{id}"), "value": masked(kind, &stored.value),
                    "createdIndex": stored.created, "modifiedIndex": stored.modified,
                })
            })
            .collect();
        json!({ "total": list.len(), "list": list }).to_string()
    }

    fn put(&mut self, key: &(ResourceKind, String), mut value: Value) -> Result<i64, String> {
        value["id"] = key.1.clone().into();
        if value.get("refuse").is_some() {
            return Err(format!(
                "Validation error: invalid resource '{}/{}': invalid type: string {:?}, expected u16",
                key.0,
                key.1,
                value["key"].as_str().unwrap_or_default()
            ));
        }
        let before = self.resources.get(key).cloned();
        let revision = self.revision + 1;
        let created = before.as_ref().map_or(revision, |before| before.created);
        self.resources.insert(key.clone(), Stored { value, created, modified: revision });
        if let Some(dangling) = self.dangling() {
            match before {
                Some(before) => self.resources.insert(key.clone(), before),
                None => self.resources.remove(key),
            };
            return Err(format!("Validation error: invalid candidate graph: {dangling} not found"));
        }
        self.revision = revision;
        self.record_write(format!("PUT {}/{}", key.0, key.1));
        Ok(revision)
    }

    fn delete(&mut self, key: &(ResourceKind, String)) -> Result<String, (StatusCode, String)> {
        let Some(stored) = self.resources.remove(key) else {
            return Err((
                StatusCode::NOT_FOUND,
                format!("Not found: resource '{}/{}' not found", key.0, key.1),
            ));
        };
        if let Some(dangling) = self.dangling() {
            self.resources.insert(key.clone(), stored);
            let text = format!("Conflict: candidate graph has conflicting references: {dangling} not found");
            return Err((StatusCode::CONFLICT, text));
        }
        self.revision += 1;
        self.record_write(format!("DELETE {}/{}", key.0, key.1));
        Ok(String::new())
    }

    fn record_write(&mut self, what: String) {
        self.writes.push(what);
        let ours = self.all(|value| value.pointer("/labels").is_some());
        self.history.push(ours);
    }

    fn all(&self, is_included: impl Fn(&Value) -> bool) -> BTreeMap<String, Value> {
        let meant = self.resources.iter().filter(|(_, stored)| is_included(&stored.value));
        meant.map(|((kind, id), stored)| (format!("{kind}/{id}"), stored.value.clone())).collect()
    }

    /// A dangling reference.
    fn dangling(&self) -> Option<String> {
        let fields = [("upstream_id", ResourceKind::Upstream), ("service_id", ResourceKind::Service)];
        self.resources.values().find_map(|stored| {
            fields.into_iter().find_map(|(field, kind)| {
                let id = stored.value.get(field)?.as_str()?;
                (!self.resources.contains_key(&(kind, id.to_owned()))).then(|| format!("{kind}/{id}"))
            })
        })
    }
}

fn parse(key: &str) -> Option<(ResourceKind, String)> {
    let (kind, id) = key.split_once('/')?;
    Some((ResourceKind::ALL.into_iter().find(|known| known.as_str() == kind)?, id.to_owned()))
}
