//! The registry of sinks: targets, chosen by a URL.
//!
//! | URL | target |
//! |---|---|
//! | `embedded:`, `embedded:?listen=127.0.0.1:2379` | the embedded etcd server |
//! | `etcd://[USER@]HOST:PORT[,HOST:PORT...]` | an etcd, in plaintext on this machine; `etcds://` over TLS |
//! | `admin+http://HOST:PORT`, `admin+https://HOST:PORT` | PingSIX's Admin API |
//! | `file:/PATH`, `file:/DIRECTORY/` | PingSIX's static configuration: one file for one scope, or one for each |
//!
//! Parameters follow a question mark; each value is percent-encoded where it has to be.
//! A URL never holds a secret: it names the environment variable or the file that does.
//! Parsing a URL reads neither; [`Target::open`] does.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::desired::{DocumentSet, Scope};
use crate::dyn_sink::DynSink;

pub use crate::admin::ADMIN_KEY_VARIABLE;
use crate::admin::AdminTarget;
use crate::embedded::EmbeddedTarget;
pub use crate::etcd::ETCD_PASSWORD_VARIABLE;
use crate::etcd::EtcdTarget;
pub use crate::factory::{CredentialPart, OpenError, ServerCredentials, TargetError};
use crate::factory::{Env, Parameters, Query, SinkFactory};
use crate::file::FileTarget;

/// Declares the sinks of a [`Target`], each in a line.
macro_rules! registry {
    ($($(#[$doc:meta])* $name:ident($factory:ty),)+) => {
        #[derive(Clone, Debug, PartialEq, Eq)]
        enum SinkTarget {
            $($(#[$doc])* $name($factory),)+
        }

        impl Target {
            /// All schemes, and whether their sinks are servers.
            fn schemes() -> impl Iterator<Item = (&'static str, bool)> {
                let all = [$((<$factory>::SCHEMES, <$factory>::IS_SERVER),)+];
                all.into_iter().flat_map(|(schemes, is_server)| schemes.iter().map(move |scheme| (*scheme, is_server)))
            }

            fn parse(
                scheme: &'static str,
                location: &str,
                mut parameters: Parameters<'_>,
            ) -> Result<Self, TargetError> {
                let target = match scheme {
                    $(scheme if <$factory>::SCHEMES.contains(&scheme) => {
                        SinkTarget::$name(<$factory>::parse(scheme, location, &mut parameters)?)
                    })+
                    _ => return Err(unknown(TargetError::Scheme, false)),
                };
                parameters.end()?;
                Ok(Self(target))
            }

            fn write(&self, f: &mut fmt::Formatter<'_>, query: &mut Query) -> fmt::Result {
                match &self.0 { $(SinkTarget::$name(target) => target.write(f, query),)+ }
            }

            /// The label in metrics: `embedded`, `etcd`, `admin` or `file`.
            pub const fn kind(&self) -> &'static str {
                match &self.0 { $(SinkTarget::$name(_) => <$factory>::KIND,)+ }
            }

            /// Opens the sink, in a Tokio runtime. A server connects with the first publication; only `file:` waits. `env`
            /// gives the value of an environment variable.
            ///
            /// # Errors
            /// [`OpenError`]. An embedded server cannot be opened by its URL alone.
            pub async fn open(&self, env: Env<'_>) -> Result<DynSink, OpenError> {
                match &self.0 { $(SinkTarget::$name(target) => target.open(env).await,)+ }
            }

            /// The published documents of a scope in the target; the call only reads.
            ///
            /// `env` gives the value of an environment variable. An embedded server is read over its port, in
            /// plaintext.
            ///
            /// # Errors
            /// [`OpenError`].
            pub async fn read(&self, scope: &Scope, env: Env<'_>) -> Result<DocumentSet, OpenError> {
                match &self.0 { $(SinkTarget::$name(target) => target.read(scope, env).await,)+ }
            }

            /// Whether the target holds one scope alone.
            pub fn is_for_one_scope(&self) -> bool {
                match &self.0 { $(SinkTarget::$name(target) => target.is_for_one_scope(),)+ }
            }
        }
    };
}

/// A target of publications. Parsed from a URL, and displayed as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target(SinkTarget);

registry! {
    /// The embedded etcd server.
    Embedded(EmbeddedTarget),
    /// An etcd of another operator.
    Etcd(EtcdTarget),
    /// PingSIX's Admin API.
    Admin(AdminTarget),
    /// PingSIX's static configuration.
    File(FileTarget),
}

impl Target {
    /// The embedded server, without an address.
    pub const fn embedded() -> Self {
        Self(SinkTarget::Embedded(EmbeddedTarget { listen: None }))
    }

    /// The address of an embedded server, if its URL has one.
    pub const fn listen(&self) -> Option<SocketAddr> {
        match &self.0 {
            SinkTarget::Embedded(target) => target.listen,
            SinkTarget::Etcd(_) | SinkTarget::Admin(_) | SinkTarget::File(_) => None,
        }
    }

    /// A server by its address, which is `etcd://`, `etcds://`, `admin+http://` or `admin+https://` with only hosts
    /// and ports. Credentials are values instead of parameters.
    ///
    /// # Errors
    /// [`TargetError`], with [`Missing`](TargetError::Missing) and [`Unusable`](TargetError::Unusable) for
    /// credentials.
    pub fn server(
        address: &str,
        credentials: &ServerCredentials,
        allow_plaintext: bool,
    ) -> Result<Self, TargetError> {
        let Some((scheme, location)) = split(address, true) else {
            return Err(unknown(TargetError::NoServer, true));
        };
        let location = location.strip_suffix('/').unwrap_or(location);
        if location.contains(['@', '/', '?', '#']) {
            return Err(TargetError::part(scheme, "host", "expected HOST or HOST:PORT and nothing else"));
        }
        Self::parse(scheme, location, Parameters::of(scheme, credentials, allow_plaintext))
    }
}

/// Splits a URL after its scheme; with `is_server`, the scheme must be a server's.
fn split(url: &str, is_server: bool) -> Option<(&'static str, &str)> {
    let mut schemes = Target::schemes().filter(|(_, of_server)| *of_server || !is_server);
    schemes.find_map(|(scheme, _)| Some((scheme, url.strip_prefix(scheme)?)))
}

fn unknown(error: fn(String) -> TargetError, is_server: bool) -> TargetError {
    let known = Target::schemes().filter(|(_, of_server)| *of_server || !is_server);
    error(known.map(|(scheme, _)| scheme).collect::<Vec<_>>().join(", "))
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(url: &str) -> Result<Self, TargetError> {
        let Some((scheme, rest)) = split(url, false) else { return Err(unknown(TargetError::Scheme, false)) };
        let (location, query) =
            rest.split_once('?').map_or((rest, None), |(location, query)| (location, Some(query)));
        if rest.contains('#') {
            return Err(TargetError::part(
                scheme,
                "#",
                "a target has no fragment; write %23 for the character",
            ));
        }
        Self::parse(scheme, location, Parameters::parse(scheme, query)?)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut query = Query::default();
        self.write(f, &mut query)?;
        query.fmt(f)
    }
}
