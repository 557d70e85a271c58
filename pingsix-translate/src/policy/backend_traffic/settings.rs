//! Settings of connections to a Service, in the terms of PingSIX.

use std::cmp::Ordering;
use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::model::ObjectName;
use crate::references::Certificate;

/// The settings that a policy gives to upstreams. They are part of an upstream's identity, so they have an order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TrafficSettings {
    pub(crate) balancing: Option<Balancing>,
    pub(crate) check: Option<HealthProbe>,
    /// Seconds, as all timeouts.
    pub(crate) connect: Option<u32>,
    pub(crate) send: Option<u32>,
    pub(crate) read: Option<u32>,
    pub(crate) retries: Option<u32>,
    pub(crate) retry_timeout: Option<u32>,
    pub(crate) certificate: Option<ClientCertificate>,
}

/// How an endpoint is chosen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Balancing {
    RoundRobin,
    Random,
    ConsistentHash(Hashed),
}

/// The part of a request that decides about the endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hashed {
    SourceIp,
    Header(String),
    Cookie(String),
    QueryParam(String),
    Uri,
}

/// An active health check.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HealthProbe {
    /// Path, host and statuses of success of a request; `None` is a connection.
    pub(crate) http: Option<(String, Option<String>, Vec<u16>)>,
    /// Seconds.
    pub(crate) interval: u32,
    pub(crate) healthy: u32,
    pub(crate) unhealthy: u32,
    pub(crate) port: Option<u16>,
}

/// The certificate that PingSIX shows to endpoints. Two are equal if they are of the same Secret with the same contents.
#[derive(Clone, Debug)]
pub(crate) struct ClientCertificate(pub(crate) Certificate);

impl ClientCertificate {
    fn identity(&self) -> (&ObjectName, &[u8; 32], &str) {
        (&self.0.secret, self.0.digest(), self.0.chain())
    }
}

impl PartialEq for ClientCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for ClientCertificate {}

impl PartialOrd for ClientCertificate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ClientCertificate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

/// One attribute of an upstream's id. A digest stands for the certificate.
impl fmt::Display for TrafficSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { balancing, check, connect, send, read, retries, retry_timeout, certificate } = self;
        write!(f, "{balancing:?} {check:?} {:?} {:?}", [connect, send, read], [retries, retry_timeout])?;
        if let Some(ClientCertificate(certificate)) = certificate {
            let digest = Sha256::new().chain_update(certificate.chain()).chain_update(certificate.digest());
            write!(f, " {} ", certificate.secret)?;
            digest.finalize().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}
