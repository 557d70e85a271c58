//! The errors of requests to the API server: one classification for all clients.

use std::time::Duration;

use kube_runtime::watcher;
use thiserror::Error;
use tokio::time::timeout;

use crate::named::named_values;

/// The longest part of a message that is kept, in characters: a proxy in place of an API server may send a page.
const MAX_MESSAGE_CHARS: usize = 300;

named_values! {
    /// The category of an error. Each category has its own consequence.
    pub(crate) enum ApiErrorCategory {
        /// 401: the API server does not know who asks, as when a token has run out.
        Unauthorized = "unauthorized",
        /// 403: we may not.
        Forbidden = "forbidden",
        /// 404: there is no such object, or no such path.
        NotFound = "not_found",
        /// 409: another writer was faster.
        Conflict = "conflict",
        /// 410: the version asked for is no longer known, so everything has to be listed again.
        Expired = "expired",
        /// 429: too many requests.
        Throttled = "throttled",
        /// Another 4xx: the API server does not take the request, and will not next time.
        Refused = "refused",
        /// 5xx.
        Server = "server",
        /// No answer in time.
        Timeout = "timeout",
        /// No connection, or one that broke.
        Transport = "transport",
        /// An answer that makes no sense.
        Malformed = "malformed",
    }
}

impl ApiErrorCategory {
    const fn of_status(code: u16) -> Self {
        match code {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            409 => Self::Conflict,
            410 => Self::Expired,
            429 => Self::Throttled,
            400..500 => Self::Refused,
            500.. => Self::Server,
            // A watch reports an undecodable object as a status without a code.
            _ => Self::Malformed,
        }
    }
}

/// One request, or one watch, that did not succeed. Says nothing about the content of objects.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    pub(crate) category: ApiErrorCategory,
    pub(crate) message: String,
    /// The delay that the API server asks for.
    pub(crate) retry_after: Option<Duration>,
}

impl ApiError {
    pub(crate) fn new(category: ApiErrorCategory, message: &str) -> Self {
        Self { category, message: shortened(message), retry_after: None }
    }

    /// No answer in time.
    pub(crate) fn timeout() -> Self {
        Self::new(ApiErrorCategory::Timeout, "the API server does not answer in time")
    }

    /// Somebody else is faster each time.
    pub(crate) fn conflict() -> Self {
        Self::new(ApiErrorCategory::Conflict, "another client writes the object at the same time")
    }
}

impl From<&kube::Error> for ApiError {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "which variants there are depends on the features of kube"
    )]
    fn from(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from(&**status),
            // The decoder's own message quotes its input, which may be a Secret.
            kube::Error::SerdeError(error) => Self::new(
                ApiErrorCategory::Malformed,
                &format!("the answer cannot be decoded (line {}, column {})", error.line(), error.column()),
            ),
            kube::Error::FromUtf8(_) => Self::new(ApiErrorCategory::Malformed, "the answer is not UTF-8"),
            kube::Error::Service(error) if error.is::<tokio::time::error::Elapsed>() => Self::timeout(),
            // The rest is about connections and credentials.
            error => Self::new(ApiErrorCategory::Transport, &chain(error)),
        }
    }
}

impl From<&kube::core::Status> for ApiError {
    fn from(status: &kube::core::Status) -> Self {
        let category = ApiErrorCategory::of_status(status.code);
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let retry_after = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
        let error = if category == ApiErrorCategory::Malformed {
            Self::new(category, "the answer cannot be decoded")
        } else if status.message.is_empty() {
            Self::new(category, &format!("the API server answers {}", status.code))
        } else {
            Self::new(category, &status.message)
        };
        Self { retry_after, ..error }
    }
}

impl From<&watcher::Error> for ApiError {
    fn from(error: &watcher::Error) -> Self {
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => Self::from(error),
            watcher::Error::WatchError(status) => Self::from(&**status),
            watcher::Error::NoResourceVersion => {
                Self::new(ApiErrorCategory::Malformed, "an answer has no resourceVersion")
            }
        }
    }
}

/// Waits for an answer, no longer than the limit. A client that retries by itself would wait for minutes.
pub(crate) async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ApiError> {
    match timeout(limit, request).await {
        Ok(answer) => answer.map_err(|error| ApiError::from(&error)),
        Err(_) => Err(ApiError::timeout()),
    }
}

/// An error with its causes: the outermost of a connection that fails says little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}

fn shortened(message: &str) -> String {
    let mut text: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = text.char_indices().nth(MAX_MESSAGE_CHARS) {
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_undecodable_answer_is_not_quoted() {
        let error =
            serde_json::from_str::<std::collections::BTreeMap<String, u8>>(r#"{"tls.key": "CANARY"}"#);
        let error = ApiError::from(&kube::Error::SerdeError(error.unwrap_err()));
        assert_eq!(error.category, ApiErrorCategory::Malformed);
        assert!(!format!("{error} {error:?}").contains("CANARY"), "{error:?}");
    }

    #[test]
    fn a_page_in_the_place_of_a_message_is_cut() {
        let error = ApiError::from(&Status::failure(&"ä\n".repeat(1000), "").with_code(502));
        assert_eq!(error.category, ApiErrorCategory::Server);
        assert!(error.message.chars().count() <= MAX_MESSAGE_CHARS + 4 && !error.message.contains('\n'));
    }

    #[test]
    fn the_wait_that_the_api_server_asks_for_is_known() {
        let status = json!({"code": 429, "details": {"retryAfterSeconds": 7}});
        let error = ApiError::from(&serde_json::from_value::<Status>(status).unwrap());
        assert_eq!(
            (error.category, error.retry_after),
            (ApiErrorCategory::Throttled, Some(Duration::from_secs(7)))
        );
        assert_eq!(error.message, "the API server answers 429");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_not_waited_for_for_ever() {
        let error = within::<()>(Duration::from_secs(1), std::future::pending()).await.unwrap_err();
        assert_eq!(error.category, ApiErrorCategory::Timeout);
    }
}
