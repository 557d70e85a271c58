//! Where a secret is, and the secret.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// In an environment variable.
    Env(String),
    /// In a file, without the line end that may follow it.
    File(PathBuf),
}

/// A secret, which is not shown by mistake.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// A secret is not where it should be. Never shows one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The environment variable is not set.
    #[error("the environment variable {0} is not set")]
    Unset(String),
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{0} holds no secret")]
    Empty(String),
}

impl Credential {
    /// Reads the secret; `env` gives the value of an environment variable.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub fn read(&self, env: impl Fn(&str) -> Option<String>) -> Result<Secret, CredentialError> {
        let (text, place) = match self {
            Self::Env(name) => {
                let text = env(name).ok_or_else(|| CredentialError::Unset(name.clone()))?;
                (text, format!("the environment variable {name}"))
            }
            Self::File(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|source| CredentialError::Unreadable { path: path.clone(), source })?;
                (text, path.display().to_string())
            }
        };
        match text.trim_end_matches(['\n', '\r']) {
            "" => Err(CredentialError::Empty(place)),
            secret => Ok(Secret(secret.to_owned())),
        }
    }
}

impl Secret {
    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
