//! The settings of a BackendTrafficPolicy in an upstream.

use super::CONNECT_SECONDS;
use crate::backends::ConnectionSettings;
use crate::normalise::TimeoutsAndRetries;
use crate::pingsix::{
    ActiveCheck, CheckType, HashOn, Health, HealthCheck, SelectionType, Timeout, Unhealthy, Upstream,
    UpstreamTls,
};
use crate::policy::{Balancing, ClientCertificate, Hashed, HealthProbe, TrafficSettings};

/// Seconds for writes and reads without a policy (PingSIX: `src/config/mod.rs`, `BUILTIN_UPSTREAM_TIMEOUT`).
const IDLE_SECONDS: u64 = 30;

/// Adds the settings to an upstream. The fields of a route win.
pub(super) fn apply(settings: &TrafficSettings, usage: &ConnectionSettings, upstream: &mut Upstream) {
    let TrafficSettings { balancing, check, connect, send, read, retries, retry_timeout, certificate } =
        settings;
    let TimeoutsAndRetries { timeout: of_route, retries: retries_of_route } = usage.timeouts;
    if let Some(balancing) = balancing {
        (upstream.r#type, upstream.hash_on, upstream.key) = selection(balancing);
    }
    upstream.checks = check.as_ref().map(|check| Box::new(HealthCheck { active: probe(check, usage) }));
    if connect.is_some() || send.is_some() || read.is_some() {
        let without = upstream.timeout.unwrap_or(Timeout {
            connect: CONNECT_SECONDS,
            send: IDLE_SECONDS,
            read: IDLE_SECONDS,
        });
        // A route limits the time of all of them.
        let idle =
            |own: Option<u32>, without: u64| own.filter(|_| of_route.is_none()).map_or(without, u64::from);
        let longest = of_route.map_or(u64::MAX, u64::from);
        upstream.timeout = Some(Timeout {
            connect: connect.map_or(without.connect, u64::from).min(longest),
            send: idle(*send, without.send),
            read: idle(*read, without.read),
        });
    }
    if let (Some(retries), None) = (retries, retries_of_route) {
        upstream.retries = Some(*retries).filter(|retries| *retries > 0);
    }
    upstream.retry_timeout = retry_timeout.map(u64::from);
    upstream.tls = certificate.as_ref().map(|ClientCertificate(certificate)| {
        Box::new(UpstreamTls {
            client_cert: certificate.chain().to_owned(),
            client_key: certificate.private_key().to_owned(),
        })
    });
}

/// PingSIX's selection algorithm, and the key of its hash (PingSIX: `src/utils/request.rs`, `request_selector_key`).
fn selection(balancing: &Balancing) -> (SelectionType, HashOn, String) {
    let without = Upstream::default();
    let hashed = match balancing {
        Balancing::RoundRobin => return (SelectionType::RoundRobin, without.hash_on, without.key),
        Balancing::Random => return (SelectionType::Random, without.hash_on, without.key),
        Balancing::ConsistentHash(hashed) => hashed,
    };
    let (hash_on, key) = match hashed {
        Hashed::SourceIp => (HashOn::Vars, "remote_addr".to_owned()),
        Hashed::Header(name) => (HashOn::Head, name.clone()),
        Hashed::Cookie(name) => (HashOn::Cookie, name.clone()),
        Hashed::QueryParam(name) => (HashOn::Vars, format!("arg_{name}")),
        Hashed::Uri => (HashOn::Vars, "uri".to_owned()),
    };
    (SelectionType::Ketama, hash_on, key)
}

fn probe(check: &HealthProbe, usage: &ConnectionSettings) -> ActiveCheck {
    let HealthProbe { http, interval, healthy, unhealthy, port } = check;
    let mut active = ActiveCheck {
        r#type: CheckType::Tcp,
        port: port.map(u32::from),
        healthy: Some(Health { interval: *interval, successes: *healthy, ..Health::default() }),
        unhealthy: Some(Unhealthy { http_failures: *unhealthy, tcp_failures: *unhealthy }),
        ..ActiveCheck::default()
    };
    if let Some((path, host, statuses)) = http {
        active.r#type = if usage.tls.is_some() { CheckType::Https } else { CheckType::Http };
        active.http_path.clone_from(path);
        // Over TLS, PingSIX verifies the name that it sends, also for a probe.
        let sent = usage.tls.as_ref().or(usage.host.as_ref()).map(ToString::to_string);
        active.host = if usage.tls.is_some() { sent } else { host.clone().or(sent) };
        if let Some(health) = &mut active.healthy {
            health.http_statuses = statuses.iter().map(|status| u32::from(*status)).collect();
        }
    }
    active
}
