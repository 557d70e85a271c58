//! What an answer of the API server means to who asked it to write.

use std::time::Duration;

use thiserror::Error;
use tokio::time::timeout;

/// A write, or a read before one, that did not succeed.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub(crate) struct Fault {
    pub(crate) category: Category,
    pub(crate) message: String,
    /// How long the server asks to be left alone.
    pub(crate) retry_after: Option<Duration>,
}

/// As many categories as lead to different conclusions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Category {
    /// 409: somebody else has written.
    Conflict,
    /// 404.
    NotFound,
    /// 401, 403: we may not.
    Forbidden,
    /// 429.
    Throttled,
    /// Another 4xx: the server does not take it, and will not next time.
    Refused,
    /// 5xx.
    Server,
    /// No answer in time.
    Timeout,
    /// No connection, or an answer that makes no sense.
    Transport,
}

impl Category {
    /// A name for logs and metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::NotFound => "not_found",
            Self::Forbidden => "forbidden",
            Self::Throttled => "throttled",
            Self::Refused => "refused",
            Self::Server => "server",
            Self::Timeout => "timeout",
            Self::Transport => "transport",
        }
    }

    const fn of_status(code: u16) -> Self {
        match code {
            401 | 403 => Self::Forbidden,
            404 => Self::NotFound,
            409 => Self::Conflict,
            429 => Self::Throttled,
            400..500 => Self::Refused,
            500.. => Self::Server,
            _ => Self::Transport,
        }
    }
}

impl Fault {
    /// Somebody else is faster each time.
    pub(crate) fn conflict() -> Self {
        let message = "somebody else writes all the time".to_owned();
        Self { category: Category::Conflict, message, retry_after: None }
    }
}

impl From<kube::Error> for Fault {
    fn from(error: kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            // All the others are about connections, credentials and decoding.
            return Self { category: Category::Transport, message: error.to_string(), retry_after: None };
        };
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        Self {
            category: Category::of_status(status.code),
            message: if status.message.is_empty() {
                format!("the API server answers {}", status.code)
            } else {
                status.message
            },
            retry_after: (seconds > 0).then(|| Duration::from_secs(seconds.into())),
        }
    }
}

/// Waits for an answer, no longer than the limit. A client that retries by itself would wait for minutes.
pub(crate) async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Fault> {
    match timeout(limit, request).await {
        Ok(answer) => answer.map_err(Fault::from),
        Err(_) => Err(Fault {
            category: Category::Timeout,
            message: "the API server does not answer in time".to_owned(),
            retry_after: None,
        }),
    }
}
