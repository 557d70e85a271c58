//! Options of an [`EtcdReader`].

use std::time::Duration;

use super::EtcdReader;
use crate::desired::Scope;
use crate::etcd::client::{Client, Credentials};
use crate::etcd::endpoints::Endpoints;
use crate::etcd::error::EtcdError;
use crate::etcd::tls::ClientTls;

/// Options of an [`EtcdReader`].
#[derive(Clone, Debug)]
pub struct ReaderBuilder {
    endpoints: Vec<String>,
    scope: Scope,
    tls: Option<ClientTls>,
    credentials: Option<Credentials>,
    timeout: Duration,
    connect_timeout: Duration,
    max_bytes: usize,
    allow_plaintext_beyond_loopback: bool,
}

impl ReaderBuilder {
    pub(super) fn new(endpoints: Vec<String>, scope: Scope) -> Self {
        Self {
            endpoints,
            scope,
            tls: None,
            credentials: None,
            timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(3),
            max_bytes: 256 << 20,
            allow_plaintext_beyond_loopback: false,
        }
    }

    /// Connects to all endpoints over TLS. Default: plaintext, to loopback addresses.
    #[must_use]
    pub fn tls(mut self, tls: ClientTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Allows plaintext to other machines, for networks with encryption of their own. The password and private keys
    /// are then sent unencrypted.
    #[must_use]
    pub fn allow_plaintext_beyond_loopback(mut self) -> Self {
        self.allow_plaintext_beyond_loopback = true;
        self
    }

    /// Authenticates as this user, who must be able to read all keys of the scope.
    #[must_use]
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Some(Credentials { user: user.into(), password: password.into() });
        self
    }

    /// Timeout of a page of a list, and of the start of a watch. Default: 5 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Timeout of a connection. Default: 3 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Byte limit of all keys and values, with 96 bytes more for each key. Larger content is refused with
    /// [`EtcdError::TooLarge`]. Default: 256 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Builds the reader, which connects at the first call of [`changed`](EtcdReader::changed).
    ///
    /// # Errors
    /// [`EtcdError`] when an endpoint is not `host:port` or a URL of it, a file of the TLS options cannot be used, or
    /// plaintext would reach another machine.
    pub fn build(self) -> Result<EtcdReader, EtcdError> {
        let endpoints = Endpoints::new(&self.endpoints, self.tls, self.connect_timeout)?;
        if !self.allow_plaintext_beyond_loopback {
            endpoints.refuse_plaintext_beyond_loopback()?;
        }
        let client = Client::new(endpoints, self.credentials, self.timeout);
        Ok(EtcdReader::new(client, self.scope, self.timeout, self.max_bytes))
    }
}
