//! Failed requests in words. No message has a credential.

use std::error::Error;

use http::StatusCode;
use kube::client::AuthError;
use serde_json::Value;

/// The cause of a failed request.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The API server answered with an error.
    Status { code: StatusCode, message: String },
    /// No answer within the time limit.
    Timeout(std::time::Duration),
    /// The answer has more bytes than the limit.
    TooLong,
    /// No answer, or none of an API server.
    Broken(String),
}

impl RequestError {
    /// The error of an answer with an error status.
    pub(super) fn of_answer(code: StatusCode, body: &[u8]) -> Self {
        let status: Option<Value> = serde_json::from_slice(body).ok();
        let message = status.as_ref().and_then(|status| status.get("message")?.as_str());
        Self::Status { code, message: message.unwrap_or_default().to_owned() }
    }

    /// Whether the answer has this status.
    pub(super) fn is(&self, wanted: StatusCode) -> bool {
        matches!(self, Self::Status { code, .. } if *code == wanted)
    }

    /// The error about a verb, such as `list`, and its object, such as `HTTPRoute`.
    pub(super) fn about(&self, verb: &str, what: &str) -> anyhow::Error {
        match self {
            Self::Status { code: StatusCode::FORBIDDEN, message } => {
                anyhow::anyhow!("the API server forbids to {verb} {what}: {message}")
            }
            Self::Status { code: StatusCode::UNAUTHORIZED, .. } => {
                anyhow::anyhow!(
                    "cannot {verb} {what}: the API server does not accept the credentials of the user"
                )
            }
            Self::Status { code, message } if message.is_empty() => {
                anyhow::anyhow!("cannot {verb} {what}: the API server answers {code}")
            }
            Self::Timeout(limit) => {
                let seconds = limit.as_secs();
                anyhow::anyhow!("cannot {verb} {what}: no answer within {seconds} s (--request-timeout)")
            }
            Self::TooLong => anyhow::anyhow!("cannot {verb} {what}: an object is too large"),
            Self::Status { message, .. } | Self::Broken(message) => {
                anyhow::anyhow!("cannot {verb} {what}: {message}")
            }
        }
    }
}

/// The error of a client with its causes. The output of a program that gives credentials stays out.
pub(super) fn in_words(error: &kube::Error) -> String {
    let mut messages: Vec<String> = Vec::new();
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<AuthError>() {
            return format!("the user has no usable credentials: {}", of_credentials(error));
        }
        // The wrappers of the client say nothing beyond their cause.
        if error.downcast_ref::<kube::Error>().is_none() || error.source().is_none() {
            let message = error.to_string();
            if messages.last().is_none_or(|last| !last.contains(&message)) {
                messages.push(message);
            }
        }
        cause = error.source();
    }
    messages.join(": ")
}

fn of_credentials(error: &AuthError) -> &'static str {
    match error {
        AuthError::AuthExecStart(_) | AuthError::MissingCommand => {
            "the program for credentials (users: exec: command) cannot be run"
        }
        AuthError::AuthExecRun { .. } | AuthError::ExecPluginFailed | AuthError::AuthExec(_) => {
            "the program for credentials (users: exec) failed"
        }
        AuthError::AuthExecParse(_) => "the program for credentials (users: exec) printed none",
        AuthError::ReadTokenFile(..) => "the token file cannot be read",
        AuthError::InvalidBasicAuth(_)
        | AuthError::InvalidBearerToken(_)
        | AuthError::UnrefreshableTokenResponse
        | AuthError::MalformedTokenExpirationDate(_)
        | AuthError::AuthExecSerialize(_)
        | AuthError::ParseTokenKey(_)
        | AuthError::ExecMissingClusterInfo
        | AuthError::NoValidNativeRootCA(_) => "the entry in users of the kubeconfig is not usable",
    }
}
