//! The effect of a gateway on a message, in terms that are independent of Gateway API and PingSIX.

use std::collections::{BTreeMap, BTreeSet};

/// Header values by lower-case name, those of one name in order.
pub(crate) type Headers = BTreeMap<String, Vec<String>>;

/// The name under which [`Headers`] of a response have a status that is not the backend's.
pub(crate) const STATUS: &str = ":status";

/// The request of the backend, and the client's view of [`backend_answer`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// Path and query.
    pub(crate) target: String,
    /// `None` when the backend is told none.
    pub(crate) host: Option<String>,
    pub(crate) request: Headers,
    /// Without the headers of CORS.
    pub(crate) response: Headers,
    /// The permissions of a script of the request's origin; `None` if the script may not read the answer.
    pub(crate) script: Option<Script>,
}

/// The connection to a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Way {
    /// Seconds to connect, to send and to wait; `None` is what PingSIX does by itself.
    pub(crate) timeout: Option<(u64, u64, u64)>,
    /// The number of further backends after failed connections.
    pub(crate) retries: u64,
}

/// The permissions of a script for an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    /// Also when its request carried credentials.
    pub(crate) credentials: bool,
    /// Response headers it may read beyond those that are always readable; `None` is all.
    pub(crate) exposed: Option<BTreeSet<String>>,
}

/// The permission of a preflight: the request that the preflight describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Permission {
    /// Also with credentials.
    pub(crate) credentials: bool,
    /// The lifetime in seconds.
    pub(crate) max_age: i64,
}

impl Effect {
    /// Whether something becomes of the answer, which nothing but filters does.
    pub(crate) fn is_one(&self) -> bool {
        self.response != backend_answer() || self.script.is_some()
    }
}

/// The answer of every backend in these tests.
pub(crate) fn backend_answer() -> Headers {
    let values = [("content-type", vec!["text/plain"]), ("x-drop", vec!["1", "2"]), ("x-keep", vec!["up"])];
    values
        .into_iter()
        .map(|(name, values)| (name.to_owned(), values.into_iter().map(str::to_owned).collect()))
        .collect()
}

/// Headers by name.
pub(crate) fn collect(headers: &[(String, String)]) -> Headers {
    let mut by_name = Headers::new();
    for (name, value) in headers {
        by_name.entry(name.to_ascii_lowercase()).or_default().push(value.clone());
    }
    by_name
}

/// Takes the headers of CORS out of an answer and reads them as a browser does (Fetch, "CORS check").
pub(crate) fn take_script(headers: &mut Headers, origin: Option<&str>) -> Option<Script> {
    let mut take = |name: &str| {
        headers.remove(&format!("access-control-{name}")).map(|values| values.join(", ")).unwrap_or_default()
    };
    let (allowed, credentials) = (take("allow-origin"), take("allow-credentials"));
    let exposed = take("expose-headers");
    for name in ["allow-methods", "allow-headers", "max-age"] {
        take(name);
    }
    // Which answers differ by origin is a matter of caches.
    headers.remove("vary");
    let credentials = credentials == "true" && Some(&*allowed) == origin;
    (allowed == "*" || Some(&*allowed) == origin).then(|| Script {
        credentials,
        exposed: match exposed.as_str() {
            "*" if !credentials => None,
            names => Some(split(names).map(str::to_ascii_lowercase).collect()),
        },
    })
}

/// Reads the headers of an answer to a preflight as a browser does (Fetch, "CORS-preflight fetch").
pub(crate) fn permission(
    headers: &Headers,
    origin: &str,
    method: &str,
    asked: Option<&str>,
) -> Option<Permission> {
    let get = |name: &str| {
        headers.get(&format!("access-control-{name}")).map(|values| values.join(", ")).unwrap_or_default()
    };
    let (allowed, methods, names) = (get("allow-origin"), get("allow-methods"), get("allow-headers"));
    let credentials = get("allow-credentials") == "true" && allowed == origin;
    let lists = |list: &str, name: &str| {
        (list.trim() == "*" && !credentials) || split(list).any(|held| held.eq_ignore_ascii_case(name))
    };
    let is_permitted = (allowed == "*" || allowed == origin)
        && (["GET", "HEAD", "POST"].contains(&method) || lists(&methods, method))
        && split(asked.unwrap_or_default()).all(|name| lists(&names, name));
    is_permitted.then(|| Permission { credentials, max_age: get("max-age").parse().unwrap_or(5) })
}

/// The elements of a list in a header.
pub(crate) fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|element| !element.is_empty())
}

/// Where a client goes that is told this `Location`: an absolute URL without the port its scheme has anyway.
pub(crate) fn resolve(location: &str, tls: bool, authority: &str) -> String {
    let scheme = if tls { "https" } else { "http" };
    let absolute = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        location.to_owned()
    };
    let Some((scheme, rest)) = absolute.split_once("://") else { return absolute };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let own = if scheme == "https" { ":443" } else { ":80" };
    let authority = authority.to_ascii_lowercase();
    format!("{scheme}://{}{path}", authority.strip_suffix(own).unwrap_or(&authority))
}
