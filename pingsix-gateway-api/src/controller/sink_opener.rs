//! The opener of sinks that parameters name.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use pingsix_sink::Target;
use pingsix_sink::target::{CredentialPart, ServerCredentials, TargetError};
use pingsix_translate::ObjectName;
use pingsix_translate::infrastructure::{
    CredentialsError, CredentialsErrorKind, SinkCredentials, SinkParameters,
};
use thiserror::Error;

use super::SinkHandle;

/// Opens the sinks that parameters name (`PingsixProxy.spec.attached.sink`), with the credentials of their Secrets.
///
/// Data planes with the same sink and credentials share one open sink. New credentials open another one. The controller
/// drops a sink after its last data plane. Clones are the same opener.
#[derive(Clone)]
pub struct SinkOpener(Arc<OpenFn>);

type OpenFn = dyn Fn(&SinkParameters, &SinkCredentials) -> Result<SinkHandle, SinkOpenError> + Send + Sync;

/// A sink that parameters name cannot be opened: half a sentence for the author of the parameters, without full stop and
/// without secrets. Statuses, Events and logs contain it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SinkOpenError {
    /// The Secret has an entry of no use.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The parameters themselves are of no use.
    #[error("PingsixProxy {proxy} names a sink that cannot be used: {problem}")]
    Unusable {
        /// The parameters.
        proxy: ObjectName,
        /// The reason, half a sentence.
        problem: String,
    },
}

impl fmt::Debug for SinkOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkOpener").finish_non_exhaustive()
    }
}

impl SinkOpener {
    /// An opener with this function, which returns a [shared](SinkHandle::shared) sink. The task of the controller calls the
    /// function, so it must not block: a sink connects with its first publication.
    pub fn new(
        open: impl Fn(&SinkParameters, &SinkCredentials) -> Result<SinkHandle, SinkOpenError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(open))
    }

    /// An opener for all servers that parameters may name: an etcd, and PingSIX's Admin API.
    pub fn of_servers() -> Self {
        Self::new(open_server)
    }

    pub(super) fn open(
        &self,
        sink: &SinkParameters,
        credentials: &SinkCredentials,
    ) -> Result<SinkHandle, SinkOpenError> {
        (self.0)(sink, credentials)
    }
}

fn open_server(sink: &SinkParameters, credentials: &SinkCredentials) -> Result<SinkHandle, SinkOpenError> {
    let unusable = |problem: &dyn fmt::Display| SinkOpenError::Unusable {
        proxy: sink.proxy.clone(),
        problem: problem.to_string(),
    };
    let SinkCredentials { username: user, password, api_key, ca, certificate, key } = credentials.clone();
    let credentials = ServerCredentials { user, password, api_key, ca, certificate, key };
    let target = Target::server(&sink.url, &credentials, sink.allow_plaintext);
    let target = target.map_err(|error| match (&error, &sink.credentials) {
        (TargetError::Unusable { part, problem }, Some(secret)) => {
            let kind = CredentialsErrorKind::Entry { entry: entry(*part), problem: (*problem).to_owned() };
            CredentialsError { proxy: sink.proxy.clone(), secret: secret.clone(), kind }.into()
        }
        _ => unusable(&error),
    })?;
    let opened =
        target.open(&|_| None).now_or_never().ok_or_else(|| unusable(&"it cannot be opened at once"))?;
    let opened = opened.map_err(|error| unusable(&error))?;
    Ok(SinkHandle::shared(target.kind(), sink.url.clone(), opened))
}

/// The entry of a credential in a Secret.
const fn entry(part: CredentialPart) -> &'static str {
    match part {
        CredentialPart::User => SinkCredentials::USERNAME,
        CredentialPart::Password => SinkCredentials::PASSWORD,
        CredentialPart::ApiKey => SinkCredentials::API_KEY,
        CredentialPart::Ca => SinkCredentials::CA,
        CredentialPart::Certificate => SinkCredentials::CERTIFICATE,
        CredentialPart::Key => SinkCredentials::KEY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink(url: &str) -> SinkParameters {
        SinkParameters {
            proxy: ObjectName::new("infra", "edge"),
            url: url.to_owned(),
            allow_plaintext: false,
            credentials: Some(ObjectName::new("infra", "login")),
        }
    }

    fn failure(url: &str, credentials: &SinkCredentials) -> String {
        SinkOpener::of_servers().open(&sink(url), credentials).unwrap_err().to_string()
    }

    #[tokio::test]
    async fn an_unparsable_entry_is_named_with_its_secret_and_never_quoted() {
        let pem = |text: &str| Some(text.as_bytes().to_vec());
        let ca = SinkCredentials { ca: pem("CANARY"), ..SinkCredentials::default() };
        for url in ["etcds://etcd:2379", "admin+https://pingsix:9181"] {
            let api_key = Some("key".to_owned());
            let error = failure(url, &SinkCredentials { api_key, ..ca.clone() });
            let expected =
                "PingsixProxy infra/edge names for its sink Secret infra/login, whose entry \"ca.crt\" ";
            assert_eq!(error, format!("{expected}holds no certificate"), "{url}");
        }
        let api_key = Some("CANARY\u{7f}".to_owned());
        let error_of_key = failure(
            "admin+http://127.0.0.1:9181",
            &SinkCredentials { api_key, ..SinkCredentials::default() },
        );
        assert!(error_of_key.contains("entry \"apiKey\" cannot be"), "{error_of_key}");
        assert!(!error_of_key.contains("CANARY"), "{error_of_key}");
    }

    #[tokio::test]
    async fn plaintext_leaves_the_machine_only_if_that_is_allowed() {
        let error = failure("etcd://etcd:2379", &SinkCredentials::default());
        assert!(error.contains("PingsixProxy infra/edge") && error.contains("plaintext"), "{error}");
        let allowed = SinkParameters { allow_plaintext: true, ..sink("etcd://etcd:2379") };
        let credentials = SinkCredentials {
            username: Some("gateway".to_owned()),
            password: Some("CANARY".to_owned()),
            ..SinkCredentials::default()
        };
        let handle = SinkOpener::of_servers().open(&allowed, &credentials).unwrap();
        assert_eq!(format!("{handle:?}"), "SinkHandle(\"etcd://etcd:2379\")");
    }
}
