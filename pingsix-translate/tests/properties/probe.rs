//! Requests, as the oracle and the router model both understand them.

use pingsix_translate::pingsix::Request;

/// A request. No header or parameter is repeated or empty, and nothing needs decoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) host: Option<String>,
    pub(crate) path: String,
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) queries: Vec<(String, String)>,
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

    /// The request as it reaches PingSIX.
    pub(crate) fn request(&self) -> Request {
        let pairs: Vec<String> = self.queries.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Request {
            method: self.method.clone(),
            host: self.host.clone(),
            path: self.path.clone(),
            query: (!pairs.is_empty()).then(|| pairs.join("&")),
            headers: self.headers.clone(),
            ..Request::default()
        }
    }
}
