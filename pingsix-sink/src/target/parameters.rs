//! The part of a URL after the question mark, and its encoding.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::{Credential, TargetError};

/// What must be encoded in a path or a value to come back as it was.
const SPECIAL: &AsciiSet =
    &CONTROLS.add(b' ').add(b'%').add(b'?').add(b'#').add(b'&').add(b'"').add(b'<').add(b'>');

/// The parameters of a URL, each taken once.
pub(super) struct Parameters<'a> {
    scheme: &'static str,
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Parameters<'a> {
    pub(super) fn parse(scheme: &'static str, query: Option<&'a str>) -> Result<Self, TargetError> {
        let mut values = BTreeMap::new();
        for parameter in query.into_iter().flat_map(|query| query.split('&')).filter(|part| !part.is_empty())
        {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if values.insert(name, value).is_some() {
                return Err(TargetError::parameter(scheme, known(name), "given twice"));
            }
        }
        Ok(Self { scheme, values })
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, TargetError> {
        let Some(value) = self.values.remove(name) else { return Ok(None) };
        match decoded(value) {
            Some(text) if text.is_empty() => Err(TargetError::parameter(self.scheme, name, "it is empty")),
            Some(text) => Ok(Some(text)),
            None => Err(TargetError::parameter(self.scheme, name, "its percent-encoding is not UTF-8")),
        }
    }

    pub(super) fn path(&mut self, name: &str) -> Result<Option<PathBuf>, TargetError> {
        Ok(self.text(name)?.map(PathBuf::from))
    }

    pub(super) fn parsed<T: FromStr>(
        &mut self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, TargetError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let parsed = text.parse().map(Some);
        parsed.map_err(|_| TargetError::parameter(self.scheme, name, format!("expected {expected}")))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<bool, TargetError> {
        Ok(self.parsed(name, "true or false")?.unwrap_or(false))
    }

    /// `NAME-env` or `NAME-file`, or else an environment variable that goes without saying.
    pub(super) fn credential(
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
    pub(super) fn optional_credential(
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

    /// Whether a parameter is given and not taken yet.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Result<(), TargetError> {
        match self.values.keys().next() {
            Some(name) => {
                Err(TargetError::parameter(self.scheme, known(name), "the target has no such parameter"))
            }
            None => Ok(()),
        }
    }
}

/// A name that may be shown: one that is no name may be a part of a secret with an ampersand in it.
fn known(name: &str) -> &str {
    let plain = name.len() <= 20 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    if plain { name } else { "(not shown)" }
}

/// The parameters of a URL that is shown.
#[derive(Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn add(&mut self, name: &str, value: Option<String>) {
        self.0.extend(value.map(|value| (name.to_owned(), value)));
    }

    pub(super) fn path(&mut self, name: &str, path: Option<&Path>) {
        self.add(name, path.map(|path| path.to_string_lossy().into_owned()));
    }

    pub(super) fn flag(&mut self, name: &str, value: bool) {
        self.add(name, value.then(|| "true".to_owned()));
    }

    pub(super) fn credential(&mut self, name: &str, credential: &Credential, variable: &str) {
        match credential {
            Credential::Env(name) if name == variable => {}
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

pub(super) fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, SPECIAL).to_string()
}
