//! The part of a URL after the question mark, and its encoding.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::credential::{Credential, ServerCredentials};
use super::error::TargetError;
use crate::client_tls::ClientTls;
use crate::pem::PemSource;

/// The characters that are percent-encoded in a path or a value.
const SPECIAL: &AsciiSet =
    &CONTROLS.add(b' ').add(b'%').add(b'?').add(b'#').add(b'&').add(b'"').add(b'<').add(b'>');

/// The parameters of a URL, each taken once, or credentials in their place.
#[derive(Debug)]
pub(crate) struct Parameters<'a> {
    scheme: &'static str,
    values: BTreeMap<&'a str, &'a str>,
    credentials: Option<&'a ServerCredentials>,
}

impl<'a> Parameters<'a> {
    pub(crate) fn parse(scheme: &'static str, query: Option<&'a str>) -> Result<Self, TargetError> {
        let mut values = BTreeMap::new();
        for parameter in query.into_iter().flat_map(|query| query.split('&')).filter(|part| !part.is_empty())
        {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if values.insert(name, value).is_some() {
                return Err(TargetError::parameter(scheme, known(name), "given twice"));
            }
        }
        Ok(Self { scheme, values, credentials: None })
    }

    /// The permission of plaintext alone, beside credentials.
    pub(crate) fn of(
        scheme: &'static str,
        credentials: &'a ServerCredentials,
        allow_plaintext: bool,
    ) -> Self {
        let values = allow_plaintext.then_some(("allow-plaintext", "true")).into_iter().collect();
        Self { scheme, values, credentials: Some(credentials) }
    }

    pub(crate) const fn credentials(&self) -> Option<&'a ServerCredentials> {
        self.credentials
    }

    /// The certificates for TLS: `ca`, and `cert` with its key in the parameter `key`. `tls_scheme` is the scheme
    /// with TLS.
    pub(crate) fn tls(
        &mut self,
        tls_scheme: &'static str,
        key: &'static str,
    ) -> Result<Option<ClientTls>, TargetError> {
        let failure = |name, problem| Err(TargetError::parameter(self.scheme, name, problem));
        if self.scheme != tls_scheme {
            let given = ["ca", "cert", key].into_iter().find(|name| self.values.contains_key(name));
            return given.map_or(Ok(None), |name| failure(name, format!("only {tls_scheme} has one")));
        }
        if let Some(credentials) = self.credentials {
            return credentials.tls().map(Some);
        }
        let (ca, cert, key_file) = (self.path("ca")?, self.path("cert")?, self.path(key)?);
        let missing =
            "missing: name a file with the authorities that the server's certificate is verified with";
        let failure = |name, problem: &str| Err(TargetError::parameter(self.scheme, name, problem));
        let Some(tls) = ca.map(ClientTls::ca_file) else { return failure("ca", missing) };
        match (cert, key_file) {
            (Some(cert), Some(key)) => Ok(Some(tls.identity_files(cert, key))),
            (None, None) => Ok(Some(tls)),
            (Some(_), None) => failure(key, "missing beside cert"),
            (None, Some(_)) => failure("cert", &format!("missing beside {key}")),
        }
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, TargetError> {
        let Some(value) = self.values.remove(name) else { return Ok(None) };
        match decoded(value) {
            Some(text) if text.is_empty() => Err(TargetError::parameter(self.scheme, name, "it is empty")),
            Some(text) => Ok(Some(text)),
            None => Err(TargetError::parameter(self.scheme, name, "its percent-encoding is not UTF-8")),
        }
    }

    pub(crate) fn path(&mut self, name: &str) -> Result<Option<PathBuf>, TargetError> {
        Ok(self.text(name)?.map(PathBuf::from))
    }

    pub(crate) fn parsed<T: FromStr>(
        &mut self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, TargetError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let parsed = text.parse().map(Some);
        parsed.map_err(|_| TargetError::parameter(self.scheme, name, format!("expected {expected}")))
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, TargetError> {
        Ok(self.parsed(name, "true or false")?.unwrap_or(false))
    }

    /// `NAME-env` or `NAME-file`, or the default environment variable.
    pub(crate) fn credential(
        &mut self,
        name: &'static str,
        variable: &str,
    ) -> Result<Credential, TargetError> {
        if ["password", "api-key", "token"].iter().any(|wrong| self.values.contains_key(wrong)) {
            return Err(TargetError::Password { scheme: self.scheme, parameter: name });
        }
        Ok(self.optional_credential(name)?.unwrap_or_else(|| Credential::Env(variable.to_owned())))
    }

    /// `NAME-env` or `NAME-file`.
    pub(crate) fn optional_credential(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Credential>, TargetError> {
        if self.values.contains_key(name) {
            return Err(TargetError::Password { scheme: self.scheme, parameter: name });
        }
        let (env, file) = (format!("{name}-env"), format!("{name}-file"));
        match (self.text(&env)?, self.path(&file)?) {
            (Some(_), Some(_)) => {
                Err(TargetError::parameter(self.scheme, &file, format!("excludes the parameter {env}")))
            }
            (None, Some(path)) => Ok(Some(Credential::File(path))),
            (Some(name), None) => Ok(Some(Credential::Env(name))),
            (None, None) => Ok(None),
        }
    }

    /// Fails if a parameter is left.
    pub(crate) fn end(self) -> Result<(), TargetError> {
        match self.values.keys().next() {
            Some(name) => {
                Err(TargetError::parameter(self.scheme, known(name), "the target has no such parameter"))
            }
            None => Ok(()),
        }
    }
}

/// A parameter name for an error message. A malformed name is hidden, because it may be the rest of a secret with an
/// ampersand.
fn known(name: &str) -> &str {
    let plain = name.len() <= 20 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    if plain { name } else { "(not shown)" }
}

/// The parameters of a URL that is shown.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn add(&mut self, name: &str, value: Option<String>) {
        self.0.extend(value.map(|value| (name.to_owned(), value)));
    }

    pub(crate) fn path(&mut self, name: &str, path: Option<&Path>) {
        self.add(name, path.map(|path| path.to_string_lossy().into_owned()));
    }

    /// The certificates of [`Parameters::tls`].
    pub(crate) fn tls(&mut self, tls: &ClientTls, key: &str) {
        let mut add = |name: &str, source: &PemSource| self.path(name, source.file().as_deref());
        add("ca", &tls.ca);
        if let Some((cert, key_file)) = &tls.identity {
            add("cert", cert);
            add(key, key_file);
        }
    }

    pub(crate) fn flag(&mut self, name: &str, value: bool) {
        self.add(name, value.then(|| "true".to_owned()));
    }

    pub(crate) fn credential(&mut self, name: &str, credential: &Credential, variable: &str) {
        match credential {
            Credential::Env(name) if name == variable => {}
            Credential::Value(_) => {}
            Credential::Env(env) => self.add(&format!("{name}-env"), Some(env.clone())),
            Credential::File(path) => self.path(&format!("{name}-file"), Some(path)),
        }
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={}", if index == 0 { '?' } else { '&' }, encoded(value))?;
        }
        Ok(())
    }
}

pub(crate) fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, SPECIAL).to_string()
}
