//! Where to publish, chosen by a URL.
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
//! Reading a URL touches neither; [`Credential::read`] does.

mod address;
mod credential;
mod error;
mod etcd;
mod parameters;
mod read;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::admin::{AdminUrl, AdminUrlError};
use crate::file::Place;

pub use address::{Address, AddressError, Material, MaterialPart, Opened};
pub use credential::{Credential, CredentialError, Secret};
pub use error::TargetError;
pub use etcd::{Endpoint, EtcdTarget, EtcdTls, EtcdUser};
use parameters::{Parameters, Query, decoded, encoded};
pub use read::ReadError;

/// Where to publish. Parsed from a URL, and shown as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The embedded etcd server.
    Embedded {
        /// Where it listens, if not where the program says.
        listen: Option<SocketAddr>,
    },
    /// An etcd that somebody else runs.
    Etcd(EtcdTarget),
    /// PingSIX's Admin API.
    Admin(AdminTarget),
    /// PingSIX's static configuration.
    File(FileTarget),
}

/// PingSIX's Admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminTarget {
    /// The address.
    pub url: AdminUrl,
    /// Where the API key is: `key-env`, `key-file`, or [`ADMIN_KEY_VARIABLE`].
    pub api_key: Credential,
    /// The authorities for https: `ca`.
    pub ca_file: Option<PathBuf>,
    /// The certificate that is shown over https, and its key: `cert` and `cert-key`.
    pub client: Option<(PathBuf, PathBuf)>,
    /// Whether keys may leave the machine in plaintext: `allow-plaintext`.
    pub allow_plaintext: bool,
}

/// PingSIX's static configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTarget {
    /// One file, or with a slash at the end one for each scope.
    pub place: Place,
    /// The configuration that documents are added to: `base`.
    pub base: Option<PathBuf>,
}

/// The environment variable that holds the API key when a URL names none.
pub const ADMIN_KEY_VARIABLE: &str = "PINGSIX_ADMIN_KEY";

/// The environment variable that holds the password of an etcd user when a URL names none.
pub const ETCD_PASSWORD_VARIABLE: &str = "ETCD_PASSWORD";

/// The schemes as they are written.
const SCHEMES: [&str; 6] = ["embedded:", "etcd://", "etcds://", "admin+http://", "admin+https://", "file:"];

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(url: &str) -> Result<Self, TargetError> {
        let Some((scheme, rest)) =
            SCHEMES.into_iter().find_map(|scheme| Some((scheme, url.strip_prefix(scheme)?)))
        else {
            return Err(TargetError::Scheme);
        };
        let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
        if place.contains('#') || query.is_some_and(|query| query.contains('#')) {
            return Err(TargetError::part(
                scheme,
                "#",
                "a target has no fragment; write %23 for the character",
            ));
        }
        let mut parameters = Parameters::parse(scheme, query)?;
        let target = match scheme {
            "embedded:" => {
                nothing(scheme, place)?;
                Self::Embedded { listen: parameters.parsed("listen", "an IP address with a port")? }
            }
            "etcd://" => Self::Etcd(EtcdTarget::parse(scheme, place, false, &mut parameters)?),
            "etcds://" => Self::Etcd(EtcdTarget::parse(scheme, place, true, &mut parameters)?),
            "file:" => Self::File(FileTarget::parse(scheme, place, &mut parameters)?),
            _ => Self::Admin(AdminTarget::parse(scheme, place, &mut parameters)?),
        };
        parameters.end()?;
        Ok(target)
    }
}

/// What has no place has nothing after its scheme.
fn nothing(scheme: &'static str, place: &str) -> Result<(), TargetError> {
    if place.is_empty() {
        return Ok(());
    }
    Err(TargetError::part(scheme, "path", "there is none; parameters follow a question mark"))
}

