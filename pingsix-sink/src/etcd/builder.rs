//! Options of clients of etcd.

use std::sync::Arc;
use std::time::Duration;

use super::EtcdSink;
use super::batch::{Limits, MIN_OPERATIONS};
use super::client::{Client, Credentials};
use super::endpoints::Endpoints;
use super::error::EtcdError;
use super::reader::EtcdReader;
use crate::client_tls::ClientTls;
use crate::desired::Scope;
use crate::error::SinkError;
use crate::resource::Keyring;

/// Options of a client of etcd: of an [`EtcdSink`], or of an [`EtcdReader`].
#[derive(Clone, Debug)]
pub struct Builder {
    endpoints: Vec<String>,
    tls: Option<ClientTls>,
    credentials: Option<Credentials>,
    timeout: Duration,
    connect_timeout: Duration,
    allow_plaintext_beyond_loopback: bool,
    limits: Limits,
    keyring: Option<Keyring>,
    is_watching: bool,
    max_bytes: usize,
}

impl Builder {
    /// Options for a cluster with these endpoints: `host:port`, or a URL with `http` or `https`.
    pub fn new<E: Into<String>>(endpoints: impl IntoIterator<Item = E>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            tls: None,
            credentials: None,
            timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(3),
            allow_plaintext_beyond_loopback: false,
            // etcd's defaults, less the bytes that etcd counts beside the request.
            limits: Limits { operations: 128, bytes: 1_536 * 1024 - 16 * 1024 },
            keyring: None,
            is_watching: true,
            max_bytes: 256 << 20,
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

    /// Authenticates as this user. The user of a sink must be able to read and write all keys under the scopes, and the
    /// user of a reader to read them; no other permission is needed.
    #[must_use]
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Some(Credentials { user: user.into(), password: password.into() });
        self
    }

    /// Timeout of a request to an endpoint: of a list, for example, or of the start of a watch. Default: 5 s.
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

    fn client(&self) -> Result<Arc<Client>, EtcdError> {
        let endpoints = Endpoints::new(&self.endpoints, self.tls.clone(), self.connect_timeout)?;
        if !self.allow_plaintext_beyond_loopback {
            endpoints.refuse_plaintext_beyond_loopback()?;
        }
        Ok(Arc::new(Client::new(endpoints, self.credentials.clone(), self.timeout)))
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
    /// [`EtcdError`] when an endpoint is not `host:port` or a URL of it, a file of the TLS options cannot be used, or
    /// plaintext would reach another machine.
    pub fn build(self) -> Result<EtcdSink, SinkError> {
        Ok(EtcdSink::of(self.client()?, self.limits, self.keyring, self.is_watching))
    }

    /// Byte limit of the content of a reader: of all keys and values, with 96 bytes more for each key, and of the message
    /// of a list. Larger content is refused with [`EtcdError::TooLarge`]. Default: 256 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Builds a reader of `scope`, which connects at the first call of [`changed`](EtcdReader::changed). A reader has no
    /// limits of transactions and no keyring.
    ///
    /// # Errors
    /// Those of [`build`](Self::build).
    pub fn reader(self, scope: Scope) -> Result<EtcdReader, EtcdError> {
        Ok(EtcdReader::new(self.client()?, scope, self.timeout, self.max_bytes))
    }
}
