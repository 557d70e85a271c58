//! Credentials: their locations and values.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use super::error::{CredentialPart, OpenError, TargetError};
use crate::client_tls::ClientTls;
use crate::pem::{IdentityError, authorities, identity};

/// The location of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    /// In an environment variable.
    Env(String),
    /// In a file, without a trailing line end.
    File(PathBuf),
    /// The secret itself; never in a URL.
    Value(Secret),
}

/// A secret with a redacted `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Credential {
    /// Reads the secret; `env` gives the value of an environment variable.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(crate) fn read(&self, env: impl Fn(&str) -> Option<String>) -> Result<Secret, OpenError> {
        let (text, place) = match self {
            Self::Env(name) => {
                let text = env(name).ok_or_else(|| OpenError::Unset(name.clone()))?;
                (text, format!("the environment variable {name}"))
            }
            Self::File(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|source| OpenError::Unreadable { path: path.clone(), source })?;
                (text, path.display().to_string())
            }
            Self::Value(secret) => return Ok(secret.clone()),
        };
        match text.trim_end_matches(['\n', '\r']) {
            "" => Err(OpenError::Empty(place)),
            secret => Ok(Secret(secret.to_owned())),
        }
    }
}

impl Secret {
    /// The secret itself.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The credentials of a server as values. A server ignores those that it does not use. `Debug` is redacted.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerCredentials {
    /// The etcd user.
    pub user: Option<String>,
    /// The password of the user.
    pub password: Option<String>,
    /// The value of `X-API-KEY`, which an Admin API needs.
    pub api_key: Option<String>,
    /// PEM certificates of the CAs that verify the server. TLS needs them.
    pub ca: Option<Vec<u8>>,
    /// The chain of the client certificate for TLS, in PEM.
    pub certificate: Option<Vec<u8>>,
    /// The key of the client certificate, in PEM.
    pub key: Option<Vec<u8>>,
}

impl ServerCredentials {
    pub(crate) fn user(&self) -> Result<Option<(String, Credential)>, TargetError> {
        let user = (CredentialPart::User, &self.user);
        let paired = paired(user, (CredentialPart::Password, &self.password))?;
        Ok(paired.map(|(user, password)| (user, Credential::Value(Secret(password)))))
    }

    pub(crate) fn api_key(&self) -> Result<Credential, TargetError> {
        let part = CredentialPart::ApiKey;
        let key = self.api_key.clone().ok_or(TargetError::Missing(part))?;
        let problem = "cannot be the value of a header";
        http::HeaderValue::from_str(&key).map_err(|_| TargetError::Unusable { part, problem })?;
        Ok(Credential::Value(Secret(key)))
    }

    pub(crate) fn tls(&self) -> Result<ClientTls, TargetError> {
        let unusable = |part, problem| TargetError::Unusable { part, problem };
        let ca = self.ca.clone().ok_or(TargetError::Missing(CredentialPart::Ca))?;
        authorities(&ca).map_err(|error| unusable(CredentialPart::Ca, error.as_str()))?;
        let certificate = (CredentialPart::Certificate, &self.certificate);
        let client = paired(certificate, (CredentialPart::Key, &self.key))?;
        if let Some((certificate, key)) = &client {
            identity(certificate, key).map_err(|error| match error {
                IdentityError::Certificate(problem) => unusable(CredentialPart::Certificate, problem),
                IdentityError::Key(problem) => unusable(CredentialPart::Key, problem),
            })?;
        }
        let tls = ClientTls::ca_pem(ca);
        Ok(match client {
            Some((certificate, key)) => tls.identity_pem(certificate, key),
            None => tls,
        })
    }
}

/// Two credentials that need each other.
fn paired<T: Clone>(
    (part, value): (CredentialPart, &Option<T>),
    (other_part, other): (CredentialPart, &Option<T>),
) -> Result<Option<(T, T)>, TargetError> {
    match (value, other) {
        (Some(value), Some(other)) => Ok(Some((value.clone(), other.clone()))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(TargetError::Missing(other_part)),
        (None, Some(_)) => Err(TargetError::Missing(part)),
    }
}

impl fmt::Debug for ServerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCredentials").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Credential {
        Credential::Env(name.to_owned())
    }

    #[test]
    fn a_secret_is_read_where_the_url_says() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "sesame \n").unwrap();
        let variables = |name: &str| (name == "KEY").then(|| "sesame".to_owned());
        let secret = variable("KEY").read(variables).unwrap();
        assert_eq!((secret.expose(), format!("{secret:?}").as_str()), ("sesame", "Secret"));
        let secret = Credential::File(file.path().to_owned()).read(variables).unwrap();
        assert_eq!(secret.expose(), "sesame ", "but for the line end");
        assert_eq!(
            variable("NO").read(variables).unwrap_err().to_string(),
            "the environment variable NO is not set"
        );
        std::fs::write(file.path(), "\n").unwrap();
        let error = Credential::File(file.path().to_owned()).read(variables).unwrap_err().to_string();
        assert!(error.ends_with("holds no secret"), "{error}");
        assert!(
            Credential::File("/no/such".into()).read(variables).unwrap_err().to_string().contains("/no/such")
        );
    }
}
