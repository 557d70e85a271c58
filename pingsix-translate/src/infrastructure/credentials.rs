//! Credentials of the sink in parameters.

use std::fmt;

use thiserror::Error;

use super::SinkParameters;
use crate::model::ObjectName;
use crate::snapshot::Secret;

/// The entries of the Secret of [`SinkParameters`]. `Debug` shows none of them.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SinkCredentials {
    /// `username`, for an etcd.
    pub username: Option<String>,
    /// `password`, for an etcd.
    pub password: Option<String>,
    /// `apiKey`, for an Admin API.
    pub api_key: Option<String>,
    /// `ca.crt`, over TLS.
    pub ca: Option<Vec<u8>>,
    /// `tls.crt`, over TLS.
    pub certificate: Option<Vec<u8>>,
    /// `tls.key`, over TLS.
    pub key: Option<Vec<u8>>,
}

/// The credentials of a sink cannot be used: half a sentence for the author of the parameters, which quotes no entry.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("PingsixProxy {proxy} names for its sink Secret {secret}, {kind}")]
pub struct CredentialsError {
    /// The parameters.
    pub proxy: ObjectName,
    /// The Secret that the parameters name.
    pub secret: ObjectName,
    /// The reason.
    pub kind: CredentialsErrorKind,
}

/// The reason why a Secret with [`SinkCredentials`] cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CredentialsErrorKind {
    /// The Secret does not exist.
    #[error("which does not exist")]
    NoSecret,
    /// The Secret lacks an entry.
    #[error("which has no entry \"{0}\"")]
    NoEntry(&'static str),
    /// The Secret has one of two entries that belong together.
    #[error("which has an entry \"{present}\" and none \"{missing}\"")]
    Unpaired {
        /// The entry of the Secret.
        present: &'static str,
        /// The other entry.
        missing: &'static str,
    },
    /// The value of an entry is of no use.
    #[error("whose entry \"{entry}\" {problem}")]
    Entry {
        /// The entry.
        entry: &'static str,
        /// The predicate of a sentence about the entry.
        problem: String,
    },
}

impl fmt::Debug for SinkCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkCredentials").finish_non_exhaustive()
    }
}

impl SinkCredentials {
    /// The entry of the Secret for [`username`](Self::username).
    pub const USERNAME: &'static str = "username";
    /// The entry of the Secret for [`password`](Self::password).
    pub const PASSWORD: &'static str = "password";
    /// The entry of the Secret for [`api_key`](Self::api_key).
    pub const API_KEY: &'static str = "apiKey";
    /// The entry of the Secret for [`ca`](Self::ca).
    pub const CA: &'static str = "ca.crt";
    /// The entry of the Secret for [`certificate`](Self::certificate).
    pub const CERTIFICATE: &'static str = "tls.crt";
    /// The entry of the Secret for [`key`](Self::key).
    pub const KEY: &'static str = "tls.key";

    /// Reads the entries that the sink needs; `secret` is `None` if the Secret does not exist.
    ///
    /// # Errors
    /// [`CredentialsError`]: the Secret does not exist, or has not the entries that the sink needs.
    pub fn read(sink: &SinkParameters, secret: Option<&Secret>) -> Result<Self, CredentialsError> {
        let Some(name) = &sink.credentials else { return Ok(Self::default()) };
        let read = secret.ok_or(CredentialsErrorKind::NoSecret).and_then(|secret| Self::of(sink, secret));
        read.map_err(|kind| CredentialsError { proxy: sink.proxy.clone(), secret: name.clone(), kind })
    }

    fn of(sink: &SinkParameters, secret: &Secret) -> Result<Self, CredentialsErrorKind> {
        let entries = Entries(secret);
        let mut read = Self::default();
        if sink.is_admin() {
            read.api_key = Some(entries.required(Self::API_KEY)?);
        } else {
            read.username = entries.text(Self::USERNAME)?;
            read.password = entries.text(Self::PASSWORD)?;
            check_pair((&read.username, Self::USERNAME), (&read.password, Self::PASSWORD))?;
        }
        if sink.is_tls() {
            read.ca = Some(entries.required(Self::CA)?.into_bytes());
            let certificate = entries.text(Self::CERTIFICATE)?;
            let key = entries.text(Self::KEY)?;
            check_pair((&certificate, Self::CERTIFICATE), (&key, Self::KEY))?;
            read.certificate = certificate.map(String::into_bytes);
            read.key = key.map(String::into_bytes);
        }
        Ok(read)
    }
}

/// The entries of the Secret that a sink names.
#[derive(Clone, Copy)]
struct Entries<'a>(&'a Secret);

