//! A server that others run, named by an address alone, with what it takes to be let in given as values: for programs that
//! have that from elsewhere than their environment and files.

use std::fmt;
use std::str::FromStr;

use http::HeaderValue;

use super::etcd::{Endpoint, endpoint};
use super::{SCHEMES, TargetError};
use crate::admin::{AdminSink, AdminUrl};
use crate::any::AnySink;
use crate::error::SinkError;
use crate::etcd::{ClientTls, EtcdSink};
use crate::pem::{self, IdentityFault, authorities};

/// Where a server is that others run: `etcd://`, `etcds://`, `admin+http://` or `admin+https://`, with hosts and ports, and
/// nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    place: Place,
    plaintext_beyond_loopback: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Etcd { endpoints: Vec<Endpoint>, is_tls: bool },
    Admin(AdminUrl),
}

/// What it takes to be let in. What a server has no use for is left alone. Never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Material {
    /// Who to authenticate as, at an etcd.
    pub user: Option<String>,
    /// With which password.
    pub password: Option<String>,
    /// What an Admin API takes for `X-API-KEY`, which it needs.
    pub api_key: Option<String>,
    /// The authorities that the server's certificate is verified with, in PEM, which TLS needs.
    pub ca: Option<Vec<u8>>,
    /// Over TLS, the chain that is shown to the server, in PEM.
    pub certificate: Option<Vec<u8>>,
    /// Its key, in PEM.
    pub key: Option<Vec<u8>>,
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Material").finish_non_exhaustive()
    }
}

/// A part of [`Material`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaterialPart {
    /// [`user`](field@Material::user)
    User,
    /// [`password`](field@Material::password)
    Password,
    /// [`api_key`](field@Material::api_key)
    ApiKey,
    /// [`ca`](field@Material::ca)
    Ca,
    /// [`certificate`](field@Material::certificate)
    Certificate,
    /// [`key`](field@Material::key)
    Key,
}

/// A server cannot be published to as things are. Never shows a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Something is missing that the server needs, or that another part is of no use without.
    #[error("{0} is missing")]
    Missing(MaterialPart),
    /// Something cannot be used.
    #[error("{part} {problem}")]
    Unusable {
        /// What.
        part: MaterialPart,
        /// What is wrong; its text continues a sentence that begins with the part.
        problem: &'static str,
    },
    /// The sink cannot be made.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

impl fmt::Display for MaterialPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "the user",
            Self::Password => "the password",
            Self::ApiKey => "the API key",
            Self::Ca => "the CA",
            Self::Certificate => "the client certificate",
            Self::Key => "the key of the client certificate",
        })
    }
}

/// A sink, and which kind it is, such as `etcd`.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Of a few; good for a label of a metric.
    pub kind: &'static str,
    /// The sink.
    pub sink: AnySink,
}

impl FromStr for Address {
    type Err = TargetError;

    fn from_str(url: &str) -> Result<Self, TargetError> {
        let is_server = |scheme: &&str| scheme.starts_with("etcd") || scheme.starts_with("admin");
        let found = SCHEMES.into_iter().filter(is_server).find_map(|scheme| {
            let place = url.strip_prefix(scheme)?;
            Some((scheme, place.strip_suffix('/').unwrap_or(place)))
        });
        let Some((scheme, place)) = found else { return Err(TargetError::NoServer) };
        if place.contains(['@', '/', '?', '#']) {
            return Err(TargetError::part(scheme, "host", "expected HOST or HOST:PORT and nothing else"));
        }
        let place = if scheme.starts_with("etcd") {
            let endpoints = (1..).zip(place.split(',')).map(|(number, host)| endpoint(scheme, number, host));
            Place::Etcd { endpoints: endpoints.collect::<Result<_, _>>()?, is_tls: scheme == "etcds://" }
        } else {
            let url = format!("{}{place}", scheme.trim_start_matches("admin+")).parse();
            let fault = |_| TargetError::part(scheme, "host", "expected HOST or HOST:PORT");
            Place::Admin(url.map_err(fault)?)
        };
        Ok(Self { place, plaintext_beyond_loopback: false })
    }
}

