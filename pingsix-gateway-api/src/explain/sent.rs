//! The request that a backend gets, and its differences from the request of the client.

use std::collections::BTreeMap;

use pingsix_translate::pingsix::Request;
use pingsix_translate::pingsix::router::SentRequest;
use serde::Serialize;

/// Parts of names of headers whose values may be secrets.
const SECRET_NAMES: [&str; 7] = ["auth", "cookie", "credential", "key", "password", "secret", "token"];

/// The request that a backend gets. Headers that PingSIX adds by itself are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The host; `None` if PingSIX sends none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The headers that differ from those of the client.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HeaderChange>,
}

/// A header that differs from that of the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaderChange {
    /// The name in lower case.
    pub name: String,
    /// The values; empty for a removed header. A value that may be a secret is not shown.
    pub values: Vec<String>,
}

impl Sent {
    pub(super) fn of(request: &Request, sent: SentRequest) -> Self {
        let SentRequest { method, target, host, headers } = sent;
        let (before, mut now) = (by_name(&request.headers), by_name(&headers));
        for name in before.keys() {
            now.entry(name.clone()).or_default();
        }
        let changed = now
            .into_iter()
            .filter(|(name, values)| *values != before.get(name).map(Vec::as_slice).unwrap_or_default());
        let headers = changed.map(|(name, values)| {
            let is_secret = SECRET_NAMES.iter().any(|part| name.contains(part));
            let shown = |value: &str| if is_secret { "<redacted>".to_owned() } else { value.to_owned() };
            HeaderChange { values: values.into_iter().map(shown).collect(), name }
        });
        Self { method, target, host, headers: headers.collect() }
    }
}

/// The values of headers by name in lower case.
fn by_name(headers: &[(String, String)]) -> BTreeMap<String, Vec<&str>> {
    let mut by_name: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, value) in headers {
        by_name.entry(name.to_ascii_lowercase()).or_default().push(value);
    }
    by_name
}