impl Entries<'_> {
    /// An entry, without the line end that may follow it.
    fn text(self, entry: &'static str) -> Result<Option<String>, CredentialsErrorKind> {
        // In a manifest, `stringData` overrides `data`.
        let written = self.0.string_data.as_ref().and_then(|data| data.get(entry)).map(String::as_bytes);
        let stored = self.0.data.as_ref().and_then(|data| data.get(entry)).map(|bytes| &*bytes.0);
        let Some(bytes) = written.or(stored) else { return Ok(None) };
        let unusable = |problem: &str| CredentialsErrorKind::Entry { entry, problem: problem.to_owned() };
        let text = std::str::from_utf8(bytes).map_err(|_| unusable("is not UTF-8"))?;
        match text.trim_end_matches(['\n', '\r']) {
            "" => Err(unusable("is empty")),
            text => Ok(Some(text.to_owned())),
        }
    }

    fn required(self, entry: &'static str) -> Result<String, CredentialsErrorKind> {
        self.text(entry)?.ok_or(CredentialsErrorKind::NoEntry(entry))
    }
}

/// Refuses one of two entries without the other.
fn check_pair(
    (one, entry): (&Option<String>, &'static str),
    (other, other_entry): (&Option<String>, &'static str),
) -> Result<(), CredentialsErrorKind> {
    match (one, other) {
        (Some(_), None) => Err(CredentialsErrorKind::Unpaired { present: entry, missing: other_entry }),
        (None, Some(_)) => Err(CredentialsErrorKind::Unpaired { present: other_entry, missing: entry }),
        (Some(_), Some(_)) | (None, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sink(url: &str) -> SinkParameters {
        SinkParameters {
            proxy: ObjectName::new("infra", "edge"),
            url: url.to_owned(),
            allow_plaintext: false,
            credentials: Some(ObjectName::new("infra", "login")),
        }
    }

    fn read(url: &str, entries: &Value) -> Result<SinkCredentials, CredentialsError> {
        let secret: Secret = serde_json::from_value(json!({"stringData": entries})).unwrap();
        SinkCredentials::read(&sink(url), Some(&secret))
    }

    fn all() -> Value {
        json!({
            "username": "gateway\n", "password": " CANARY ", "apiKey": "CANARY", "ca.crt": "ca", "tls.crt": "cert",
            "tls.key": "CANARY",
        })
    }

    #[test]
    fn a_sink_takes_what_it_has_a_use_for_and_leaves_the_rest() {
        let some = |text: &str| Some(text.to_owned());
        let pem = |text: &str| Some(text.as_bytes().to_vec());
        let plain =
            SinkCredentials { username: some("gateway"), password: some(" CANARY "), ..Default::default() };
        assert_eq!(read("etcd://127.0.0.1", &all()), Ok(plain.clone()));
        let tls = SinkCredentials { ca: pem("ca"), certificate: pem("cert"), key: pem("CANARY"), ..plain };
        assert_eq!(read("etcds://etcd:2379", &all()), Ok(tls.clone()));
        let api = SinkCredentials { username: None, password: None, api_key: some("CANARY"), ..tls };
        assert_eq!(read("admin+https://pingsix", &all()), Ok(api.clone()));
        let plain = SinkCredentials { api_key: some("CANARY"), ..Default::default() };
        assert_eq!(read("admin+http://127.0.0.1", &all()), Ok(plain));
        let nothing = SinkParameters { credentials: None, ..sink("etcd://127.0.0.1") };
        assert_eq!(SinkCredentials::read(&nothing, None), Ok(SinkCredentials::default()));
        assert!(!format!("{api:?}").contains("CANARY"));
    }

    #[test]
    fn missing_or_unusable_credentials_are_named_and_never_quoted() {
        let without = |entry: &str| {
            let mut all = all();
            all.as_object_mut().unwrap().remove(entry);
            all
        };
        let with = |entry: &str, text: &str| {
            let mut all = all();
            all[entry] = json!(text);
            all
        };
        for (url, entries, problem) in [
            ("etcd://a", without("password"), "which has an entry \"username\" and none \"password\""),
            ("etcd://a", without("username"), "which has an entry \"password\" and none \"username\""),
            ("etcds://a", without("ca.crt"), "which has no entry \"ca.crt\""),
            ("etcds://a", without("tls.key"), "which has an entry \"tls.crt\" and none \"tls.key\""),
            ("admin+https://a", without("tls.crt"), "which has an entry \"tls.key\" and none \"tls.crt\""),
            ("admin+http://a", without("apiKey"), "which has no entry \"apiKey\""),
            ("admin+http://a", with("apiKey", "\r\n"), "whose entry \"apiKey\" is empty"),
        ] {
            let error = read(url, &entries).unwrap_err().to_string();
            let expected =
                format!("PingsixProxy infra/edge names for its sink Secret infra/login, {problem}");
            assert_eq!(error, expected, "{url}");
        }
        let secret: Secret =
            serde_json::from_value(json!({"data": {"username": "/w==", "password": "/w=="}})).unwrap();
        let error = SinkCredentials::read(&sink("etcd://a"), Some(&secret)).unwrap_err().to_string();
        assert!(error.ends_with("whose entry \"username\" is not UTF-8"), "{error}");
        let error = SinkCredentials::read(&sink("etcd://a"), None).unwrap_err().to_string();
        assert!(error.ends_with("Secret infra/login, which does not exist"), "{error}");
    }
}
