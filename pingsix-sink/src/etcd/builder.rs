//! Options of an [`EtcdSink`].

use std::sync::Arc;
use std::time::Duration;

use super::EtcdSink;
use super::batch::{Limits, MIN_OPERATIONS};
use super::client::{Client, Credentials};
use super::endpoints::Endpoints;
use super::tls::ClientTls;
use crate::error::SinkError;
use crate::resource::Keyring;

/// Options of an [`EtcdSink`].
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
            // etcd's defaults, less the bytes that etcd counts beside the request.
            limits: Limits { operations: 128, bytes: 1_536 * 1024 - 16 * 1024 },
            keyring: None,
            is_watching: true,
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

    /// Authenticates as this user. The user must be able to read and write all keys under the scopes, and needs no
    /// other permission.
    #[must_use]
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Some(Credentials { user: user.into(), password: password.into() });
        self
    }

    /// Timeout of a request to an endpoint. Default: 5 s.
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

    /// Limit of the operations of a transaction, at least 3: etcd's `--max-txn-ops`. Default: 128, as in etcd.
    ///
    /// One operation is for the guard, and up to 16 are for the ownership records.
    #[must_use]
    pub fn max_txn_ops(mut self, operations: usize) -> Self {
        self.limits.operations = operations.max(MIN_OPERATIONS);
        self
    }

    /// Byte limit of a transaction, a little less than etcd's `--max-request-bytes`. Default: 16 KiB less than
    /// etcd's, which is 1.5 MiB.
    #[must_use]
    pub fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Encrypts the secrets of documents, for PingSIX instances whose `data_encryption.keyring` has the same entries.
    /// Default: plaintext in etcd.
    #[must_use]
    pub fn keyring(mut self, keyring: Keyring) -> Self {
        self.keyring = Some(keyring);
        self
    }

    /// Turns the watch off: each publication reads the scope and so finds foreign changes. For programs that publish
    /// once and end.
    #[must_use]
    pub fn without_watch(mut self) -> Self {
        self.is_watching = false;
        self
    }

    /// Builds the sink, which connects at the first publication.
    ///
    /// # Errors
    /// [`EtcdError`](super::EtcdError) when an endpoint is not `host:port` or a URL of it, a file of the TLS options
    /// cannot be used, or plaintext would reach another machine.
    pub fn build(self) -> Result<EtcdSink, SinkError> {
        let endpoints = Endpoints::new(&self.endpoints, self.tls, self.connect_timeout)?;
        if !self.allow_plaintext_beyond_loopback {
            endpoints.refuse_plaintext_beyond_loopback()?;
        }
        let client = Client::new(endpoints, self.credentials, self.timeout);
        Ok(EtcdSink::of(Arc::new(client), self.limits, self.keyring, self.is_watching))
    }
}
