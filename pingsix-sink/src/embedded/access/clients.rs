//! Clients: credentials and permitted prefixes.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::desired::Scope;

/// A set of clients with the prefixes that each may read. A client is the holder of certificates with one common name.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    certificates: BTreeMap<Arc<str>, Arc<[Scope]>>,
}

impl Clients {
    /// An empty set: all reads are denied.
    pub fn new() -> Self {
        Self::default()
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
    /// # common name    proof         prefixes
    /// web              certificate   /pingsix/shop/web /pingsix/shop/web:8080
    /// edge-1           certificate   /pingsix/shop/edge
    /// ```
    ///
    /// # Errors
    /// [`ClientsError`] names the line and its error. The message quotes nothing, because a line may hold a password
    /// that was meant for another server.
    pub fn parse(text: &str) -> Result<Self, ClientsError> {
        (1..).zip(text.lines()).try_fold(Self::new(), |clients, (number, line)| {
            clients.with_line(line).map_err(|kind| ClientsError { file: None, line: Some(number), kind })
        })
    }

    /// Parses the text of a file that a writer may be changing. A text that may be incomplete is an error, so that no
    /// client loses access to a half-written file.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse), [`ClientsErrorKind::Incomplete`] and [`ClientsErrorKind::Empty`].
    pub(super) fn of_file(text: &str) -> Result<Self, ClientsError> {
        let error = |line, kind| Err(ClientsError { file: None, line, kind });
        if !text.is_empty() && !text.ends_with('\n') {
            return error(Some(text.lines().count()), ClientsErrorKind::Incomplete);
        }
        let clients = Self::parse(text)?;
        if clients.certificates.is_empty() {
            return error(None, ClientsErrorKind::Empty);
        }
        Ok(clients)
    }

    fn with_line(self, line: &str) -> Result<Self, ClientsErrorKind> {
        let mut words = line.split_whitespace();
        let Some(name) = words.next().filter(|name| !name.starts_with('#')) else { return Ok(self) };
        match words.next() {
            Some("certificate") if self.certificates.contains_key(name) => {
                Err(ClientsErrorKind::DuplicateName)
            }
            Some("certificate") => Ok(self.certificate(name, scopes(words)?)),
            Some(_) | None => Err(ClientsErrorKind::UnknownProof),
        }
    }

    pub(super) fn scopes_of_certificate(&self, common_name: &str) -> Option<&Arc<[Scope]>> {
        self.certificates.get(common_name)
    }
}

fn scopes<'a>(prefixes: impl Iterator<Item = &'a str>) -> Result<Vec<Scope>, ClientsErrorKind> {
    let scopes: Result<Vec<_>, _> = prefixes.map(Scope::new).collect();
    match scopes {
        Ok(scopes) if scopes.is_empty() => Err(ClientsErrorKind::NoPrefix),
        Ok(scopes) => Ok(scopes),
        Err(_) => Err(ClientsErrorKind::InvalidPrefix),
    }
}

/// A text or a file with clients cannot be parsed.
#[derive(Debug)]
pub struct ClientsError {
    /// The file; `None` for a given text.
    pub file: Option<PathBuf>,
    /// The line, counted from one; `None` for an error of the whole text.
    pub line: Option<usize>,
    /// The reason.
    pub kind: ClientsErrorKind,
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
        write!(f, ": {}", self.kind)
    }
}

impl std::error::Error for ClientsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.kind)
    }
}

/// Why a description of clients cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientsErrorKind {
    /// The file cannot be read.
    #[error("the file cannot be read")]
    Unreadable(#[source] io::Error),
    /// The file has no client.
    #[error("the file names no client")]
    Empty,
    /// The last line of a file has no line break, so the file may be incomplete.
    #[error("the line does not end with a line break, so it may not be written to its end")]
    Incomplete,
    /// The second word is not `certificate`.
    #[error("after the common name there must be \"certificate\"")]
    UnknownProof,
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
        let text = "# who\n\nweb certificate /p/web /p/web:80\n  edge certificate /p/edge\n";
        let clients = Clients::parse(text).unwrap();
        let web = clients.scopes_of_certificate("web").unwrap();
        assert_eq!(web.iter().map(Scope::as_str).collect::<Vec<_>>(), ["/p/web", "/p/web:80"]);
        assert_eq!(clients.scopes_of_certificate("edge").unwrap().len(), 1);
        assert!(clients.scopes_of_certificate("other").is_none());
    }

    #[test]
    fn an_error_is_named_by_its_line_without_quoting_it() {
        for (line, expected) in [
            ("s3cret", "after the common name"),
            ("web s3cret /p/web", "after the common name"),
            ("web password s3cret /p/web", "after the common name"),
            ("web certificate", "at least one prefix"),
            ("web certificate /s3cret/", "not valid"),
            ("ok certificate /p/web", "given before"),
        ] {
            let error = Clients::parse(&format!("ok certificate /p/web\n{line}\n")).unwrap_err().to_string();
            assert!(error.starts_with("clients, line 2: ") && error.contains(expected), "{line}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
