//! Errors between this program and an etcd.

use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use tonic::{Code, Status};

use crate::desired::Scope;
use crate::error::SinkErrorSource;

/// An etcd is unreachable, refused a request, or has content that must not be overwritten.
///
/// Errors never contain values, passwords or tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdError {
    /// An option is invalid.
    #[error("{option} {value} cannot be used: {problem}")]
    Option {
        /// The option, such as `endpoint`.
        option: &'static str,
        /// Its value without secrets.
        value: String,
        /// The error.
        problem: String,
    },
    /// A file of the TLS options cannot be used now: it is unreadable, or is being replaced.
    #[error("{option} {} cannot be used: {problem}", file.display())]
    File {
        /// The option, such as `CA`.
        option: &'static str,
        /// The file.
        file: PathBuf,
        /// The error.
        problem: String,
    },
    /// A plaintext connection to another machine.
    #[error(
        "refusing to send private keys in plaintext to {endpoint}: use TLS, a loopback address, or allow it with the \
         option allow_plaintext_beyond_loopback, which is allow-plaintext=true in the URL of a target"
    )]
    PlaintextBeyondLoopback {
        /// Host and port.
        endpoint: String,
    },
    /// No endpoint is reachable, or no endpoint has a leader.
    #[error("etcd cannot be reached: {0}")]
    Unavailable(String),
    /// A request timed out; a write may have taken effect.
    #[error("etcd did not answer within {0:?}")]
    Timeout(Duration),
    /// etcd has exceeded its quota and refuses writes until it is compacted, defragmented and disarmed.
    #[error("etcd is out of space: compact it, defragment it and disarm the alarm")]
    NoSpace,
    /// etcd rejects the credentials.
    #[error("etcd does not accept the user: {0}")]
    Authentication(String),
    /// The user has no permission for the scope.
    #[error("the user may not read and write everything under {scope}/")]
    PermissionDenied {
        /// The scope, all of which the user must be able to read and write.
        scope: Scope,
    },
    /// A transaction is larger than etcd accepts, although it is within the limits of the sink.
    #[error("etcd takes no transaction as large as the options of the sink allow: {0}")]
    Limit(String),
    /// A program with a later term has published to the scope.
    #[error("scope {scope} is published by a later leader: its term is {held}, and ours {own}")]
    Fenced {
        /// The scope.
        scope: Scope,
        /// The term in etcd.
        held: u64,
        /// The term of this program.
        own: u64,
    },
    /// Another writer changed the scope between each read and write.
    #[error("scope {scope} was changed by another writer {attempts} times while it was written")]
    Conflict {
        /// The scope.
        scope: Scope,
        /// The number of attempts.
        attempts: usize,
    },
    /// The guard key has a value of another protocol, whose writers would not detect this one.
    #[error("key {key} has an unknown value: the scope is guarded by a protocol this program does not know")]
    Guard {
        /// The guard key.
        key: String,
    },
    /// The content of a scope exceeds the limit of its reader.
    #[error("{scope}/ has more than {max_bytes} bytes, the limit of its reader")]
    TooLarge {
        /// The scope.
        scope: Scope,
        /// The limit.
        max_bytes: usize,
    },
    /// An answer is against the protocol of etcd.
    #[error("an answer is not one of etcd: {0}")]
    Protocol(String),
    /// etcd responded with an unexpected status.
    #[error("etcd refused the request ({code:?}): {message}")]
    Refused {
        /// The gRPC code.
        code: Code,
        /// The message.
        message: String,
    },
}

impl EtcdError {
    /// [`TooLarge`](Self::TooLarge) in place of tonic's error for a message above its limit; any other error stays.
    pub(super) fn or_too_large(self, scope: &Scope, max_bytes: usize) -> Self {
        let names_the_limit = |message: &str| message.contains("message length too large");
        if matches!(&self, Self::Refused { message, .. } if names_the_limit(message)) {
            Self::TooLarge { scope: scope.clone(), max_bytes }
        } else {
            self
        }
    }
}

impl SinkErrorSource for EtcdError {
    fn is_retryable(&self) -> bool {
        match self {
            // An operator mends users, roles, alarms and the guard in etcd and replaces files while the sink retries.
            Self::Unavailable(_)
            | Self::File { .. }
            | Self::Guard { .. }
            | Self::Timeout(_)
            | Self::NoSpace
            | Self::Authentication(_)
            | Self::PermissionDenied { .. }
            | Self::Conflict { .. }
            | Self::TooLarge { .. }
            | Self::Protocol(_) => true,
            Self::Option { .. }
            | Self::PlaintextBeyondLoopback { .. }
            | Self::Limit(_)
            | Self::Fenced { .. } => false,
            Self::Refused { code, .. } => !matches!(code, Code::InvalidArgument | Code::Unimplemented),
        }
    }