impl Address {
    /// Without TLS, sends what is secret in plaintext to other machines, for networks that encrypt by themselves.
    #[must_use]
    pub const fn allow_plaintext_beyond_loopback(mut self) -> Self {
        self.plaintext_beyond_loopback = true;
        self
    }

    /// The sink for it, which connects when something is published. It is made in a Tokio runtime.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn open(&self, material: &Material) -> Result<Opened, AddressError> {
        Ok(match &self.place {
            Place::Etcd { endpoints, is_tls } => {
                let mut builder = EtcdSink::builder(endpoints.iter().map(ToString::to_string));
                if let Some((user, password)) = material.user()? {
                    builder = builder.credentials(user, password);
                }
                if *is_tls {
                    let mut tls = ClientTls::ca_pem(material.ca()?);
                    if let Some((certificate, key)) = material.identity()? {
                        tls = tls.identity_pem(certificate, key);
                    }
                    builder = builder.tls(tls);
                }
                if self.plaintext_beyond_loopback {
                    builder = builder.allow_plaintext_beyond_loopback();
                }
                Opened { kind: "etcd", sink: AnySink::new(builder.build()?) }
            }
            Place::Admin(url) => {
                let mut builder = AdminSink::builder(url.clone(), material.api_key()?);
                if !url.is_plaintext() {
                    builder = builder.ca_pem(material.ca()?);
                    if let Some((certificate, key)) = material.identity()? {
                        builder = builder.identity_pem(certificate, key);
                    }
                }
                if self.plaintext_beyond_loopback {
                    builder = builder.allow_plaintext_beyond_loopback();
                }
                Opened { kind: "admin", sink: AnySink::new(builder.build().map_err(SinkError::from)?) }
            }
        })
    }
}

/// A chain, and its key, in PEM.
type Identity<'a> = (&'a [u8], &'a [u8]);

impl Material {
    fn user(&self) -> Result<Option<(&str, &str)>, AddressError> {
        both((MaterialPart::User, self.user.as_deref()), (MaterialPart::Password, self.password.as_deref()))
    }

    fn api_key(&self) -> Result<HeaderValue, AddressError> {
        let key = self.api_key.as_deref().ok_or(AddressError::Missing(MaterialPart::ApiKey))?;
        let problem = "cannot be the value of a header";
        HeaderValue::from_str(key).map_err(|_| AddressError::Unusable { part: MaterialPart::ApiKey, problem })
    }

    fn ca(&self) -> Result<&[u8], AddressError> {
        let pem = self.ca.as_deref().ok_or(AddressError::Missing(MaterialPart::Ca))?;
        match authorities(pem) {
            Ok(_) => Ok(pem),
            Err(fault) => Err(AddressError::Unusable { part: MaterialPart::Ca, problem: fault.as_str() }),
        }
    }

    fn identity(&self) -> Result<Option<Identity<'_>>, AddressError> {
        let certificate = (MaterialPart::Certificate, self.certificate.as_deref());
        let Some((certificate, key)) = both(certificate, (MaterialPart::Key, self.key.as_deref()))? else {
            return Ok(None);
        };
        match pem::identity(certificate, key) {
            Ok(_) => Ok(Some((certificate, key))),
            Err(IdentityFault::Certificate(problem)) => {
                Err(AddressError::Unusable { part: MaterialPart::Certificate, problem })
            }
            Err(IdentityFault::Key(problem)) => {
                Err(AddressError::Unusable { part: MaterialPart::Key, problem })
            }
        }
    }
}

/// Two parts of which none is of use without the other.
fn both<'a, T: ?Sized>(
    (part, value): (MaterialPart, Option<&'a T>),
    (other_part, other): (MaterialPart, Option<&'a T>),
) -> Result<Option<(&'a T, &'a T)>, AddressError> {
    match (value, other) {
        (Some(value), Some(other)) => Ok(Some((value, other))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(AddressError::Missing(other_part)),
        (None, Some(_)) => Err(AddressError::Missing(part)),
    }
}
