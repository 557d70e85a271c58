//! What a target holds, read without writing anything.

use std::error::Error as _;
use std::net::SocketAddr;
use std::time::Duration;

use http::HeaderValue;
use tonic::transport::Endpoint;
use tonic::{Code, Status};

use super::{AdminTarget, CredentialError, EtcdTarget, FileTarget, Target};
use crate::admin::AdminSink;
use crate::desired::{DocumentSet, Scope};
use crate::document::{Document, Key, OrderHint, Owner};
use crate::embedded::UNKNOWN_SCOPE;
use crate::error::SinkError;
use crate::etcd::{self, ClientTls, EtcdSink};
use crate::file::FileSink;
use crate::proto::etcdserverpb::RangeRequest;
use crate::proto::etcdserverpb::kv_client::KvClient;
use crate::resource::{Keyring, KeyringError};

/// A target could not be read. Never shows a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A secret is not where it should be.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The keyring holds no key.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// The API key holds characters that no header may.
    #[error("the API key cannot be the value of a header")]
    ApiKey,
    /// The sink could not read it.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// There is no connection to an embedded server; one over TLS ends those that are not.
    #[error("cannot read from {address}: an embedded server is read back in plaintext alone, not over TLS")]
    Connect {
        /// Where it should listen.
        address: SocketAddr,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An embedded server refused, and says why.
    #[error("the server at {address} answers {:?}: {}", status.code(), status.message())]
    Status {
        /// Where it listens.
        address: SocketAddr,
        /// What it says.
        status: Box<Status>,
    },
}

/// How long a connection, and each request, may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a scope may hold at most. PingSIX itself reads 4 MiB.
const READ_LIMIT: usize = 64 * 1024 * 1024;

impl Target {
    /// The documents of a scope that were published to the target, as they are now; nothing is written.
    ///
    /// `env` gives the value of an environment variable. An embedded server is read over its port, in plaintext;
    /// `listen` is where the URL does not say it.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn read(
        &self,
        scope: &Scope,
        listen: SocketAddr,
        env: impl Fn(&str) -> Option<String> + Send,
    ) -> Result<DocumentSet, ReadError> {
        match self {
            Self::Embedded { listen: own } => list(own.unwrap_or(listen), scope).await,
            Self::Etcd(target) => Ok(target.builder(env)?.without_watch().build()?.documents(scope).await?),
            Self::Admin(target) => Ok(target.open(env)?.documents(scope).await?),
            Self::File(target) => Ok(target.open().await?.documents(scope).await?.unwrap_or_default()),
        }
    }

    /// Whether the target is for one scope alone.
    pub const fn is_for_one_scope(&self) -> bool {
        match self {
            Self::Embedded { .. } | Self::Etcd(_) => false,
            Self::Admin(_) => true,
            Self::File(target) => matches!(target.place, crate::file::Place::File(_)),
        }
    }
}

impl AdminTarget {
    /// The sink for it; `env` gives the value of an environment variable.
    ///
    /// # Errors
    /// [`ReadError`], when the API key or the authorities cannot be read.
    pub fn open(&self, env: impl Fn(&str) -> Option<String>) -> Result<AdminSink, ReadError> {
        let key = self.api_key.read(env)?;
        let key = HeaderValue::from_str(key.expose()).map_err(|_| ReadError::ApiKey)?;
        let mut builder = AdminSink::builder(self.url.clone(), key);
        if let Some(path) = &self.ca_file {
            builder = builder.ca_file(path);
        }
        if let Some((certificate, key)) = &self.client {
            builder = builder.identity_files(certificate, key);
        }
        if self.allow_plaintext {
            builder = builder.allow_plaintext_beyond_loopback();
        }
        Ok(builder.build().map_err(SinkError::from)?)
    }
}

impl FileTarget {
    /// The sink for it.
    ///
    /// # Errors
    /// [`FileError`](crate::file::FileError), when what is there cannot be read.
    pub async fn open(&self) -> Result<FileSink, SinkError> {
        FileSink::open(self.place.clone(), self.base.clone()).await
    }
}

impl EtcdTarget {
    /// The options of the sink for it; `env` gives the value of an environment variable.
    ///
    /// # Errors
    /// [`ReadError`], when the password or the keyring cannot be read.
    pub fn builder(&self, env: impl Fn(&str) -> Option<String>) -> Result<etcd::Builder, ReadError> {
        let mut builder = EtcdSink::builder(self.endpoints.iter().map(ToString::to_string));
        if let Some(user) = &self.user {
            builder = builder.credentials(&user.name, user.password.read(&env)?.expose());
        }
        if let Some(target) = &self.tls {
            let mut tls = ClientTls::ca_file(&target.ca_file);
            if let Some((cert, key)) = &target.client {
                tls = tls.identity_files(cert, key);
            }
            if let Some(domain) = &target.domain {
                tls = tls.domain(domain);
            }
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

/// Everything that an embedded server holds under a scope: all of it was published.
async fn list(address: SocketAddr, scope: &Scope) -> Result<DocumentSet, ReadError> {
    let failed = |source: tonic::transport::Error| ReadError::Connect { address, source: source.into() };
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(failed)?;
    let channel = endpoint.connect_timeout(TIMEOUT).timeout(TIMEOUT).connect().await.map_err(failed)?;
    let prefix = scope.key_prefix();
    let (key, range_end) = scope.key_range();
    let request = RangeRequest { key, range_end, ..RangeRequest::default() };
    let answer = match KvClient::new(channel).max_decoding_message_size(READ_LIMIT).range(request).await {
        Ok(answer) => answer.into_inner(),
        Err(status) if status.code() == Code::Unavailable && status.message() == UNKNOWN_SCOPE => {
            return Ok(DocumentSet::default());
        }
        // What a server says has no source.
        Err(status) if status.source().is_some() => {
            return Err(ReadError::Connect { address, source: status.into() });
        }
        Err(status) => return Err(ReadError::Status { address, status: Box::new(status) }),
    };
    let documents = answer.kvs.into_iter().filter_map(|entry| {
        let key = Key::new(str::from_utf8(&entry.key).ok()?.strip_prefix(&prefix)?).ok()?;
        Some(Document {
            key,
            value: entry.value,
            order: OrderHint(0),
            owner: Owner::new("an earlier publication"),
        })
    });
    Ok(DocumentSet::new(documents)?)
}
