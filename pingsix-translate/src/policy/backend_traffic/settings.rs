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

impl TrafficSettings {
    /// Whether the address of the client decides about the endpoint.
    pub(crate) fn hashes_addresses(&self) -> bool {
        self.balancing == Some(Balancing::ConsistentHash(Hashed::SourceIp))
    }

    /// These settings, and others where these have none.
    pub(crate) fn or(&self, others: &Self) -> Self {
        let Self { balancing, check, connect, send, read, retries, retry_timeout, certificate } =
            self.clone();
        Self {
            balancing: balancing.or_else(|| others.balancing.clone()),
            check: check.or_else(|| others.check.clone()),
            connect: connect.or(others.connect),
            send: send.or(others.send),
            read: read.or(others.read),
            retries: retries.or(others.retries),
            retry_timeout: retry_timeout.or(others.retry_timeout),
            certificate: certificate.or_else(|| others.certificate.clone()),
        }
    }
}

/// The choice of an endpoint.
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

/// One attribute of an upstream's id: the settings with their names. A digest stands for the certificate. The names and
/// their order are fixed, because another text would replace the upstreams of a running installation.
impl fmt::Display for TrafficSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { balancing, check, connect, send, read, retries, retry_timeout, certificate } = self;
        if let Some(balancing) = balancing {
            write!(f, "balancing={balancing};")?;
        }
        if let Some(check) = check {
            write!(f, "check={check};")?;
        }
        let numbers = [
            ("connect", connect),
            ("send", send),
            ("read", read),
            ("retries", retries),
            ("retryTimeout", retry_timeout),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                write!(f, "{name}={number};")?;
            }
        }
        if let Some(ClientCertificate(certificate)) = certificate {
            let digest = Sha256::new().chain_update(certificate.chain()).chain_update(certificate.digest());
            write!(f, "certificate={} ", certificate.secret)?;
            digest.finalize().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Balancing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoundRobin => f.write_str("roundRobin"),
            Self::Random => f.write_str("random"),
            Self::ConsistentHash(Hashed::SourceIp) => f.write_str("hash sourceIP"),
            // Quotes keep a name apart from the text after it.
            Self::ConsistentHash(Hashed::Header(name)) => write!(f, "hash header {name:?}"),
            Self::ConsistentHash(Hashed::Cookie(name)) => write!(f, "hash cookie {name:?}"),
            Self::ConsistentHash(Hashed::QueryParam(name)) => write!(f, "hash queryParam {name:?}"),
            Self::ConsistentHash(Hashed::Uri) => f.write_str("hash uri"),
        }
    }
}

impl fmt::Display for HealthProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { http, interval, healthy, unhealthy, port } = self;
        match http {
            Some((path, host, statuses)) => {
                write!(f, "http {path:?} {:?}", host.as_deref().unwrap_or_default())?;
                statuses.iter().try_for_each(|status| write!(f, " {status}"))?;
            }
            None => f.write_str("tcp")?,
        }
        write!(f, " every {interval}, healthy {healthy}, unhealthy {unhealthy}")?;
        port.map_or(Ok(()), |port| write!(f, ", port {port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_have_texts_that_differ() {
        let probe = |http| HealthProbe { http, interval: 1, healthy: 2, unhealthy: 3, port: None };
        let http = |path: &str, host: Option<&str>, statuses: &[u16]| {
            Some((path.to_owned(), host.map(str::to_owned), statuses.to_vec()))
        };
        let check = |check| TrafficSettings { check: Some(check), ..TrafficSettings::default() };
        let balancing =
            |balancing| TrafficSettings { balancing: Some(balancing), ..TrafficSettings::default() };
        let hashed = |hashed| balancing(Balancing::ConsistentHash(hashed));
        let all = [
            TrafficSettings::default(),
            balancing(Balancing::RoundRobin),
            balancing(Balancing::Random),
            hashed(Hashed::SourceIp),
            hashed(Hashed::Uri),
            hashed(Hashed::Header("a".to_owned())),
            hashed(Hashed::Header("a\";connect=1;".to_owned())),
            hashed(Hashed::Cookie("a".to_owned())),
            hashed(Hashed::QueryParam("a".to_owned())),
            check(probe(None)),
            check(HealthProbe { port: Some(80), ..probe(None) }),
            check(HealthProbe { interval: 2, ..probe(None) }),
            check(HealthProbe { healthy: 1, ..probe(None) }),
            check(HealthProbe { unhealthy: 1, ..probe(None) }),
            check(probe(http("/", None, &[]))),
            check(probe(http("/", None, &[200]))),
            check(probe(http("/", None, &[200, 204]))),
            check(probe(http("/", Some("a.example"), &[200]))),
            check(probe(http("/a", None, &[200]))),
            TrafficSettings { connect: Some(1), ..TrafficSettings::default() },
            TrafficSettings { send: Some(1), ..TrafficSettings::default() },
            TrafficSettings { read: Some(1), ..TrafficSettings::default() },
            TrafficSettings { retries: Some(1), ..TrafficSettings::default() },
            TrafficSettings { retry_timeout: Some(1), ..TrafficSettings::default() },
            TrafficSettings { retries: Some(1), retry_timeout: Some(1), ..TrafficSettings::default() },
        ];
        let texts: std::collections::BTreeSet<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), all.len(), "{texts:#?}");
    }

    #[test]
    fn the_text_is_fixed() {
        let settings = TrafficSettings {
            balancing: Some(Balancing::ConsistentHash(Hashed::Header("x-user".to_owned()))),
            check: Some(HealthProbe {
                http: Some(("/healthz".to_owned(), None, vec![200])),
                interval: 5,
                healthy: 1,
                unhealthy: 2,
                port: Some(8080),
            }),
            connect: Some(2),
            retries: Some(3),
            ..TrafficSettings::default()
        };
        assert_eq!(
            settings.to_string(),
            "balancing=hash header \"x-user\";check=http \"/healthz\" \"\" 200 every 5, healthy 1, unhealthy 2, \
             port 8080;connect=2;retries=3;"
        );
    }
}
