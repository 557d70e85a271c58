//! Options of an [`EtcdReader`].

use super::EtcdReader;
use crate::desired::Scope;
use crate::etcd::builder::Builder;
use crate::etcd::error::EtcdError;

/// Options of an [`EtcdReader`].
pub type ReaderBuilder = Builder<ReaderOptions>;

/// The options that an [`EtcdReader`] alone has.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    scope: Scope,
    max_bytes: usize,
}

impl ReaderBuilder {
    pub(super) fn of(endpoints: Vec<String>, scope: Scope) -> Self {
        Self::with(endpoints, ReaderOptions { scope, max_bytes: 256 << 20 })
    }

    /// Byte limit of all keys and values, with 96 bytes more for each key. Larger content is refused with
    /// [`EtcdError::TooLarge`]. Default: 256 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.own.max_bytes = bytes;
        self
    }

    /// Builds the reader, which connects at the first call of [`changed`](EtcdReader::changed).
    ///
    /// # Errors
    /// [`EtcdError`] when an endpoint is not `host:port` or a URL of it, a file of the TLS options cannot be used, or
    /// plaintext would reach another machine.
    pub fn build(self) -> Result<EtcdReader, EtcdError> {
        let timeout = self.timeout;
        let (client, ReaderOptions { scope, max_bytes }) = self.client()?;
        Ok(EtcdReader::new(client, scope, timeout, max_bytes))
    }
}
