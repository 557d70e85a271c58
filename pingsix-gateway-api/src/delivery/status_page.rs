//! The status page of PingSIX, `/status/config`, with the published revision of an instance (`src/status/` of
//! PingSIX).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::{Deserialize, Deserializer};

use super::lookup::{Addresses, Lookups};

/// The size limit of a status page, in bytes.
const MAX_PAGE_BYTES: usize = 64 * 1024;

/// The timeout of a request to an instance.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// The version of PingSIX that this crate is made for.
const SUPPORTED: &str = "PingSIX 0.1.0 of commit 0b92327";

/// The fields of its status page (`RuntimeStatusView` in `src/core/status.rs`), each on every page.
const FIELDS: [&str; 12] = [
    "config_source",
    "connected",
    "degraded",
    "degraded_reason",
    "error_kind",
    "initialized",
    "last_error",
    "last_success_age_secs",
    "observed_revision",
    "published_revision",
    "ready",
    "revision",
];

/// A field that only pages of sidecars have.
const OF_SIDECARS: &str = "faults";

/// The address of a status page, `http://HOST:PORT/status/config`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusUrl(String);

impl FromStr for StatusUrl {
    /// The reason, without the text.
    type Err = &'static str;

    /// Parses a URL; the default path is that of PingSIX.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let uri: Uri = text.parse().map_err(|_| "it is not a URL")?;
        if uri.scheme_str() != Some("http") {
            // PingSIX's status server speaks plaintext alone.
            return Err("its scheme is not http");
        }
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or("it names no host")?;
        let path = match uri.path() {
            "" | "/" => "/status/config",
            path => path,
        };
        Ok(Self(format!("http://{authority}{path}")))
    }
}

impl fmt::Display for StatusUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The used part of a status page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct StatusPage {
    /// The revision that is in force; 0 before the first.
    #[serde(default, deserialize_with = "or_zero")]
    pub published_revision: i64,
    /// The revision that was read last, accepted or not; 0 before the first.
    #[serde(default, deserialize_with = "or_zero")]
    pub observed_revision: i64,
    /// The kind of the last error that still holds: `etcd_unavailable` or `candidate_invalid`.
    #[serde(default)]
    pub error_kind: Option<String>,
    /// The message of the error.
    #[serde(default)]
    pub last_error: Option<String>,
    /// The parts of the revision that the instance cannot serve. Pages of PingSIX have none: it refuses a revision as a
    /// whole.
    #[serde(default)]
    pub(crate) faults: Vec<ServeError>,
    /// Whether the instance reads from another replica, with other revisions. Not on the page; the replicas report
    /// it.
    #[serde(skip)]
    pub is_elsewhere: bool,
    /// Whether that other replica reports that this instance has published the current documents.
    #[serde(skip)]
    pub is_confirmed: bool,
    /// The difference to the page of the supported PingSIX.
    #[serde(skip)]
    pub difference: Option<PageDifference>,
}

/// The fields of a status page are not those of the PingSIX that this crate is made for.
///
/// No page of PingSIX has a version, so the fields decide. Versions with the same fields look alike: those of commits
/// ab68844 (2026-07-16) to 0b92327 (2026-08-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageDifference {
    /// The page lacks this field. An older PingSIX has no `error_kind`, so its refusals go unnoticed.
    Lacks(&'static str),
    /// The page has fields that the supported version lacks. Their names stay untold, because the page may be that of any
    /// server.
    HasMore,
}

impl fmt::Display for PageDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacks(field) => write!(f, "is not {SUPPORTED}: its status page lacks the field {field}"),
            Self::HasMore => {
                write!(f, "is not {SUPPORTED}: its status page has fields that this version lacks")
            }
        }
    }
}

impl PageDifference {
    /// The difference of a page with these fields; pages of sidecars have none.
    fn of(page: &serde_json::Map<String, serde_json::Value>) -> Option<Self> {
        if page.contains_key(OF_SIDECARS) {
            return None;
        }
        let missing = FIELDS.into_iter().find(|field| !page.contains_key(*field));
        missing.map(Self::Lacks).or_else(|| (page.len() > FIELDS.len()).then_some(Self::HasMore))
    }
}

