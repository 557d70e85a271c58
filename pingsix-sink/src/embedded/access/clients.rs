//! Clients: credentials and permitted prefixes.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ring::hmac;

use crate::desired::Scope;

/// Message that a password signs for comparison, so that the password itself is not kept.
const PROOF: &[u8] = b"pingsix-sink password";

/// A set of clients with the prefixes that each may read.
#[derive(Clone, Default)]
pub struct Clients {
    users: BTreeMap<Arc<str>, User>,
    certificates: BTreeMap<Arc<str>, Arc<[Scope]>>,
}

/// A client with a password.
#[derive(Clone)]
pub(super) struct User {
    key: hmac::Key,
    pub(super) scopes: Arc<[Scope]>,
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients")
            .field("users", &self.users.keys())
            .field("certificates", &self.certificates.keys())
            .finish()
    }
}

impl Clients {
    /// An empty set: all reads are denied.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a user with a password, or replaces the user of this name. Only a key derived from the password is kept.
    #[must_use]
    pub fn user(
        mut self,
        name: impl Into<Arc<str>>,
        password: impl AsRef<[u8]>,
        scopes: impl IntoIterator<Item = Scope>,
    ) -> Self {
        self.users.insert(name.into(), User::new(password.as_ref(), scopes.into_iter().collect()));
        self
    }

    /// Adds the clients whose certificate has this common name, or replaces those of this name. The server must
    /// verify clients, with [`ServerTls::client_ca_file`](crate::embedded::ServerTls::client_ca_file).
    #[must_use]
    pub fn certificate(
        mut self,
        common_name: impl Into<Arc<str>>,
        scopes: impl IntoIterator<Item = Scope>,
    ) -> Self {
        self.certificates.insert(common_name.into(), scopes.into_iter().collect());
        self
    }

    /// Reads clients from text, one in each line. Empty lines and those that start with `#` say nothing.
    ///
    /// ```text
    /// # name    proof                prefixes
    /// web       password 5eCr3t...   /pingsix/shop/web /pingsix/shop/web:8080
    /// edge-1    certificate          /pingsix/shop/edge
    /// ```
    ///
    /// # Errors
    /// [`ClientsError`] names the line and what is wrong with it, without a word of it.
    pub fn parse(text: &str) -> Result<Self, ClientsError> {
        (1..).zip(text.lines()).try_fold(Self::new(), |clients, (number, line)| {
            clients.with_line(line).map_err(|problem| ClientsError {
                file: None,
                line: Some(number),
                problem,
            })
        })
    }

    /// Parses the text of a file that a writer may be changing. A text that may be incomplete is an error, so that no
    /// client loses access to a half-written file.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse), [`ClientsProblem::Incomplete`] and [`ClientsProblem::Empty`].
    pub(super) fn of_file(text: &str) -> Result<Self, ClientsError> {
        let error = |line, problem| Err(ClientsError { file: None, line, problem });
        if !text.is_empty() && !text.ends_with('\n') {
            return error(Some(text.lines().count()), ClientsProblem::Incomplete);
        }
        let clients = Self::parse(text)?;
        if clients.users.is_empty() && clients.certificates.is_empty() {
            return error(None, ClientsProblem::Empty);
        }
        Ok(clients)
    }

    fn with_line(self, line: &str) -> Result<Self, ClientsProblem> {
        let mut words = line.split_whitespace();
        let Some(name) = words.next().filter(|name| !name.starts_with('#')) else { return Ok(self) };
        match words.next() {
            Some("password") => {
                let password = words.next().ok_or(ClientsProblem::NoPassword)?;
                // Without a password, a prefix in its place would become the password.
                if password.starts_with('/') {
                    return Err(ClientsProblem::NoPassword);
                }
                if self.users.contains_key(name) {
                    return Err(ClientsProblem::DuplicateName);
                }
                Ok(self.user(name, password, scopes(words)?))
            }
            Some("certificate") if self.certificates.contains_key(name) => Err(ClientsProblem::DuplicateName),
            Some("certificate") => Ok(self.certificate(name, scopes(words)?)),
            Some(_) | None => Err(ClientsProblem::UnknownProof),
        }
    }

    pub(super) fn user_named(&self, name: &str) -> Option<(&Arc<str>, &User)> {
        self.users.get_key_value(name)
    }

    pub(super) fn scopes_of_certificate(&self, common_name: &str) -> Option<&Arc<[Scope]>> {
        self.certificates.get(common_name)
    }
}