impl AdminTarget {
    fn parse(
        scheme: &'static str,
        place: &str,
        parameters: &mut Parameters<'_>,
    ) -> Result<Self, TargetError> {
        if place.contains('@') {
            return Err(TargetError::Password { scheme, parameter: "key" });
        }
        let plain = scheme.trim_start_matches("admin+");
        let url = format!("{plain}{place}").parse().map_err(|error| match error {
            AdminUrlError::Path => TargetError::part(scheme, "path", "there is none; PingSIX's is known"),
            AdminUrlError::Host
            | AdminUrlError::NotAUrl
            | AdminUrlError::Scheme
            | AdminUrlError::UserInfo => TargetError::part(scheme, "host", "expected HOST or HOST:PORT"),
        })?;
        let target = Self {
            url,
            api_key: parameters.credential("key", ADMIN_KEY_VARIABLE)?,
            ca_file: parameters.path("ca")?,
            client: match (parameters.path("cert")?, parameters.path("cert-key")?) {
                (Some(cert), Some(key)) => Some((cert, key)),
                (None, None) => None,
                (Some(_), None) => {
                    return Err(TargetError::parameter(scheme, "cert-key", "missing beside cert"));
                }
                (None, Some(_)) => {
                    return Err(TargetError::parameter(scheme, "cert", "missing beside cert-key"));
                }
            },
            allow_plaintext: parameters.flag("allow-plaintext")?,
        };
        if target.client.is_some() && target.url.is_plaintext() {
            return Err(TargetError::parameter(scheme, "cert", "only admin+https:// has one"));
        }
        match (&target.ca_file, target.url.is_plaintext()) {
            (Some(_), true) => Err(TargetError::parameter(scheme, "ca", "only admin+https:// has one")),
            (None, false) => Err(TargetError::parameter(
                scheme,
                "ca",
                "missing: name a file with the authorities that the server's certificate is verified with",
            )),
            (Some(_), false) | (None, true) => Ok(target),
        }
    }
}

impl FileTarget {
    fn parse(
        scheme: &'static str,
        place: &str,
        parameters: &mut Parameters<'_>,
    ) -> Result<Self, TargetError> {
        // `file:///path` is the same as `file:/path`; an authority would be another machine.
        let path = match place.strip_prefix("//") {
            Some(path) if path.starts_with('/') => path,
            Some(_) => {
                return Err(TargetError::part(
                    scheme,
                    "host",
                    "files of this machine alone can be written; use file:/PATH",
                ));
            }
            None => place,
        };
        let path = decoded(path)
            .ok_or_else(|| TargetError::part(scheme, "path", "its percent-encoding is not UTF-8"))?;
        // Two slashes at the beginning would be shown as those of an authority.
        let rooted = path.trim_start_matches('/');
        let path = if rooted.len() < path.len() { format!("/{rooted}") } else { path };
        let place = match path.trim_end_matches('/') {
            "" if path.is_empty() => return Err(TargetError::part(scheme, "path", "missing")),
            "" => return Err(TargetError::part(scheme, "path", "the root directory is no place for them")),
            directory if directory.len() < path.len() => Place::Directory(directory.into()),
            file => Place::File(file.into()),
        };
        Ok(Self { place, base: parameters.path("base")? })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut query = Query::default();
        match self {
            Self::Embedded { listen } => {
                f.write_str("embedded:")?;
                query.add("listen", listen.map(|listen| listen.to_string()));
            }
            Self::Etcd(target) => target.show(f, &mut query)?,
            Self::Admin(target) => {
                write!(f, "admin+{}", target.url)?;
                query.credential("key", &target.api_key, ADMIN_KEY_VARIABLE);
                query.path("ca", target.ca_file.as_deref());
                if let Some((cert, key)) = &target.client {
                    query.path("cert", Some(cert));
                    query.path("cert-key", Some(key));
                }
                query.flag("allow-plaintext", target.allow_plaintext);
            }
            Self::File(target) => {
                let (path, slash) = match &target.place {
                    Place::File(path) => (path, ""),
                    Place::Directory(path) => (path, "/"),
                };
                write!(f, "file:{}{slash}", shown(path))?;
                query.path("base", target.base.as_deref());
            }
        }
        query.fmt(f)
    }
}

fn shown(path: &Path) -> String {
    encoded(&path.to_string_lossy())
}
