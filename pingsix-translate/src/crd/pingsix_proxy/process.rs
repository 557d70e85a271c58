//! Settings of PingSIX processes that the controller runs.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of PingSIX processes. What the controller has to decide itself (listeners, where configuration comes from, how
/// a process is stopped) is not among them.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct Process {
    /// Threads of each process; the default is 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1, max = 256))]
    pub threads: Option<u16>,

    /// What is logged; the default is `Info`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,

    /// The status page, which is always there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub status: Option<ProcessStatus>,

    /// Metrics for Prometheus; without it, there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub metrics: Option<Metrics>,

    /// Encrypts what is secret on its way from the controller to PingSIX.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub data_encryption: Option<DataEncryption>,
}

/// What a process logs.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// What has failed.
    Error,
    /// And what may fail.
    Warn,
    /// And what has happened.
    #[default]
    Info,
    /// And what was looked at.
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
pub struct ProcessStatus {
    /// After how many seconds without the controller a configuration counts as stale; the default is 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1, max = 86400))]
    pub stale_after_seconds: Option<u32>,

    /// Whether a process with a stale configuration says that it is not ready. The default is `false`: what is stale still
    /// serves, and a controller that is away must not take its data planes along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_readiness_when_stale: Option<bool>,
}

/// Metrics of a process.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// The port of the Pod where the first process shows its metrics; each further process of the Pod has the next port.
    #[garde(range(min = 1024, max = 65000))]
    pub port: u16,
}

/// Encryption of what is secret in the configuration.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DataEncryption {
    /// The Secret with the keys.
    #[garde(dive)]
    pub keyring_secret_ref: KeyringReference,
}

/// A keyring in a Secret in the namespace of the `PingsixProxy`.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct KeyringReference {
    /// The name of the Secret.
    #[garde(length(min = 1, max = 253))]
    pub name: String,

    /// The key of the Secret under which the keyring is: one secret a line. All of them decrypt, and the first encrypts as soon
    /// as all running processes have it; until then, that goes on which encrypted before.
    #[serde(default = "default_key")]
    #[garde(length(min = 1, max = 253))]
    pub key: String,
}

fn default_key() -> String {
    "keyring".to_owned()
}
