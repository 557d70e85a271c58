//! The request that a backend gets.

use super::Router;
use super::outcome::Stage;
use super::redirect::rewrite_path;
use super::request::Request;
use crate::pingsix::plugin::{BasicAuth, HeaderChanges, JwtAuth, KeyAuth, ProxyRewrite};
use crate::pingsix::{DocumentKey, PassHost, Scheme, Upstream};

/// The request that a backend gets, without the headers that PingSIX or the plugin `request-id` adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentRequest {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The host; `None` if PingSIX sends none, or the one of the node.
    pub host: Option<String>,
    /// The other headers.
    pub headers: Vec<(String, String)>,
}

impl Router<'_> {
    /// The request that a backend of a route gets for a request; `None` for an unknown route.
    ///
    /// PingSIX: `src/plugins/proxy_rewrite.rs`, `src/proxy/upstream/*.rs`. A credential in the query stays in the result.
    pub fn sent(&self, route: &DocumentKey, upstream: &Upstream, request: &Request) -> Option<SentRequest> {
        let row = self.row(route)?;
        let stages = [Stage::Global(self), Stage::Route(row)];
        let mut sent = SentRequest {
            method: request.method.clone(),
            target: request.path_and_query(),
            host: request.host.clone(),
            headers: request.headers.clone(),
        };
        for stage in &stages {
            for hidden in hidden_headers(stage) {
                sent.remove(&hidden);
            }
        }
        for rewrite in stages.iter().flat_map(Stage::configs::<ProxyRewrite>) {
            sent.apply(rewrite, upstream, request);
        }
        match upstream.pass_host {
            PassHost::Pass => {}
            PassHost::Rewrite => sent.host.clone_from(&upstream.upstream_host),
            PassHost::Node => sent.host = None,
        }
        Some(sent)
    }
}

impl SentRequest {
    fn apply(&mut self, rewrite: ProxyRewrite, upstream: &Upstream, request: &Request) {
        let ProxyRewrite { uri, method, regex_uri, host, headers } = rewrite;
        let path = uri.or_else(|| (!regex_uri.is_empty()).then(|| rewrite_path(&regex_uri, &request.path)));
        if let Some(path) = path {
            let query = request.query.as_deref().filter(|query| !query.is_empty());
            let target = query.map_or_else(|| path.clone(), |query| format!("{path}?{query}"));
            if target.parse::<http::Uri>().is_ok() {
                self.target = target;
            }
            if request.http2 && upstream.scheme == Scheme::Grpc {
                // The authority goes with the former path.
                self.host = None;
            }
        }
        if let Some(method) = method {
            self.method = method;
        }
        if let Some(host) = host {
            self.host = Some(host);
        }
        let HeaderChanges { add, set, remove } = headers.unwrap_or_default();
        for header in set {
            if header.name.eq_ignore_ascii_case("host") {
                self.host = Some(header.value);
                continue;
            }
            self.remove(&header.name);
            self.headers.push((header.name, header.value));
        }
        for name in remove {
            self.remove(&name);
        }
        self.headers.extend(add.into_iter().map(|header| (header.name, header.value)));
    }

    fn remove(&mut self, name: &str) {
        self.headers.retain(|(held, _)| !held.eq_ignore_ascii_case(name));
    }
}

/// The headers with credentials that plugins keep from backends.
fn hidden_headers(stage: &Stage<'_, '_>) -> Vec<String> {
    let keys =
        stage.configs::<KeyAuth>().into_iter().filter(|key| key.hide_credentials).map(|key| key.header);
    let users = stage.configs::<BasicAuth>().into_iter().filter(|user| user.hide_credentials);
    let users = users.map(|_| "authorization".to_owned());
    let tokens = stage.configs::<JwtAuth>().into_iter().filter(|token| token.hide_credentials);
    keys.chain(users).chain(tokens.map(|token| token.header)).collect()
}
