//! BackendTrafficPolicy: how PingSIX chooses, checks and reaches the endpoints of a Service.

mod settings;

use std::sync::Arc;

pub(crate) use settings::{Balancing, ClientCertificate, Hashed, HealthProbe, TrafficSettings};

use super::attached::{PolicyEffect, PolicySpec, UnsupportedTraffic};
use crate::crd::{
    ActiveHealthCheck, BackendRetry, BackendTimeout, HashSource, HealthCheckType, LoadBalancer,
};
use crate::model::{Capability, FieldPath, Kind, Reason, Refusal};
use crate::references::{CertificateRef, References};
use crate::snapshot::{BackendTrafficPolicy, key_of};

/// PingSIX's longest timeout in seconds (`src/config/mod.rs`).
const LONGEST: u128 = 86_400;

/// The effect of a BackendTrafficPolicy.
#[derive(Debug, PartialEq)]
pub(crate) struct BackendTrafficEffect {
    pub(crate) settings: Arc<TrafficSettings>,
}

impl PolicyEffect for BackendTrafficEffect {
    type Object = BackendTrafficPolicy;

    fn read(policy: &BackendTrafficPolicy, references: &References<'_>) -> PolicySpec<Self> {
        let spec = &policy.spec;
        let mut reader = Reader { at: FieldPath::new("spec"), refusals: Vec::new() };
        if spec.session_persistence.is_some() {
            reader.lacks("sessionPersistence", Capability::SessionsOfServices, &[]);
        }
        let balancing = spec.load_balancer.as_ref().and_then(|balancer| reader.balancing(balancer));
        let check = spec.health_check.as_ref().and_then(|check| {
            if check.passive.is_some() {
                reader.lacks("healthCheck.passive", Capability::PassiveHealthCheck, &[]);
            }
            check.active.as_ref().and_then(|active| reader.check(active))
        });
        let mut settings = TrafficSettings { balancing, check, ..TrafficSettings::default() };
        if let Some(BackendTimeout { connect, send, read }) = &spec.timeout {
            settings.connect = reader.seconds("timeout.connect", connect.as_deref());
            settings.send = reader.seconds("timeout.send", send.as_deref());
            settings.read = reader.seconds("timeout.read", read.as_deref());
        }
        if let Some(retry) = &spec.retry {
            reader.retry(retry, &mut settings);
        }
        let mut unresolved = Vec::new();
        if let Some(tls) = &spec.tls {
            let reference = &tls.client_certificate_ref;
            let reference = CertificateRef {
                group: reference.group.clone(),
                kind: reference.kind.clone(),
                name: reference.name.clone(),
                namespace: reference.namespace.clone(),
            };
            let key = key_of(Kind::BackendTrafficPolicy, &policy.metadata);
            let at = reader.at.child("tls").child("clientCertificateRef");
            match references.certificate(&key, &reference, &at) {
                Ok(certificate) => settings.certificate = Some(ClientCertificate(certificate)),
                Err(refusal) => unresolved.push(refusal),
            }
        }
        let mut refusals = reader.refusals;
        refusals.extend(unresolved.iter().cloned());
        PolicySpec {
            effect: if refusals.is_empty() {
                Ok(Self { settings: Arc::new(settings) })
            } else {
                Err(refusals)
            },
            unapplied: Vec::new(),
            unresolved,
            limitations: Vec::new(),
            protects: spec.tls.is_some(),
        }
    }

    fn refuse(&self, UnsupportedTraffic { requests, connections }: &UnsupportedTraffic) -> Vec<Refusal> {
        let unsupported: Vec<&str> = requests.iter().chain(connections).map(String::as_str).collect();
        if unsupported.is_empty() {
            return Vec::new();
        }
        let spec = FieldPath::new("spec");
        let (capability, at) = if self.settings.hashes_addresses() {
            let at = spec.child("loadBalancer").child("consistentHash").child("type");
            (Capability::AddressHashBehindFront, at)
        } else {
            (Capability::CertificateForBackends, spec.child("tls").child("clientCertificateRef"))
        };
        vec![capability.refuse_with(at, &[&unsupported.join(", ")])]
    }
}

/// Reads the fields of a spec, and collects those that PingSIX cannot honour.
struct Reader {
    at: FieldPath,
    refusals: Vec<Refusal>,
}

impl Reader {
    fn path(&self, field: &str) -> FieldPath {
        field.split('.').fold(self.at.clone(), |at, name| at.child(name))
    }

    fn refuse(&mut self, field: &str, reason: Reason, message: impl Into<String>) {
        self.refusals.push(Refusal::new(self.path(field), reason, message));
    }

    /// PingSIX lacks the feature.
    fn lacks(&mut self, field: &str, capability: Capability, values: &[&str]) {
        self.refusals.push(capability.refuse_with(self.path(field), values));
    }

