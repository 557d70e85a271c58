//! An etcd that somebody else runs.

use std::fmt;
use std::path::PathBuf;

use super::parameters::{Parameters, Query, decoded, encoded};
use super::{Credential, ETCD_PASSWORD_VARIABLE, TargetError};

/// An etcd that somebody else runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdTarget {
    /// The members, at least one.
    pub endpoints: Vec<Endpoint>,
    /// Who to authenticate as.
    pub user: Option<EtcdUser>,
    /// How the connections are secured; `None` for plaintext.
    pub tls: Option<EtcdTls>,
    /// Whether plaintext may leave the machine: `allow-plaintext`.
    pub allow_plaintext: bool,
    /// Where the keyring is that secrets are encrypted with, an entry on each line: `keyring-env` or `keyring-file`.
    pub keyring: Option<Credential>,
    /// The most operations of a transaction, if etcd's `--max-txn-ops` is not the default: `max-txn-ops`.
    pub max_txn_ops: Option<usize>,
}

/// Host and port of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an IP address; one of IPv6 stands in brackets.
    pub host: String,
    /// The port; 2379 unless given.
    pub port: u16,
}

/// Who to authenticate as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdUser {
    /// The name.
    pub name: String,
    /// Where the password is: `password-env`, `password-file`, or [`ETCD_PASSWORD_VARIABLE`].
    pub password: Credential,
}

/// How connections to etcd are secured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdTls {
    /// The authorities that the server's certificate is verified with: `ca`.
    pub ca_file: PathBuf,
    /// Certificate chain and key that are shown to the server: `cert` and `key`.
    pub client: Option<(PathBuf, PathBuf)>,
    /// The name the server's certificate must be for, if not the host: `domain`.
    pub domain: Option<String>,
}

const PORT: u16 = 2379;

impl EtcdTarget {
    pub(super) fn parse(
        scheme: &'static str,
        place: &str,
        tls: bool,
        parameters: &mut Parameters<'_>,
    ) -> Result<Self, TargetError> {
        let (user, hosts) = match place.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, place),
        };
        let hosts = hosts.strip_suffix('/').unwrap_or(hosts);
        if hosts.contains('/') {
            return Err(TargetError::part(
                scheme,
                "path",
                "there is none; each data plane has a prefix of its own",
            ));
        }
        let endpoints = (1..)
            .zip(hosts.split(','))
            .map(|(number, host)| endpoint(scheme, number, host))
            .collect::<Result<_, _>>()?;
        let user = user.map(|user| EtcdUser::parse(scheme, user, parameters)).transpose()?;
        Ok(Self {
            endpoints,
            user,
            tls: EtcdTls::parse(scheme, tls, parameters)?,
            allow_plaintext: !tls && parameters.flag("allow-plaintext")?,
            keyring: parameters.optional_credential("keyring")?,
            max_txn_ops: parameters.parsed("max-txn-ops", "a number")?,
        })
    }

    pub(super) fn show(&self, f: &mut fmt::Formatter<'_>, query: &mut Query) -> fmt::Result {
        f.write_str(if self.tls.is_some() { "etcds://" } else { "etcd://" })?;
        if let Some(user) = &self.user {
            // A name may hold what would end it.
            let name = encoded(&user.name).replace('@', "%40").replace(':', "%3A").replace('/', "%2F");
            write!(f, "{name}@")?;
            query.credential("password", &user.password, ETCD_PASSWORD_VARIABLE);
        }
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            write!(f, "{}{endpoint}", if index == 0 { "" } else { "," })?;
        }
        if let Some(tls) = &self.tls {
            query.path("ca", Some(&tls.ca_file));
            if let Some((cert, key)) = &tls.client {
                query.path("cert", Some(cert));
                query.path("key", Some(key));
            }
            query.add("domain", tls.domain.clone());
        }
        query.flag("allow-plaintext", self.allow_plaintext);
        if let Some(keyring) = &self.keyring {
            query.credential("keyring", keyring, "");
        }
        query.add("max-txn-ops", self.max_txn_ops.map(|operations| operations.to_string()));
        Ok(())
    }
}

impl EtcdUser {
    fn parse(scheme: &'static str, user: &str, parameters: &mut Parameters<'_>) -> Result<Self, TargetError> {
        if user.contains(':') {
            return Err(TargetError::Password { scheme, parameter: "password" });
        }
        match decoded(user) {
            Some(name) if !name.is_empty() => {
                Ok(Self { name, password: parameters.credential("password", ETCD_PASSWORD_VARIABLE)? })
            }
            Some(_) => Err(TargetError::part(scheme, "user", "it is empty")),
            None => Err(TargetError::part(scheme, "user", "its percent-encoding is not UTF-8")),
        }
    }
}

impl EtcdTls {
    fn parse(
        scheme: &'static str,
        tls: bool,
        parameters: &mut Parameters<'_>,
    ) -> Result<Option<Self>, TargetError> {
        if !tls {
            let given = ["ca", "cert", "key", "domain"].into_iter().find(|name| parameters.has(name));
            return match given {
                Some(name) => Err(TargetError::parameter(scheme, name, "only etcds:// has one")),
                None => Ok(None),
            };
        }
        let Some(ca_file) = parameters.path("ca")? else {
            return Err(TargetError::parameter(
                scheme,
                "ca",
                "missing: name a file with the authorities that the servers' certificates are verified with",
            ));
        };
        let client = match (parameters.path("cert")?, parameters.path("key")?) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            (Some(_), None) => return Err(TargetError::parameter(scheme, "key", "missing beside cert")),
            (None, Some(_)) => return Err(TargetError::parameter(scheme, "cert", "missing beside key")),
        };
        Ok(Some(Self { ca_file, client, domain: parameters.parsed("domain", "a name")? }))
    }
}

/// The text is not shown: where a port should be, somebody may have written a password.
pub(super) fn endpoint(scheme: &'static str, number: usize, text: &str) -> Result<Endpoint, TargetError> {
    let fault = |problem: &str| TargetError::part(scheme, &format!("host {number}"), problem);
    // A name of DNS and an IPv4 address have no colon, and an IPv6 address stands in brackets.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (text, None),
    };
    let port = match port {
        None => PORT,
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => port,
            Ok(_) | Err(_) => return Err(fault("its port is not a number from 1 to 65535")),
        },
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let valid = match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        }
    };
    if !valid {
        return Err(fault("expected HOST or HOST:PORT, IPv6 addresses in brackets"));
    }
    Ok(Endpoint { host: host.to_owned(), port })
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
