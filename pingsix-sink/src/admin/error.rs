//! Errors between a sink and an Admin API.

use std::path::PathBuf;

use http::StatusCode;

use super::MAX_BODY_BYTES;
use crate::document::{Key, Owner};
use crate::error::SinkErrorSource;
use crate::resource::ResourceKind;

/// A publication to the Admin API failed. Messages never contain a key or a value.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdminError {
    /// A plaintext connection to another machine.
    #[error(
        "refusing to send private keys in plaintext to {url}: use https, a loopback address, or allow it with the option \
         allow_plaintext_beyond_loopback, which is allow-plaintext=true in the URL of a target"
    )]
    PlaintextBeyondLoopback {
        /// The address.
        url: String,
    },
    /// The address is invalid.
    #[error("the address of the Admin API cannot be used: {0}")]
    Url(String),
    /// The CAs for https cannot be used.
    #[error("the CA file{} {problem}", file.as_ref().map_or_else(String::new, |file| format!(" {}", file.display())))]
    Ca {
        /// The file, if one was configured.
        file: Option<PathBuf>,
        /// The error; the text continues a sentence that begins with the file.
        problem: &'static str,
    },
    /// The client certificate or its key cannot be used.
    #[error("the client {part}{} {problem}", file.as_ref().map_or_else(String::new, |file| format!(" in {}", file.display())))]
    Identity {
        /// `certificate` or `key`.
        part: &'static str,
        /// The file, if one was configured.
        file: Option<PathBuf>,
        /// The error; the text continues a sentence that begins with the part.
        problem: &'static str,
    },
    /// The response timed out.
    #[error("{request} was not answered in time")]
    Timeout {
        /// Method and resource.
        request: String,
    },
    /// The connection failed.
    #[error("{request} failed")]
    Connection {
        /// Method and resource.
        request: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The API rejected the key.
    #[error("the Admin API does not accept the API key")]
    ApiKey,
    /// The API responded with a status of a server error.
    #[error("{request} was answered {status}")]
    Status {
        /// Method and resource.
        request: String,
        /// The status of the response.
        status: StatusCode,
    },
    /// The response is none of PingSIX's.
    #[error("the answer to {request} is not PingSIX's")]
    UnexpectedResponse {
        /// Method and resource.
        request: String,
    },
    /// PingSIX refused a document.
    #[error("PingSIX refuses document {key} of {owner}: {message}")]
    Refused {
        /// The key of the document.
        key: Key,
        /// The owner of the document.
        owner: Owner,
        /// PingSIX's message without secrets.
        message: String,
    },
    /// A document is larger than the API accepts.
    #[error(
        "document {key} of {owner} has {bytes} bytes, more than the {MAX_BODY_BYTES} the Admin API takes"
    )]
    TooLarge {
        /// The key of the document.
        key: Key,
        /// The owner of the document.
        owner: Owner,
        /// The size of the request.
        bytes: usize,
    },
    /// A resource with the id of a document belongs to another scope.
    #[error("document {key} of {owner} has the id of a resource of scope {scope}")]
    OtherScope {
        /// The key of the document.
        key: Key,
        /// The owner of the document.
        owner: Owner,
        /// The scope in the mark of the resource.
        scope: String,
    },
    /// Resources could not be deleted, because resources of other writers refer to them.
    #[error("still referred to by resources of others: {}", list(keys))]
    StillReferenced {
        /// The keys of the resources.
        keys: Vec<Key>,
    },
    /// Every attempt conflicted with another writer.
    #[error("others wrote at the same time whenever {request} was tried")]
    Contended {
        /// Method and resource.
        request: String,
    },
}

impl AdminError {
    pub(super) fn answer(kind: ResourceKind) -> Self {
        Self::UnexpectedResponse { request: format!("GET {kind}") }
    }
}

impl SinkErrorSource for AdminError {
    fn is_retryable(&self) -> bool {
        match self {
            Self::PlaintextBeyondLoopback { .. } | Self::Url(_) | Self::TooLarge { .. } => false,
            // Files are read again for each connection.
            Self::Ca { file, .. } | Self::Identity { file, .. } => file.is_some(),
            // PingSIX validates the whole configuration, so a resource of another writer may be at fault. An operator
            // mends that resource or the key at PingSIX while the sink retries.
            Self::Refused { .. }
            | Self::ApiKey
            | Self::Timeout { .. }
            | Self::Connection { .. }
            | Self::Status { .. }
            | Self::UnexpectedResponse { .. }
            | Self::OtherScope { .. }
            | Self::StillReferenced { .. }
            | Self::Contended { .. } => true,
        }
    }

    fn category(&self) -> &'static str {
        match self {
            Self::PlaintextBeyondLoopback { .. } => "plaintext_beyond_loopback",
            Self::Url(_) => "admin_url",
            Self::Ca { .. } => "admin_ca",
            Self::Identity { .. } => "admin_client_certificate",
            Self::Timeout { .. } => "admin_timeout",
            Self::Connection { .. } => "admin_unavailable",
            Self::ApiKey => "admin_api_key",
            Self::Status { .. } => "admin_status",
            Self::UnexpectedResponse { .. } => "admin_answer",
            Self::Refused { .. } => "admin_refused",
            Self::TooLarge { .. } => "document_too_large",
            Self::OtherScope { .. } => "admin_other_scope",
            Self::StillReferenced { .. } => "admin_still_referenced",
            Self::Contended { .. } => "admin_conflict",
        }
    }
}

fn list(keys: &[Key]) -> String {
    keys.iter().map(Key::as_str).collect::<Vec<_>>().join(", ")
}