    fn balancing(&mut self, balancer: &LoadBalancer) -> Option<Balancing> {
        match (balancer.r#type.as_str(), &balancer.consistent_hash) {
            ("RoundRobin", None) => Some(Balancing::RoundRobin),
            ("Random", None) => Some(Balancing::Random),
            ("ConsistentHash", Some(hash)) => {
                let hashed = self.hashed(hash.r#type, hash.name.as_deref())?;
                Some(Balancing::ConsistentHash(hashed))
            }
            ("ConsistentHash", None) => {
                self.refuse(
                    "loadBalancer.consistentHash",
                    Reason::Invalid,
                    "A ConsistentHash needs this field.",
                );
                None
            }
            ("RoundRobin" | "Random", Some(_)) => {
                let message = format!("The type {} hashes nothing.", balancer.r#type);
                self.refuse("loadBalancer.consistentHash", Reason::Invalid, message);
                None
            }
            (other, _) => {
                self.lacks("loadBalancer.type", Capability::OtherBalancing, &[other]);
                None
            }
        }
    }

    fn hashed(&mut self, source: HashSource, name: Option<&str>) -> Option<Hashed> {
        const FIELD: &str = "loadBalancer.consistentHash.name";
        let hashed = match (source, name) {
            (HashSource::SourceIp, None) => return Some(Hashed::SourceIp),
            (HashSource::Uri, None) => return Some(Hashed::Uri),
            (HashSource::SourceIp | HashSource::Uri, Some(_)) => {
                self.refuse(
                    FIELD,
                    Reason::Invalid,
                    "Only a header, a cookie and a query parameter have a name.",
                );
                return None;
            }
            (_, None) => {
                self.refuse(FIELD, Reason::Invalid, "A header, a cookie and a query parameter need a name.");
                return None;
            }
            (HashSource::Header, Some(name)) => {
                name.parse::<http::HeaderName>().ok().map(|name| Hashed::Header(name.as_str().to_owned()))
            }
            (HashSource::Cookie, Some(name)) => {
                name.parse::<http::HeaderName>().ok().map(|_| Hashed::Cookie(name.to_owned()))
            }
            // PingSIX compares names as they are sent.
            (HashSource::QueryParam, Some(name)) => {
                let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.~%+".contains(letter);
                (!name.is_empty() && name.chars().all(plain)).then(|| Hashed::QueryParam(name.to_owned()))
            }
        };
        if hashed.is_none() {
            let message = format!("\"{}\" is no name that a request can have.", name.unwrap_or_default());
            self.refuse(FIELD, Reason::Invalid, message);
        }
        hashed
    }

    fn check(&mut self, check: &ActiveHealthCheck) -> Option<HealthProbe> {
        let before = self.refusals.len();
        let interval = self.seconds("healthCheck.active.interval", Some(&check.interval)).unwrap_or(1);
        for (field, value) in [
            ("healthCheck.active.healthyThreshold", check.healthy_threshold),
            ("healthCheck.active.unhealthyThreshold", check.unhealthy_threshold),
        ] {
            if !(1..=100).contains(&value) {
                self.refuse(field, Reason::Invalid, "A threshold is from 1 to 100.");
            }
        }
        if check.port == Some(0) {
            self.refuse("healthCheck.active.port", Reason::Invalid, "A port is from 1 to 65535.");
        }
        if check.r#type == HealthCheckType::Tcp && check.http.is_some() {
            self.refuse("healthCheck.active.http", Reason::Invalid, "A TCP check makes no request.");
        }
        let http = (check.r#type == HealthCheckType::Http).then(|| check.http.clone().unwrap_or_default());
        if let Some(http) = &http {
            let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"#\"<>\\^`{|}".contains(&byte);
            if !http.path.starts_with('/') || !http.path.bytes().all(is_plain) {
                let message = format!("\"{}\" is no path.", http.path);
                self.refuse("healthCheck.active.http.path", Reason::Invalid, message);
            }
            let is_host = |host: &String| {
                !host.is_empty() && host.parse::<http::uri::Authority>().is_ok() && !host.contains('@')
            };
            if http.hostname.as_ref().is_some_and(|host| !is_host(host)) {
                self.refuse("healthCheck.active.http.hostname", Reason::Invalid, "The value is no host.");
            }
            let statuses = &http.expected_statuses;
            if statuses.is_empty() || !statuses.iter().all(|status| (100..=599).contains(status)) {
                let message = "There has to be a status, and each is from 100 to 599.";
                self.refuse("healthCheck.active.http.expectedStatuses", Reason::Invalid, message);
            }
        }
        (self.refusals.len() == before).then(|| HealthProbe {
            http: http.map(|http| (http.path, http.hostname, http.expected_statuses)),
            interval,
            healthy: check.healthy_threshold,
            unhealthy: check.unhealthy_threshold,
            port: check.port,
        })
    }

    fn retry(&mut self, retry: &BackendRetry, settings: &mut TrafficSettings) {
        if !retry.status_codes.is_empty() {
            self.lacks("retry.statusCodes", Capability::RetryOfServiceByStatus, &[]);
        }
        if retry.num_retries.is_some_and(|retries| retries > 16) {
            self.lacks("retry.numRetries", Capability::ManyRetriesOfService, &[]);
        }
        settings.retries = retry.num_retries;
        settings.retry_timeout = self.seconds("retry.timeout", retry.timeout.as_deref());
    }

    /// A duration in whole seconds, from a second to a day.
    fn seconds(&mut self, field: &str, text: Option<&str>) -> Option<u32> {
        let text = text?;
        let Ok(duration) = text.parse::<gateway_api::Duration>() else {
            let message = format!("\"{text}\" is not a duration such as 10s or 1m30s.");
            self.refuse(field, Reason::Invalid, message);
            return None;
        };
        let millis = duration.as_millis();
        if millis % 1000 != 0 || !(1..=LONGEST).contains(&(millis / 1000)) {
            self.lacks(field, Capability::ExactTimeout, &[&LONGEST.to_string(), text]);
            return None;
        }
        u32::try_from(millis / 1000).ok()
    }
}
