//! What goes wrong between us and the API server.

use kube_runtime::watcher;
use thiserror::Error;

/// How much of a message is repeated: what answers in the place of an API server may send a page.
const LONGEST_MESSAGE: usize = 300;

/// What went wrong, in as few categories as lead to different conclusions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultCategory {
    /// 404: there is no such path.
    NotFound,
    /// 403: we may not.
    Forbidden,
    /// 410: the version asked for is no longer known, so everything has to be listed again.
    Expired,
    /// 429: too many requests.
    Throttled,
    /// Another 4xx: the API server does not take the request.
    Refused,
    /// 5xx.
    Server,
    /// No answer in time.
    Timeout,
    /// No connection, or one that broke.
    Transport,
    /// An answer that makes no sense.
    Malformed,
}

impl FaultCategory {
    /// Every category, in declaration order.
    pub const ALL: &'static [Self] = &[
        Self::NotFound,
        Self::Forbidden,
        Self::Expired,
        Self::Throttled,
        Self::Refused,
        Self::Server,
        Self::Timeout,
        Self::Transport,
        Self::Malformed,
    ];

    /// A name for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Forbidden => "forbidden",
            Self::Expired => "expired",
            Self::Throttled => "throttled",
            Self::Refused => "refused",
            Self::Server => "server",
            Self::Timeout => "timeout",
            Self::Transport => "transport",
            Self::Malformed => "malformed",
        }
    }

    const fn of_status(code: u16) -> Self {
        match code {
            403 => Self::Forbidden,
            404 => Self::NotFound,
            410 => Self::Expired,
            429 => Self::Throttled,
            400..500 => Self::Refused,
            500.. => Self::Server,
            // What cannot be decoded in a watch is handed on as a status without a code.
            _ => Self::Malformed,
        }
    }
}

/// What we were about when it went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Asking what is served.
    Discovery,
    /// Listing.
    List,
    /// Opening a watch.
    Open,
    /// Reading an open watch.
    Read,
}

impl Step {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Discovery => "discovery failed",
            Self::List => "the list failed",
            Self::Open => "the watch could not be opened",
            Self::Read => "the watch broke off",
        }
    }
}

/// One failure. Says nothing about the content of objects.
#[derive(Clone, Debug, Error)]
#[error("{}: {message}", step.as_str())]
pub(super) struct Fault {
    pub(super) step: Step,
    pub(super) category: FaultCategory,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn timeout(step: Step) -> Self {
        let message = "the API server does not answer in time".to_owned();
        Self { step, category: FaultCategory::Timeout, message }
    }

    /// Whether a watch can go on from where it was; if not, everything has to be listed again.
    pub(super) const fn can_go_on(&self) -> bool {
        match (self.step, self.category) {
            (Step::Open, FaultCategory::Throttled | FaultCategory::Server)
            | (Step::Open | Step::Read, FaultCategory::Timeout | FaultCategory::Transport) => true,
            // An error amid the events may have taken the place of one.
            (Step::Discovery | Step::List | Step::Open | Step::Read, _) => false,
        }
    }

    pub(super) fn ended(step: Step) -> Self {
        Self { step, category: FaultCategory::Transport, message: "the stream ended".to_owned() }
    }

    pub(super) fn of_watch(error: &watcher::Error) -> Self {
        match error {
            watcher::Error::InitialListFailed(error) => Self::of(Step::List, error),
            watcher::Error::WatchStartFailed(error) => Self::of(Step::Open, error),
            watcher::Error::WatchFailed(error) => Self::of(Step::Read, error),
            watcher::Error::WatchError(status) => Self::of_status(Step::Read, status),
            watcher::Error::NoResourceVersion => Self {
                step: Step::Read,
                category: FaultCategory::Malformed,
                message: "an answer has no resourceVersion".to_owned(),
            },
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "which variants there are depends on the features of kube"
    )]
    pub(super) fn of(step: Step, error: &kube::Error) -> Self {
        let (category, message) = match error {
            kube::Error::Api(status) => return Self::of_status(step, status),
            // The decoder's own message quotes what it read, which may be a Secret.
            kube::Error::SerdeError(error) => (
                FaultCategory::Malformed,
                format!("the answer cannot be decoded (line {}, column {})", error.line(), error.column()),
            ),
            kube::Error::FromUtf8(_) => (FaultCategory::Malformed, "the answer is not UTF-8".to_owned()),
            kube::Error::Service(error) if error.is::<tokio::time::error::Elapsed>() => {
                return Self::timeout(step);
            }
            // The rest is about connections and credentials.
            error => (FaultCategory::Transport, chain(error)),
        };
        Self { step, category, message: shortened(&message) }
    }

    fn of_status(step: Step, status: &kube::core::Status) -> Self {
        let category = FaultCategory::of_status(status.code);
        let message = if category == FaultCategory::Malformed {
            "the answer cannot be decoded".to_owned()
        } else if status.message.is_empty() {
            format!("the API server answers {}", status.code)
        } else {
            shortened(&status.message)
        };
        Self { step, category, message }
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
    if let Some((end, _)) = text.char_indices().nth(LONGEST_MESSAGE) {
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_decoded_is_not_quoted() {
        let error =
            serde_json::from_str::<std::collections::BTreeMap<String, u8>>(r#"{"tls.key": "CANARY"}"#);
        let fault = Fault::of(Step::List, &kube::Error::SerdeError(error.unwrap_err()));
        assert_eq!(fault.category, FaultCategory::Malformed);
        assert!(!format!("{fault} {fault:?}").contains("CANARY"), "{fault:?}");
    }

    #[test]
    fn a_page_in_the_place_of_a_message_is_cut() {
        let status = kube::core::Status::failure(&"ä\n".repeat(1000), "").with_code(502);
        let fault = Fault::of(Step::List, &kube::Error::Api(status.boxed()));
        assert_eq!(fault.category, FaultCategory::Server);
        assert!(fault.message.chars().count() <= LONGEST_MESSAGE + 4 && !fault.message.contains('\n'));
    }
}
