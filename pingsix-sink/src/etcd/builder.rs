//! The options of an [`EtcdSink`].

use std::sync::Arc;
use std::time::Duration;

use super::EtcdSink;
use super::batch::{Limits, MIN_OPERATIONS};
use super::client::{Client, Credentials};
use super::endpoints::Endpoints;
use super::tls::ClientTls;
use crate::error::SinkError;
use crate::resource::Keyring;

/// Collects the options of an [`EtcdSink`].
#[derive(Clone, Debug)]
pub struct Builder {
    endpoints: Vec<String>,
    tls: Option<ClientTls>,
    credentials: Option<Credentials>,
    timeout: Duration,
    connect_timeout: Duration,
    limits: Limits,
    keyring: Option<Keyring>,
    is_watching: bool,
    allow_plaintext_beyond_loopback: bool,
}

impl Builder {
    pub(super) fn new(endpoints: Vec<String>) -> Self {
        Self {
            endpoints,
            tls: None,
            credentials: None,
            timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(3),
            // What etcd takes by default, less what it counts beside the request.
            limits: Limits { operations: 128, bytes: 1_536 * 1024 - 16 * 1024 },
            keyring: None,
            is_watching: true,
            allow_plaintext_beyond_loopback: false,
        }
    }

    /// Talks TLS to all endpoints. Default: plaintext, to loopback addresses.
    #[must_use]
    pub fn tls(mut self, tls: ClientTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Without TLS, sends the password and private keys to other machines in plaintext, for networks that encrypt by
    /// themselves.
    #[must_use]
    pub fn allow_plaintext_beyond_loopback(mut self) -> Self {
        self.allow_plaintext_beyond_loopback = true;
        self
    }

    /// Authenticates as this user, who needs to read and write everything under the scopes and nothing else.
    #[must_use]
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Some(Credentials { user: user.into(), password: password.into() });
        self
    }

    /// How long an endpoint may take to answer a request. Default: 5 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long a connection may take to be made. Default: 3 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The most operations of a transaction, at least 3: etcd's `--max-txn-ops`. Default: 128, as in etcd.
    ///
    /// One operation is for the guard, and up to 16 are for the record of what is ours.
    #[must_use]
    pub fn max_txn_ops(mut self, operations: usize) -> Self {
        self.limits.operations = operations.max(MIN_OPERATIONS);
        self
    }

    /// The most bytes of a transaction, a little less than etcd's `--max-request-bytes`.
    /// Default: 16 KiB less than etcd's, which is 1.5 MiB.
    #[must_use]
    pub fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Encrypts the secrets of documents, for PingSIX instances whose `data_encryption.keyring` has the same entries.
    /// Default: they lie in etcd in plaintext.
    #[must_use]
    pub fn keyring(mut self, keyring: Keyring) -> Self {
        self.keyring = Some(keyring);
        self
    }

    /// Keeps no watch: others' changes are noticed by the next publication, which reads the scope each time.
    /// For programs that publish once and end.
    #[must_use]
    pub fn without_watch(mut self) -> Self {
        self.is_watching = false;
        self
    }

    /// Makes a sink, which connects when something is published.
    ///
    /// # Errors
    /// [`EtcdError`](super::EtcdError) when an endpoint is not `host:port` or a URL of it, a file of the TLS options cannot be used,
    /// or an endpoint of another machine would be talked to in plaintext.
    pub fn build(self) -> Result<EtcdSink, SinkError> {
        let endpoints = Endpoints::new(&self.endpoints, self.tls, self.connect_timeout)?;
        if !self.allow_plaintext_beyond_loopback {
            endpoints.refuse_plaintext_beyond_loopback()?;
        }
        let client = Client::new(endpoints, self.credentials, self.timeout);
        Ok(EtcdSink::of(Arc::new(client), self.limits, self.keyring, self.is_watching))
    }
}
