//! The URLs of an etcd.

use std::fmt;

use super::{Builder, EtcdSink};
use crate::client_tls::ClientTls;
use crate::desired::{DocumentSet, Scope};
use crate::dyn_sink::DynSink;
use crate::factory::{Credential, Env, OpenError, Parameters, Query, SinkFactory, TargetError};
use crate::factory::{decoded, encoded};
use crate::resource::Keyring;

/// The environment variable with the password of an etcd user whose URL names none.
pub const ETCD_PASSWORD_VARIABLE: &str = "ETCD_PASSWORD";

/// The scheme with TLS.
const TLS: &str = "etcds://";

/// An etcd of another operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EtcdTarget {
    /// The members, at least one.
    endpoints: Vec<Endpoint>,
    /// The user for authentication.
    user: Option<EtcdUser>,
    /// The certificates; `None` for plaintext. The key of the client is `key`, and the name in the server's certificate,
    /// if that differs from the host, is `domain`.
    tls: Option<ClientTls>,
    /// Whether plaintext may leave the machine: `allow-plaintext`.
    allow_plaintext: bool,
    /// The keyring that encrypts secrets, an entry on each line: `keyring-env` or `keyring-file`.
    keyring: Option<Credential>,
    /// Limit of the operations of a transaction, if etcd's `--max-txn-ops` is not the default: `max-txn-ops`.
    max_txn_ops: Option<usize>,
}

/// Host and port of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// A name or an IP address; an IPv6 address has brackets.
    host: String,
    /// The port; 2379 unless given.
    port: u16,
}

/// The user for authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EtcdUser {
    /// The name.
    name: String,
    /// The password: `password-env`, `password-file`, or [`ETCD_PASSWORD_VARIABLE`].
    password: Credential,
}

const PORT: u16 = 2379;

impl EtcdTarget {
    fn builder(&self, env: Env<'_>) -> Result<Builder, OpenError> {
        let mut builder = EtcdSink::builder(self.endpoints.iter().map(ToString::to_string));
        if let Some(user) = &self.user {
            builder = builder.credentials(&user.name, user.password.read(env)?.expose());
        }
        if let Some(tls) = self.tls.clone() {
            builder = builder.tls(tls);
        }
        if self.allow_plaintext {
            builder = builder.allow_plaintext_beyond_loopback();
        }
        if let Some(keyring) = &self.keyring {
            builder = builder.keyring(Keyring::parse(keyring.read(env)?.expose())?);
        }
        if let Some(operations) = self.max_txn_ops {
            builder = builder.max_txn_ops(operations);
        }
        Ok(builder)
    }
}

impl SinkFactory for EtcdTarget {
    const SCHEMES: &'static [&'static str] = &["etcd://", TLS];
    const KIND: &'static str = "etcd";
    const IS_SERVER: bool = true;

    fn parse(
        scheme: &'static str,
        location: &str,
        parameters: &mut Parameters<'_>,
    ) -> Result<Self, TargetError> {
        let (user, hosts) = match location.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, location),
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
        let user = match parameters.credentials() {
            Some(credentials) => credentials.user()?.map(|(name, password)| EtcdUser { name, password }),
            None => user.map(|user| EtcdUser::parse(scheme, user, parameters)).transpose()?,
        };
        let mut tls = parameters.tls(TLS, "key")?;
        if let Some(tls) = &mut tls {
            tls.domain = parameters.parsed("domain", "a name")?;
        }
        Ok(Self {
            endpoints,
            user,
            allow_plaintext: tls.is_none() && parameters.flag("allow-plaintext")?,
            tls,
            keyring: parameters.optional_credential("keyring")?,
            max_txn_ops: parameters.parsed("max-txn-ops", "a number")?,
        })
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, query: &mut Query) -> fmt::Result {
        f.write_str(if self.tls.is_some() { TLS } else { "etcd://" })?;
        if let Some(user) = &self.user {
            // A name may contain the characters that end it.
            let name = encoded(&user.name).replace('@', "%40").replace(':', "%3A").replace('/', "%2F");
            write!(f, "{name}@")?;
            query.credential("password", &user.password, ETCD_PASSWORD_VARIABLE);
        }
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            write!(f, "{}{endpoint}", if index == 0 { "" } else { "," })?;
        }
        if let Some(tls) = &self.tls {
            query.tls(tls, "key");
            query.add("domain", tls.domain.clone());
        }
        query.flag("allow-plaintext", self.allow_plaintext);
        if let Some(keyring) = &self.keyring {
            query.credential("keyring", keyring, "");
        }
        query.add("max-txn-ops", self.max_txn_ops.map(|operations| operations.to_string()));
        Ok(())
    }

    async fn open(&self, env: Env<'_>) -> Result<DynSink, OpenError> {
        Ok(DynSink::new(self.builder(env)?.build()?))
    }

    async fn read(&self, scope: &Scope, env: Env<'_>) -> Result<DocumentSet, OpenError> {
        Ok(self.builder(env)?.without_watch().build()?.documents(scope).await?)
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

/// The error does not quote the text, because a misplaced password may be in it.
fn endpoint(scheme: &'static str, number: usize, text: &str) -> Result<Endpoint, TargetError> {
    let failure = |problem: &str| TargetError::part(scheme, &format!("host {number}"), problem);
    // A DNS name and an IPv4 address have no colon, and an IPv6 address has brackets.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (text, None),
    };
    let port = match port {
        None => PORT,
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => port,
            Ok(_) | Err(_) => return Err(failure("its port is not a number from 1 to 65535")),
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
        return Err(failure("expected HOST or HOST:PORT, IPv6 addresses in brackets"));
    }
    Ok(Endpoint { host: host.to_owned(), port })
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
