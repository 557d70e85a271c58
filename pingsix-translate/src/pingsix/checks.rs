//! Active health checks of an upstream.

use serde::{Deserialize, Serialize};

use super::omit;

omit::defaults! {
    timeout: u32 = &1;
    http_path: str = "/";
}

/// The health checks of an upstream. PingSIX: `src/config/mod.rs`, `HealthCheck`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct HealthCheck {
    /// The probe; PingSIX has no passive checks.
    #[garde(dive)]
    pub active: ActiveCheck,
}

/// A probe sent to every node. PingSIX: `src/config/mod.rs`, `ActiveCheck`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct ActiveCheck {
    /// The protocol of the probe.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub r#type: CheckType,
    /// Seconds, from 1.
    #[serde(default = "timeout::value", skip_serializing_if = "timeout::is")]
    #[garde(range(min = 1))]
    pub timeout: u32,
    /// The path that is requested.
    #[serde(default = "http_path::value", skip_serializing_if = "http_path::is")]
    pub http_path: String,
    /// The Host header and server name of the probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// A port other than the node's, 1 to 65535.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1, max = 65535))]
    pub port: Option<u32>,
    /// Whether an HTTPS probe verifies the certificate.
    #[serde(default = "omit::yes", skip_serializing_if = "omit::is_yes")]
    pub https_verify_certificate: bool,
    /// Headers of the probe, each `Name: value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub req_headers: Vec<String>,
    /// When a node becomes healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub healthy: Option<Health>,
    /// When a node becomes unhealthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub unhealthy: Option<Unhealthy>,
}

impl Default for ActiveCheck {
    fn default() -> Self {
        Self {
            r#type: CheckType::default(),
            timeout: timeout::value(),
            http_path: http_path::value(),
            host: None,
            port: None,
            https_verify_certificate: true,
            req_headers: Vec::new(),
            healthy: None,
            unhealthy: None,
        }
    }
}

/// The protocol of a probe. PingSIX: `src/config/mod.rs`, `ActiveCheckType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckType {
    /// A TCP connect.
    Tcp,
    /// A GET over HTTP.
    #[default]
    Http,
    /// A GET over HTTPS.
    Https,
}

/// When a node becomes healthy. PingSIX: `src/config/mod.rs`, `Health`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Health {
    /// Seconds between two rounds of probes, from 1.
    #[serde(default = "Health::default_interval")]
    #[garde(range(min = 1))]
    pub interval: u32,
    /// The statuses that count as success.
    #[serde(default = "Health::default_http_statuses")]
    pub http_statuses: Vec<u32>,
    /// Successes in a row, from 1.
    #[serde(default = "Health::default_successes")]
    #[garde(range(min = 1))]
    pub successes: u32,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            interval: Self::default_interval(),
            http_statuses: Self::default_http_statuses(),
            successes: Self::default_successes(),
        }
    }
}

impl Health {
    fn default_interval() -> u32 {
        1
    }

    fn default_http_statuses() -> Vec<u32> {
        vec![200, 302]
    }

    fn default_successes() -> u32 {
        2
    }
}

/// When a node becomes unhealthy. PingSIX: `src/config/mod.rs`, `Unhealthy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Unhealthy {
    /// HTTP failures in a row, from 1.
    #[serde(default = "Unhealthy::default_http_failures")]
    #[garde(range(min = 1))]
    pub http_failures: u32,
    /// Connect failures in a row, from 1.
    #[serde(default = "Unhealthy::default_tcp_failures")]
    #[garde(range(min = 1))]
    pub tcp_failures: u32,
}

impl Default for Unhealthy {
    fn default() -> Self {
        Self { http_failures: Self::default_http_failures(), tcp_failures: Self::default_tcp_failures() }
    }
}

impl Unhealthy {
    fn default_http_failures() -> u32 {
        5
    }

    fn default_tcp_failures() -> u32 {
        2
    }
}