/// A part of a revision that a sidecar cannot serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub(crate) struct ServeError {
    /// The key of the document at fault.
    #[serde(default)]
    pub(crate) document: Option<String>,
    /// The port that the instance cannot listen on. It has not published the revision then.
    #[serde(default)]
    pub(crate) port: Option<u16>,
    /// The reason.
    pub(crate) message: String,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.document, self.port) {
            (Some(document), _) => write!(f, "{document}: {}", self.message),
            (None, Some(port)) => write!(f, "port {port}: {}", self.message),
            (None, None) => f.write_str(&self.message),
        }
    }
}

/// PingSIX writes null for absent values.
fn or_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok(Option::<i64>::deserialize(deserializer)?.unwrap_or_default())
}

impl StatusPage {
    /// The error for which the instance refuses the last revision; `None` if it does not.
    pub fn refusal(&self) -> Option<&str> {
        let refused = self.error_kind.as_deref() == Some("candidate_invalid");
        refused.then(|| self.last_error.as_deref().unwrap_or("it does not say why"))
    }

    /// Whether the instance refuses a revision because it lacks the key for a secret.
    pub(crate) fn lacks_key(&self) -> bool {
        self.refusal().is_some_and(|refusal| LACKS_KEY.iter().any(|message| refusal.contains(message)))
    }
}

/// The messages for a missing keyring, and for a keyring without the right key (`src/utils/encryption.rs` of PingSIX).
const LACKS_KEY: [&str; 2] =
    ["Encrypted value found but data_encryption is disabled", "Failed to decrypt value with any configured"];

/// A status page could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatusPageError {
    /// The instance did not answer in time.
    #[error("no answer within {} s", REQUEST_TIMEOUT.as_secs())]
    Timeout,
    /// The connection failed.
    #[error("cannot connect")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer was 404. PingSIX has this page where its status server listens on loopback, or has a key and
    /// `allow_remote_diagnostics`. Versions before 2026-07-15 have none.
    #[error("the answer is 404 Not Found: its diagnostics are off, or it is older than {}", SUPPORTED)]
    Missing,
    /// The answer was neither 200 nor 404. PingSIX answers 403 to clients that it does not allow, or that present another
    /// key.
    #[error("the answer is {0}")]
    Status(StatusCode),
    /// The answer is no status page.
    #[error("the answer is no status page")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The status page of an instance is not read. Messages and statuses contain the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The cause would tell the author of a Gateway which servers the controller can reach.
    #[error("its status page cannot be read")]
    Withheld,
    /// The cause, for a page that an administrator has named.
    #[error("{0}")]
    Shown(String),
}

/// The last status page of each instance of a data plane.
pub type InstancePages = BTreeMap<StatusUrl, Result<StatusPage, PageError>>;

/// Reads status pages.
#[derive(Clone)]
pub struct StatusClient {
    client: Client<HttpConnector<Lookups>, Empty<bytes::Bytes>>,
    api_key: Option<http::HeaderValue>,
}

impl fmt::Debug for StatusClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusClient").field("with_api_key", &self.api_key.is_some()).finish_non_exhaustive()
    }
}

impl StatusClient {
    /// A client with a key (`X-API-KEY`), which instances require whose status server listens beyond loopback.
    pub fn new(api_key: Option<http::HeaderValue>) -> Self {
        Self::of(Addresses::All).with_key(api_key)
    }

    /// A client for URLs of authors who are not trusted with this machine. It sends no key, and connects to no
    /// address of this machine or its link.
    pub(crate) fn for_strangers() -> Self {
        Self::of(Addresses::OfOthers)
    }

    fn of(addresses: Addresses) -> Self {
        let mut connector = HttpConnector::new_with_resolver(Lookups::new(addresses));
        connector.set_connect_timeout(Some(REQUEST_TIMEOUT));
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        Self { client, api_key: None }
    }

    /// The same client with another key, or without one.
    #[must_use]
    pub fn with_key(&self, api_key: Option<http::HeaderValue>) -> Self {
        let api_key = api_key.map(|mut key| {
            key.set_sensitive(true);
            key
        });
        Self { client: self.client.clone(), api_key }
    }

    /// Reads a status page.
    ///
    /// # Errors
    ///
    /// [`StatusPageError`]; all of them may pass.
    pub async fn read(&self, url: &StatusUrl) -> Result<StatusPage, StatusPageError> {
        tokio::time::timeout(REQUEST_TIMEOUT, self.request(url))
            .await
            .map_err(|_| StatusPageError::Timeout)?
    }

