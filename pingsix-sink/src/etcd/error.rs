//! What can go wrong between this program and an etcd.

use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use tonic::{Code, Status};

use crate::desired::Scope;
use crate::error::SinkFault;

/// Etcd was not reached, refused a request, or holds what must not be written over.
///
/// Carries neither values, nor passwords, nor tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdError {
    /// An option cannot be used as it is.
    #[error("{option} {value} cannot be used: {problem}")]
    Option {
        /// Which one, such as `endpoint`.
        option: &'static str,
        /// What it was, as far as it may be shown.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file of the TLS options cannot be used as it is now: it cannot be read, or is being replaced.
    #[error("{option} {} cannot be used: {problem}", file.display())]
    File {
        /// Which one, such as `CA`.
        option: &'static str,
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Connections would not be encrypted, and one leads to another machine.
    #[error(
        "refusing to send private keys in plaintext to {endpoint}: use TLS, a loopback address, or allow it with the \
         option allow_plaintext_beyond_loopback, which is allow-plaintext=true in the URL of a target"
    )]
    PlaintextBeyondLoopback {
        /// Host and port.
        endpoint: String,
    },
    /// No endpoint could be reached, or none has a leader.
    #[error("etcd cannot be reached: {0}")]
    Unavailable(String),
    /// An endpoint was reached and did not answer in time; a write may have been done or not.
    #[error("etcd did not answer within {0:?}")]
    Timeout(Duration),
    /// Etcd has reached its quota and takes no writes until it is compacted, defragmented and disarmed.
    #[error("etcd is out of space: compact it, defragment it and disarm the alarm")]
    NoSpace,
    /// Etcd does not accept who we say we are.
    #[error("etcd does not accept the user: {0}")]
    Authentication(String),
    /// The user may not read or write what it has to.
    #[error("the user may not read and write everything under {scope}/")]
    PermissionDenied {
        /// What has to be readable and writable as a whole.
        scope: Scope,
    },
    /// A transaction is larger than etcd takes, although it is within the limits given to the sink.
    #[error("etcd takes no transaction as large as the options of the sink allow: {0}")]
    Limit(String),
    /// A program of a later term has published to the scope.
    #[error("scope {scope} is published by a later leader: its term is {held}, and ours {own}")]
    Fenced {
        /// What was to be written.
        scope: Scope,
        /// The term in etcd.
        held: u64,
        /// That of this program.
        own: u64,
    },
    /// Another writer changed the scope each time between reading and writing it.
    #[error("scope {scope} was changed by another writer {attempts} times while it was written")]
    Conflict {
        /// What was being written.
        scope: Scope,
        /// How often it was tried.
        attempts: usize,
    },
    /// The guard key has a value of another protocol, whose writers would not notice ours.
    #[error("key {key} has an unknown value: the scope is guarded by a protocol this program does not know")]
    Guard {
        /// The guard key.
        key: String,
    },
    /// Etcd answered something else than it should.
    #[error("etcd refused the request ({code:?}): {message}")]
    Refused {
        /// The code of the answer.
        code: Code,
        /// Its text.
        message: String,
    },
}

impl SinkFault for EtcdError {
    fn is_retryable(&self) -> bool {
        match self {
            // Users, roles, alarms and the guard are mended at the side of etcd, and files are replaced, while we keep
            // trying.
            Self::Unavailable(_)
            | Self::File { .. }
            | Self::Guard { .. }
            | Self::Timeout(_)
            | Self::NoSpace
            | Self::Authentication(_)
            | Self::PermissionDenied { .. }
            | Self::Conflict { .. } => true,
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
            Self::Refused { .. } => "etcd_refused",
        }
    }
}

/// How one request ended that did not end well.
#[derive(Debug)]
pub(super) enum Fault {
    /// Another endpoint may do better.
    Endpoint(EtcdError),
    /// The token is not, or no longer, good.
    Token(String),
    /// The user may not.
    Permission,
    /// It would end so anywhere.
    Answer(EtcdError),
}

impl Fault {
    /// Reads etcd's answer. Codes alone do not tell its errors apart; its texts are the same in all of its versions.
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
            // A connection that breaks is `Unknown`, `Internal` or `Cancelled`, according to where it breaks; a member
            // that is overloaded or has lost its leader says so with one of the others.
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

    /// What the caller is told, whose request was about `scope`.
    pub(super) fn about(self, scope: &Scope) -> EtcdError {
        match self {
            Self::Endpoint(error) | Self::Answer(error) => error,
            Self::Token(text) => EtcdError::Authentication(text),
            Self::Permission => EtcdError::PermissionDenied { scope: scope.clone() },
        }
    }
}

/// The message and its causes, each once, without the words that say nothing.
fn described(status: &Status) -> String {
    let mut texts = vec![status.message().to_owned()];
    let mut cause = status.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    let mut told: Vec<&str> = Vec::new();
    for text in texts.iter().map(String::as_str).filter(|text| !["", "transport error"].contains(text)) {
        if !told.iter().any(|said| said.contains(text)) {
            told.push(text);
        }
    }
    if told.is_empty() { "the connection failed".to_owned() } else { told.join(": ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: &Status) -> EtcdError {
        Fault::of(status).about(&Scope::new("/p/web").unwrap())
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
            let error = told(&status);
            assert_eq!((error.category(), error.is_retryable()), (category, retryable), "{status:?}");
        }
    }
}
