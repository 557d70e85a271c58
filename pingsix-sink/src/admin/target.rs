//! The URLs of an Admin API.

use std::fmt;

use http::HeaderValue;

use super::url::{AdminUrl, AdminUrlError};
use super::{AdminSink, Builder};
use crate::client_tls::ClientTls;
use crate::desired::{DocumentSet, Scope};
use crate::dyn_sink::DynSink;
use crate::factory::{Credential, Env, OpenError, Parameters, Query, SinkFactory, TargetError};

/// Environment variable of the API key for a URL without one.
pub const ADMIN_KEY_VARIABLE: &str = "PINGSIX_ADMIN_KEY";

/// The scheme with TLS.
const TLS: &str = "admin+https://";

/// PingSIX's Admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdminTarget {
    /// The address.
    url: AdminUrl,
    /// The API key: `key-env`, `key-file`, or [`ADMIN_KEY_VARIABLE`].
    api_key: Credential,
    /// The certificates; `None` for plaintext. The key of the client is `cert-key`.
    tls: Option<ClientTls>,
    /// Whether keys may leave the machine in plaintext: `allow-plaintext`.
    allow_plaintext: bool,
}

impl AdminTarget {
    fn sink(&self, env: Env<'_>) -> Result<AdminSink, OpenError> {
        let key = self.api_key.read(env)?;
        let key = HeaderValue::from_str(key.expose()).map_err(|_| OpenError::ApiKey)?;
        let mut builder = Builder { tls: self.tls.clone(), ..Builder::of(Ok(self.url.clone()), key) };
        if self.allow_plaintext {
            builder = builder.allow_plaintext_beyond_loopback();
        }
        Ok(builder.build()?)
    }
}

impl SinkFactory for AdminTarget {
    const SCHEMES: &'static [&'static str] = &["admin+http://", TLS];
    const KIND: &'static str = "admin";
    const IS_SERVER: bool = true;

    fn parse(
        scheme: &'static str,
        location: &str,
        parameters: &mut Parameters<'_>,
    ) -> Result<Self, TargetError> {
        if location.contains('@') {
            return Err(TargetError::Password { scheme, parameter: "key" });
        }
        let plain = scheme.trim_start_matches("admin+");
        let url = format!("{plain}{location}").parse().map_err(|error| match error {
            AdminUrlError::Path => TargetError::part(scheme, "path", "there is none; PingSIX's is known"),
            AdminUrlError::Host
            | AdminUrlError::NotAUrl
            | AdminUrlError::Scheme
            | AdminUrlError::UserInfo => TargetError::part(scheme, "host", "expected HOST or HOST:PORT"),
        })?;
        let api_key = match parameters.credentials() {
            Some(credentials) => credentials.api_key()?,
            None => parameters.credential("key", ADMIN_KEY_VARIABLE)?,
        };
        let tls = parameters.tls(TLS, "cert-key")?;
        Ok(Self { url, api_key, tls, allow_plaintext: parameters.flag("allow-plaintext")? })
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, query: &mut Query) -> fmt::Result {
        write!(f, "admin+{}", self.url)?;
        query.credential("key", &self.api_key, ADMIN_KEY_VARIABLE);
        if let Some(tls) = &self.tls {
            query.tls(tls, "cert-key");
        }
        query.flag("allow-plaintext", self.allow_plaintext);
        Ok(())
    }

    async fn open(&self, env: Env<'_>) -> Result<DynSink, OpenError> {
        Ok(DynSink::new(self.sink(env)?))
    }

    async fn read(&self, scope: &Scope, env: Env<'_>) -> Result<DocumentSet, OpenError> {
        Ok(self.sink(env)?.documents(scope).await?)
    }

    fn is_for_one_scope(&self) -> bool {
        true
    }
}
