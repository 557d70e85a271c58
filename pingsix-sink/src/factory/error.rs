//! Errors of [targets](crate::Target).

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tonic::Status;

use crate::error::SinkError;
use crate::resource::KeyringError;

/// A URL is no valid target. Messages never quote the URL, because it may contain a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// No sink has the scheme.
    #[error("a target begins with one of {0}")]
    Scheme(String),
    /// No server has the scheme.
    #[error("the address of a server begins with one of {0}")]
    NoServer(String),
    /// A part cannot be used.
    #[error("{scheme} {part}: {problem}")]
    Part {
        /// The scheme of the URL.
        scheme: &'static str,
        /// The part, such as `host` or `parameter ca`.
        part: String,
        /// The problem of the part.
        problem: String,
    },
    /// The URL holds a password.
    #[error(
        "{scheme} a URL is no place for a secret, for process lists and logs show it: name an environment variable with \
         {parameter}-env=NAME, or a file with {parameter}-file=PATH"
    )]
    Password {
        /// A credential that the server or another credential needs is missing.
        scheme: &'static str,
        /// The name of the parameters.
        parameter: &'static str,
    },
    /// A credential is missing that the server or another credential needs.
    #[error("{0} is missing")]
    Missing(CredentialPart),
    /// A credential cannot be used.
    #[error("{part} {problem}")]
    Unusable {
        /// The credential.
        part: CredentialPart,
        /// The problem; its text continues a sentence that begins with the credential.
        problem: &'static str,
    },
}

impl TargetError {
    pub(crate) fn part(scheme: &'static str, part: &str, problem: impl Into<String>) -> Self {
        Self::Part { scheme, part: part.to_owned(), problem: problem.into() }
    }

    pub(crate) fn parameter(scheme: &'static str, name: &str, problem: impl Into<String>) -> Self {
        Self::Part { scheme, part: format!("parameter {name}"), problem: problem.into() }
    }
}

/// A target could not be opened or read. Messages never contain a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The environment variable of a secret is not set.
    #[error("the environment variable {0} is not set")]
    Unset(String),
    /// The file of a secret cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The variable or the file of a secret is empty.
    #[error("{0} holds no secret")]
    Empty(String),
    /// The keyring has no key.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// The API key has characters that are invalid in a header.
    #[error("the API key cannot be the value of a header")]
    ApiKey,
    /// The error of the sink.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The options of the embedded server are not in the URL.
    #[error("an embedded server is started by its program")]
    Embedded,
    /// An embedded server is unreachable; a TLS server ends plaintext connections.
    #[error("cannot read from {address}: an embedded server is read back in plaintext alone, not over TLS")]
    Connect {
        /// The address of the server.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An embedded server refused the request.
    #[error("the server at {address} answers {:?}: {}", status.code(), status.message())]
    Status {
        /// The address of the server.
        address: SocketAddr,
        /// The status of the response.
        status: Box<Status>,
    },
}

/// A field of [`ServerCredentials`](super::ServerCredentials).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialPart {
    /// [`user`](field@super::ServerCredentials::user)
    User,
    /// [`password`](field@super::ServerCredentials::password)
    Password,
    /// [`api_key`](field@super::ServerCredentials::api_key)
    ApiKey,
    /// [`ca`](field@super::ServerCredentials::ca)
    Ca,
    /// [`certificate`](field@super::ServerCredentials::certificate)
    Certificate,
    /// [`key`](field@super::ServerCredentials::key)
    Key,
}

impl fmt::Display for CredentialPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "the user",
            Self::Password => "the password",
            Self::ApiKey => "the API key",
            Self::Ca => "the CA",
            Self::Certificate => "the client certificate",
            Self::Key => "the key of the client certificate",
        })
    }
}
