//! A request in PingSIX, and the variables that plugins read.

use std::net::SocketAddr;

/// A request in PingSIX.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The method, as sent.
    pub method: String,
    /// The `Host` header of HTTP/1, or the `:authority` of HTTP/2, with its port if it has one.
    pub host: Option<String>,
    /// The path, raw: still percent-encoded, without query.
    pub path: String,
    /// The raw query behind the `?`; `None` without `?`.
    pub query: Option<String>,
    /// The other headers in order, names in any case. The `Host` header of HTTP/1 need not be repeated.
    pub headers: Vec<(String, String)>,
    /// Whether the connection speaks HTTP/2, where there is no `Host` header.
    pub http2: bool,
    /// Whether the connection uses TLS.
    pub tls: bool,
    /// The server name of the TLS handshake, if it is another than the host. PingSIX does not look at it; a proxy in front
    /// of PingSIX does.
    pub server_name: Option<String>,
    /// The client's address.
    pub peer: Option<SocketAddr>,
    /// The address the connection was accepted on.
    pub local: Option<SocketAddr>,
}

impl Request {
    /// A GET over plaintext HTTP/1.1 with a host, a path and an optional query.
    pub fn get(host: &str, target: &str) -> Self {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        Self {
            method: "GET".to_owned(),
            host: Some(host.to_owned()),
            path: path.to_owned(),
            query,
            ..Self::default()
        }
    }

    /// This request with another method.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        self
    }

    /// This request with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// This request over HTTP/2.
    #[must_use]
    pub fn over_http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    /// This request over TLS.
    #[must_use]
    pub fn over_tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// The host that routes are looked up by: without port, brackets of an IPv6 address kept
    /// (`src/utils/request.rs`).
    pub fn routing_host(&self) -> Option<&str> {
        let host = match (&self.host, self.http2) {
            (Some(authority), true) => match host_of_authority(authority) {
                "" => self.first_header("host"),
                host => return Some(host),
            },
            (Some(host), false) => readable(host).then_some(host.as_str()),
            (None, _) => self.first_header("host"),
        };
        host.map(without_port)
    }

    /// The first value of a header; `None` when there is none or it is not printable ASCII. Unlike most names,
    /// `Host` is known from [`Self::host`], on HTTP/1 only.
    pub fn first_header(&self, name: &str) -> Option<&str> {
        if !self.http2 && name.eq_ignore_ascii_case("host") && self.host.is_some() {
            return self.host.as_deref().filter(|value| readable(value));
        }
        let (_, value) = self.headers.iter().find(|(held, _)| held.eq_ignore_ascii_case(name))?;
        readable(value).then_some(value.as_str())
    }

    /// The value of a variable of `vars` lists, `""` when it is missing or unknown (`src/utils/request.rs`,
    /// `src/plugins/traffic_split.rs`): `http_<name>` is the first value of that very header, dashes and all;
    /// `arg_<name>` is raw query text.
    pub fn variable(&self, name: &str) -> String {
        if let Some(header) = name.strip_prefix("http_") {
            return self.first_header(header).unwrap_or_default().to_owned();
        }
        if let Some(argument) = name.strip_prefix("arg_") {
            return self.argument(argument).unwrap_or_default().to_owned();
        }
        match name {
            "uri" => self.path.clone(),
            "request_uri" => self.path_and_query(),
            "query_string" => self.query.clone().unwrap_or_default(),
            "remote_addr" => self.peer.map(|peer| peer.ip().to_string()).unwrap_or_default(),
            "remote_port" => self.peer.map(|peer| peer.port().to_string()).unwrap_or_default(),
            "server_addr" => self.local.map(|local| local.to_string()).unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// Path and query in the form of the request line.
    pub(super) fn path_and_query(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    fn argument(&self, name: &str) -> Option<&str> {
        self.query.as_deref()?.split('&').find_map(|pair| match pair.split_once('=') {
            Some((key, value)) => (key == name).then_some(value.trim()),
            None => (pair == name).then_some(""),
        })
    }
}

/// Whether all conditions of a `vars` list hold (`src/plugins/traffic_split.rs`,
/// `src/plugins/response_rewrite.rs`). A condition of fewer than three parts holds, one with an operator other
/// than `==` and `!=` does not.
pub fn conditions_hold(conditions: &[Vec<String>], request: &Request) -> bool {
    conditions.iter().all(|condition| match condition.as_slice() {
        [variable, operator, value, ..] => match operator.as_str() {
            "==" => request.variable(variable) == *value,
            "!=" => request.variable(variable) != *value,
            _ => false,
        },
        _ => true,
    })
}

/// Header values are read as text only when they are printable ASCII or tabs.
fn readable(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || (b' '..0x7f).contains(&byte))
}

fn host_of_authority(authority: &str) -> &str {
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host_and_port.starts_with('[') {
        return without_port(host_and_port);
    }
    host_and_port.split(':').next().unwrap_or_default()
}

fn without_port(host: &str) -> &str {
    if host.starts_with('[') {
        return host.find(']').and_then(|end| host.get(..=end)).unwrap_or(host);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}
