//! Requests, as the oracle and the router model both understand them.

use pingsix_translate::pingsix::Request;

/// A request. No header is repeated, and nothing needs decoding; over HTTP/2 the client says truly how it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) host: Option<String>,
    pub(crate) path: String,
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) queries: Vec<(String, String)>,
    pub(crate) http2: bool,
    pub(crate) tls: bool,
    /// Where the client connected to.
    pub(crate) port: u16,
}

impl Probe {
    /// The host without its port, in lower case.
    pub(crate) fn routing_host(&self) -> Option<String> {
        let host = self.host.as_deref()?;
        Some(host.split(':').next().unwrap_or_default().to_ascii_lowercase())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(held, _)| held.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let (_, value) = self.queries.iter().find(|(held, _)| held == name)?;
        Some(value)
    }

    /// The host in lower case, if it is one that a URL could have.
    pub(crate) fn usable_host(&self) -> Option<String> {
        let host = self.routing_host()?;
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
        (!host.is_empty() && host.chars().all(is_letter)).then_some(host)
    }

    /// The request of a client that connected to a port, and says so in its host.
    pub(crate) fn at(self, tls: bool, port: u16) -> Self {
        let well_known = if tls { 443 } else { 80 };
        let host = self.host.map(|host| {
            let name = host.split(':').next().unwrap_or_default();
            if port == well_known { name.to_owned() } else { format!("{name}:{port}") }
        });
        Self { host, tls, port, ..self }
    }

    /// Whether a browser asks what a script of another origin may do.
    pub(crate) fn is_preflight(&self) -> bool {
        self.method == "OPTIONS"
            && self.header("origin").is_some()
            && self.header("access-control-request-method").is_some()
    }

    /// The query with its question mark, or nothing.
    pub(crate) fn query_string(&self) -> String {
        let pairs: Vec<String> = self.queries.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }

    /// The request as it reaches PingSIX.
    pub(crate) fn request(&self) -> Request {
        Request {
            method: self.method.clone(),
            host: self.host.clone(),
            path: self.path.clone(),
            query: self.query_string().strip_prefix('?').map(str::to_owned),
            headers: self.headers.clone(),
            http2: self.http2 && self.usable_host().is_some(),
            tls: self.tls,
            ..Request::default()
        }
    }
}
