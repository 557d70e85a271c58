//! The URLs of the embedded server.

use std::error::Error as _;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tonic::Code;
use tonic::transport::Endpoint;

use super::UNKNOWN_SCOPE;
use crate::desired::{DocumentSet, Scope};
use crate::document::{Document, Key, OrderHint, Owner};
use crate::dyn_sink::DynSink;
use crate::factory::{Env, OpenError, Parameters, Query, SinkFactory, TargetError};
use crate::proto::etcdserverpb::RangeRequest;
use crate::proto::etcdserverpb::kv_client::KvClient;

/// Timeout of the connection and of each request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Byte limit of a scope. PingSIX itself reads 4 MiB.
const MAX_SCOPE_BYTES: usize = 64 * 1024 * 1024;

/// The address of an embedded server whose URL has none.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 2379);

/// The embedded etcd server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EmbeddedTarget {
    /// The listener's address, unless the program has it: `listen`.
    pub(crate) listen: Option<SocketAddr>,
}

impl SinkFactory for EmbeddedTarget {
    const SCHEMES: &'static [&'static str] = &["embedded:"];
    const KIND: &'static str = "embedded";

    fn parse(
        scheme: &'static str,
        location: &str,
        parameters: &mut Parameters<'_>,
    ) -> Result<Self, TargetError> {
        if !location.is_empty() {
            return Err(TargetError::part(
                scheme,
                "path",
                "there is none; parameters follow a question mark",
            ));
        }
        Ok(Self { listen: parameters.parsed("listen", "an IP address with a port")? })
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, query: &mut Query) -> fmt::Result {
        query.add("listen", self.listen.map(|listen| listen.to_string()));
        f.write_str("embedded:")
    }

    async fn open(&self, _env: Env<'_>) -> Result<DynSink, OpenError> {
        Err(OpenError::Embedded)
    }

    async fn read(&self, scope: &Scope, _env: Env<'_>) -> Result<DocumentSet, OpenError> {
        list(self.listen.unwrap_or(DEFAULT_LISTEN), scope).await
    }
}

/// All documents of an embedded server under a scope.
async fn list(address: SocketAddr, scope: &Scope) -> Result<DocumentSet, OpenError> {
    let failed = |source: tonic::transport::Error| OpenError::Connect { address, source: source.into() };
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(failed)?;
    let channel =
        endpoint.connect_timeout(REQUEST_TIMEOUT).timeout(REQUEST_TIMEOUT).connect().await.map_err(failed)?;
    let prefix = scope.key_prefix();
    let (key, range_end) = scope.key_range();
    let request = RangeRequest { key, range_end, ..RangeRequest::default() };
    let answer = match KvClient::new(channel).max_decoding_message_size(MAX_SCOPE_BYTES).range(request).await
    {
        Ok(answer) => answer.into_inner(),
        Err(status) if status.code() == Code::Unavailable && status.message() == UNKNOWN_SCOPE => {
            return Ok(DocumentSet::default());
        }
        // A status from the server has no source.
        Err(status) if status.source().is_some() => {
            return Err(OpenError::Connect { address, source: status.into() });
        }
        Err(status) => return Err(OpenError::Status { address, status: Box::new(status) }),
    };
    let documents = answer.kvs.into_iter().filter_map(|entry| {
        let key = Key::new(str::from_utf8(&entry.key).ok()?.strip_prefix(prefix)?).ok()?;
        Some(Document {
            key,
            value: entry.value,
            order: OrderHint(0),
            owner: Owner::new("an earlier publication"),
        })
    });
    Ok(DocumentSet::new(documents)?)
}
