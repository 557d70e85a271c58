//! Settings of PingSIX processes that the controller runs.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of PingSIX processes. The controller sets listeners, the source of configuration, and the shutdown.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct Process {
    /// The threads of each process. Default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1, max = 256))]
    pub(crate) threads: Option<u16>,

    /// The log level. Default: `Info`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log_level: Option<LogLevel>,

    /// The status page, which every process serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) status: Option<ProcessStatus>,

    /// Metrics for Prometheus. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) metrics: Option<Metrics>,

    /// Encryption of secrets between the controller and PingSIX.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) data_encryption: Option<DataEncryption>,
}

/// The log level of a process.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Failures and warnings.
    Warn,
    /// Failures, warnings and events.
    #[default]
    Info,
    /// The same, and details.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The spelling that filters of logs use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The status page of a process.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct ProcessStatus {
    /// The time without the controller after which a configuration is stale, in seconds. Default: 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1, max = 86400))]
    pub(crate) stale_after_seconds: Option<u32>,

    /// Whether a process with a stale configuration is not ready. Default: `false`, so that data planes serve while the
    /// controller is away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fail_readiness_when_stale: Option<bool>,
}

/// Metrics of a process.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metrics {
    /// The port of the Pod for the metrics of the first process. Each further process of the Pod has the next port.
    #[garde(range(min = 1024, max = 65000))]
    pub(crate) port: u16,
}

/// Encryption of secrets in the configuration.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DataEncryption {
    /// The Secret with the keys.
    #[garde(dive)]
    pub(crate) keyring_secret_ref: KeyringReference,
}

/// A keyring in a Secret in the namespace of the `PingsixProxy`.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyringReference {
    /// The name of the Secret.
    #[garde(length(min = 1, max = 253))]
    pub(crate) name: String,

    /// The entry of the Secret with the keyring, one key a line. All keys decrypt. The first key encrypts as soon as
    /// all running processes have it. Until then, the previous first key encrypts.
    #[serde(default = "default_key")]
    #[garde(length(min = 1, max = 253))]
    pub(crate) key: String,
}

fn default_key() -> String {
    "keyring".to_owned()
}