    async fn request(&self, url: &StatusUrl) -> Result<StatusPage, StatusPageError> {
        let mut request = Request::get(&url.0);
        if let Some(key) = &self.api_key {
            request = request.header("x-api-key", key);
        }
        let request = request.body(Empty::new()).map_err(|error| StatusPageError::Connect(error.into()))?;
        let response =
            self.client.request(request).await.map_err(|error| StatusPageError::Connect(error.into()))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Err(StatusPageError::Missing),
            status => return Err(StatusPageError::Status(status)),
        }
        let body = Limited::new(response.into_body(), MAX_PAGE_BYTES)
            .collect()
            .await
            .map_err(StatusPageError::Body)?;
        parse(&body.to_bytes()).map_err(|error| StatusPageError::Body(error.into()))
    }
}

fn parse(body: &[u8]) -> serde_json::Result<StatusPage> {
    let page = serde_json::from_slice(body)?;
    Ok(StatusPage { difference: PageDifference::of(&serde_json::from_slice(body)?), ..page })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_url_is_checked_and_completed() {
        let read = |text: &str| text.parse::<StatusUrl>().map(|url| url.to_string());
        assert_eq!(read("http://127.0.0.1:7085").unwrap(), "http://127.0.0.1:7085/status/config");
        assert_eq!(read("http://[::1]:7085/inner/status").unwrap(), "http://[::1]:7085/inner/status");
        assert_eq!(read("https://127.0.0.1:7085"), Err("its scheme is not http"));
        assert_eq!(read("127.0.0.1:7085"), Err("its scheme is not http"));
        assert_eq!(read("no url"), Err("it is not a URL"));
    }

    /// Answers one request, and passes it to the test.
    async fn answer(status: &str, body: &str) -> (StatusUrl, tokio::task::JoinHandle<String>) {
        let response = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = vec![0; 4096];
            let read = stream.read(&mut buffer).await.unwrap();
            stream.write_all(response.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&buffer[..read]).to_lowercase()
        });
        (url, asked)
    }

    #[tokio::test]
    async fn a_page_is_read_with_the_key_that_it_takes() {
        let body = r#"{"published_revision": 12, "error_kind": "candidate_invalid", "ready": true}"#;
        let (url, asked) = answer("200 OK", body).await;
        let client = StatusClient::new(Some("sesame".parse().unwrap()));
        let page = client.read(&url).await.unwrap();
        assert_eq!((page.published_revision, page.refusal()), (12, Some("it does not say why")));
        let asked = asked.await.unwrap();
        assert!(asked.starts_with("get /status/config ") && asked.contains("x-api-key: sesame"), "{asked}");
        assert!(!format!("{client:?}").contains("sesame"));
    }

    /// A page with all fields of the supported version except this one, and with another one.
    fn page_without(left_out: &str, added: &str) -> StatusPage {
        let fields = FIELDS.into_iter().filter(|field| *field != left_out).chain([added]);
        let page: BTreeMap<&str, Option<i64>> = fields.map(|field| (field, None)).collect();
        parse(&serde_json::to_vec(&page).unwrap()).unwrap()
    }

    #[test]
    fn the_fields_of_a_page_tell_another_version() {
        let difference = |left_out, added| page_without(left_out, added).difference;
        assert_eq!(difference("", "ready"), None);
        assert_eq!(difference("error_kind", "ready"), Some(PageDifference::Lacks("error_kind")));
        assert_eq!(difference("error_kind", "version"), Some(PageDifference::Lacks("error_kind")));
        assert_eq!(difference("", "version"), Some(PageDifference::HasMore));
        // As a sidecar writes it.
        assert_eq!(
            parse(br#"{"published_revision": 7, "faults": [], "more_faults": 0}"#).unwrap().difference,
            None
        );
    }

    #[tokio::test]
    async fn a_response_that_is_no_status_page_is_a_clear_error() {
        let client = StatusClient::new(None);
        let (url, _) = answer("404 Not Found", "").await;
        let told = "the answer is 404 Not Found: its diagnostics are off, or it is older than PingSIX 0.1.0 of commit 0b92327";
        assert_eq!(client.read(&url).await.unwrap_err().to_string(), told);
        let (url, _) = answer("403 Forbidden", "").await;
        assert_eq!(client.read(&url).await.unwrap_err().to_string(), "the answer is 403 Forbidden");
        let (url, _) = answer("200 OK", "no").await;
        assert_eq!(client.read(&url).await.unwrap_err().to_string(), "the answer is no status page");
        let closed = pingsix_test_programs::free_address();
        let url = format!("http://{closed}").parse().unwrap();
        assert_eq!(client.read(&url).await.unwrap_err().to_string(), "cannot connect");
    }
}
