//! Clients: credentials and permitted prefixes.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::desired::Scope;
use crate::error::SinkErrorSource;

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
    /// The message of an error quotes nothing, because a line may hold a password that was meant for another server.
    fn parse(text: &str) -> Result<Self, ClientsError> {
        (1..).zip(text.lines()).try_fold(Self::new(), |clients, (number, line)| {
            clients.with_line(line).map_err(|problem| ClientsError::of(Some(number), problem))
        })
    }

    /// Parses the text of a file that a writer may be changing. A text that may be incomplete is an error, so that no
    /// client loses access to a half-written file.
    pub(super) fn of_file(text: &str) -> Result<Self, ClientsError> {
        if !text.is_empty() && !text.ends_with('\n') {
            let problem = "the line does not end with a line break, so it may not be written to its end";
            return Err(ClientsError::of(Some(text.lines().count()), problem));
        }
        let clients = Self::parse(text)?;
        if clients.certificates.is_empty() {
            return Err(ClientsError::of(None, "the file names no client"));
        }
        Ok(clients)
    }

    fn with_line(self, line: &str) -> Result<Self, &'static str> {
        let mut words = line.split_whitespace();
        let Some(name) = words.next().filter(|name| !name.starts_with('#')) else { return Ok(self) };
        match words.next() {
            Some("certificate") if self.certificates.contains_key(name) => {
                Err("the same name was given before")
            }
            Some("certificate") => Ok(self.certificate(name, scopes(words)?)),
            Some(_) | None => Err("after the common name there must be \"certificate\""),
        }
    }

    pub(super) fn scopes_of_certificate(&self, common_name: &str) -> Option<&Arc<[Scope]>> {
        self.certificates.get(common_name)
    }
}

fn scopes<'a>(prefixes: impl Iterator<Item = &'a str>) -> Result<Vec<Scope>, &'static str> {
    let scopes: Result<Vec<_>, _> = prefixes.map(Scope::new).collect();
    match scopes {
        Ok(scopes) if scopes.is_empty() => Err("there must be at least one prefix"),
        Ok(scopes) => Ok(scopes),
        Err(_) => Err(
            "a prefix is not valid: it starts with a slash, does not end with one, and has no empty segment",
        ),
    }
}

/// A text or a file with clients cannot be parsed. The message quotes nothing of the text.
#[derive(Debug)]
pub(in crate::embedded) struct ClientsError {
    /// The file; `None` for a given text.
    pub(super) file: Option<PathBuf>,
    /// The line, counted from one; `None` for an error of the whole text.
    pub(super) line: Option<usize>,
    pub(super) problem: &'static str,
    /// The error of reading the file.
    pub(super) source: Option<io::Error>,
}

impl ClientsError {
    fn of(line: Option<usize>, problem: &'static str) -> Self {
        Self { file: None, line, problem, source: None }
    }
}

impl SinkErrorSource for ClientsError {
    fn category(&self) -> &'static str {
        "clients"
    }

    /// Files may be replaced.
    fn is_retryable(&self) -> bool {
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
        self.source.as_ref().map(|source| source as _)
    }
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