impl User {
    fn new(password: &[u8], scopes: Arc<[Scope]>) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, password), scopes }
    }

    /// A placeholder for an unknown user, so that guesses of names take as long as guesses of passwords.
    ///
    /// Its password is empty. A client that guesses the empty password is still denied for its unknown name.
    pub(super) fn placeholder() -> Self {
        Self::new(&[], Arc::default())
    }

    /// Compares in constant time.
    pub(super) fn has_password(&self, password: &str) -> bool {
        let proof = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, password.as_bytes()), PROOF);
        hmac::verify(&self.key, PROOF, proof.as_ref()).is_ok()
    }

    /// The key that signs tokens of this user.
    pub(super) fn key(&self) -> &hmac::Key {
        &self.key
    }
}

fn scopes<'a>(prefixes: impl Iterator<Item = &'a str>) -> Result<Vec<Scope>, ClientsProblem> {
    let scopes: Result<Vec<_>, _> = prefixes.map(Scope::new).collect();
    match scopes {
        Ok(scopes) if scopes.is_empty() => Err(ClientsProblem::NoPrefix),
        Ok(scopes) => Ok(scopes),
        Err(_) => Err(ClientsProblem::InvalidPrefix),
    }
}

/// A text or a file with clients cannot be parsed.
#[derive(Debug)]
pub struct ClientsError {
    /// The file; `None` for a given text.
    pub file: Option<PathBuf>,
    /// The line, counted from one; `None` for a fault of the whole text.
    pub line: Option<usize>,
    /// The fault.
    pub problem: ClientsProblem,
}

impl ClientsError {
    /// Whether the same call may succeed later: files may be replaced.
    pub fn is_retryable(&self) -> bool {
        self.file.is_some()
    }
}

impl fmt::Display for ClientsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("clients")?;
        if let Some(file) = &self.file {
            write!(f, " of {}", file.display())?;
        }
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for ClientsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.problem)
    }
}

/// Fault of a description of clients.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientsProblem {
    /// The file cannot be read.
    #[error("the file cannot be read")]
    Unreadable(#[source] io::Error),
    /// The file has no client.
    #[error("the file names no client")]
    Empty,
    /// The last line of a file has no line break, so the file may be incomplete.
    #[error("the line does not end with a line break, so it may not be written to its end")]
    Incomplete,
    /// The second word is neither `password` nor `certificate`.
    #[error("after the name there must be \"password\" or \"certificate\"")]
    UnknownProof,
    /// The password is absent.
    #[error(
        "after \"password\" there must be a password without white space that does not start with a slash"
    )]
    NoPassword,
    /// The prefix is absent.
    #[error("there must be at least one prefix")]
    NoPrefix,
    /// A prefix breaks the rules of [`Scope`].
    #[error("a prefix is not valid: it starts with a slash, does not end with one, and has no empty segment")]
    InvalidPrefix,
    /// The name occurs twice.
    #[error("the same name was given before")]
    DuplicateName,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_read_line_by_line() {
        let text = "# who\n\nweb password s3cret /p/web /p/web:80\n  edge certificate /p/edge\nweb certificate /p/x\n";
        let clients = Clients::parse(text).unwrap();
        let (_, web) = clients.user_named("web").unwrap();
        assert_eq!(web.scopes.iter().map(Scope::as_str).collect::<Vec<_>>(), ["/p/web", "/p/web:80"]);
        assert!(web.has_password("s3cret"));
        for wrong in ["", "s3cre", "s3cret ", "S3cret"] {
            assert!(!web.has_password(wrong), "{wrong:?}");
        }
        assert_eq!(clients.scopes_of_certificate("edge").unwrap().len(), 1);
        assert!(clients.user_named("edge").is_none());
        assert!(!User::placeholder().has_password("s3cret"));
    }

    #[test]
    fn a_fault_is_named_by_its_line_without_quoting_it() {
        for (line, expected) in [
            ("s3cret", "after the name"),
            ("web s3cret /p/web", "after the name"),
            ("web password", "after \"password\""),
            ("web password /p/web", "after \"password\""),
            ("web password s3cret", "at least one prefix"),
            ("web password s3cret /s3cret/", "not valid"),
            ("web certificate", "at least one prefix"),
            ("ok password s3cret /p/web", "given before"),
        ] {
            let error =
                Clients::parse(&format!("ok password s3cret /p/web\n{line}\n")).unwrap_err().to_string();
            assert!(error.starts_with("clients, line 2: ") && error.contains(expected), "{line}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn debug_shows_names_and_nothing_that_proves_them() {
        let clients = Clients::new().user("web", "s3cret", []).certificate("edge", []);
        let text = format!("{clients:?} {:?}", crate::embedded::Access::of(clients.clone()));
        assert!(text.contains("web") && text.contains("edge") && !text.contains("s3cret"), "{text}");
    }
}