    fn category(&self) -> &'static str {
        match self {
            Self::Option { .. } => "etcd_option",
            Self::File { .. } => "etcd_file",
            Self::PlaintextBeyondLoopback { .. } => "plaintext_beyond_loopback",
            Self::Unavailable(_) => "etcd_unavailable",
            Self::Timeout(_) => "etcd_timeout",
            Self::NoSpace => "etcd_no_space",
            Self::Authentication(_) => "etcd_authentication",
            Self::PermissionDenied { .. } => "etcd_permission_denied",
            Self::Limit(_) => "etcd_limit",
            Self::Fenced { .. } => "etcd_fenced",
            Self::Conflict { .. } => "etcd_conflict",
            Self::Guard { .. } => "etcd_guard",
            Self::TooLarge { .. } => "etcd_too_large",
            Self::Protocol(_) => "etcd_protocol",
            Self::Refused { .. } => "etcd_refused",
        }
    }
}

/// Failure of one request.
#[derive(Debug)]
pub(super) enum RequestError {
    /// Another endpoint may succeed.
    Endpoint(EtcdError),
    /// The token is invalid or has expired.
    Token(String),
    /// The user has no permission.
    Permission,
    /// The request would fail on every endpoint.
    Answer(EtcdError),
}

impl RequestError {
    /// Classifies etcd's status. Codes alone do not distinguish its errors; its messages are the same in all
    /// versions.
    pub(super) fn of(status: &Status) -> Self {
        let text = status.message();
        let says = |part: &str| text.contains(part);
        if says("invalid auth token") || says("revision of auth store is old") || says("user name is empty") {
            return Self::Token(text.to_owned());
        }
        if says("authentication failed") || says("authentication is not enabled") {
            return Self::Answer(EtcdError::Authentication(text.to_owned()));
        }
        if says("request is too large") || says("too many operations") || says("larger than max") {
            return Self::Answer(EtcdError::Limit(text.to_owned()));
        }
        if says("database space exceeded") {
            return Self::Answer(EtcdError::NoSpace);
        }
        match status.code() {
            Code::PermissionDenied => Self::Permission,
            Code::Unauthenticated => Self::Token(text.to_owned()),
            // A broken connection is `Unknown`, `Internal` or `Cancelled`, depending on the layer at which it breaks.
            // A member under overload or without a leader responds with one of the others.
            Code::Unavailable
            | Code::Unknown
            | Code::Internal
            | Code::Cancelled
            | Code::Aborted
            | Code::DeadlineExceeded
            | Code::DataLoss
            | Code::ResourceExhausted => Self::Endpoint(EtcdError::Unavailable(described(status))),
            Code::Ok
            | Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented => {
                Self::Answer(EtcdError::Refused { code: status.code(), message: text.to_owned() })
            }
        }
    }

    /// The error for the caller, whose request was about `scope`.
    pub(super) fn about(self, scope: &Scope) -> EtcdError {
        match self {
            Self::Endpoint(error) | Self::Answer(error) => error,
            Self::Token(text) => EtcdError::Authentication(text),
            Self::Permission => EtcdError::PermissionDenied { scope: scope.clone() },
        }
    }
}

/// The message and its causes, each once, without empty phrases.
fn described(status: &Status) -> String {
    let mut texts = vec![status.message().to_owned()];
    let mut cause = status.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    let mut messages: Vec<&str> = Vec::new();
    for text in texts.iter().map(String::as_str).filter(|text| !["", "transport error"].contains(text)) {
        if !messages.iter().any(|message| message.contains(text)) {
            messages.push(text);
        }
    }
    if messages.is_empty() { "the connection failed".to_owned() } else { messages.join(": ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(status: &Status) -> EtcdError {
        RequestError::of(status).about(&Scope::new("/p/web").unwrap())
    }

    #[test]
    fn answers_of_etcd_have_their_categories() {
        for (status, category, retryable) in [
            (Status::unavailable("etcdserver: no leader"), "etcd_unavailable", true),
            (Status::unavailable("etcdserver: request timed out"), "etcd_unavailable", true),
            (Status::unknown("transport error"), "etcd_unavailable", true),
            (Status::resource_exhausted("etcdserver: too many requests"), "etcd_unavailable", true),
            (Status::resource_exhausted("etcdserver: mvcc: database space exceeded"), "etcd_no_space", true),
            (Status::unauthenticated("etcdserver: invalid auth token"), "etcd_authentication", true),
            (
                Status::invalid_argument("etcdserver: revision of auth store is old"),
                "etcd_authentication",
                true,
            ),
            (Status::invalid_argument("etcdserver: user name is empty"), "etcd_authentication", true),
            (
                Status::invalid_argument("etcdserver: authentication failed, invalid user ID or password"),
                "etcd_authentication",
                true,
            ),
            (Status::permission_denied("etcdserver: permission denied"), "etcd_permission_denied", true),
            (Status::invalid_argument("etcdserver: request is too large"), "etcd_limit", false),
            (Status::invalid_argument("etcdserver: too many operations in txn request"), "etcd_limit", false),
            (Status::invalid_argument("etcdserver: key is not provided"), "etcd_refused", false),
            (
                Status::out_of_range("etcdserver: mvcc: required revision has been compacted"),
                "etcd_refused",
                true,
            ),
        ] {
            let error = messages(&status);
            assert_eq!((error.category(), error.is_retryable()), (category, retryable), "{status:?}");
        }
    }
}
