//! `fault-injection` and `echo`: answers without a backend.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A delay, an answer, or both; at least one. PingSIX: `src/plugins/fault_injection.rs`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct FaultInjection {
    /// A pause before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub delay: Option<Delay>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub abort: Option<Abort>,
}

/// A pause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Delay {
    /// Seconds, from 0.
    #[garde(range(min = 0.0))]
    pub duration: f64,
    /// The share of requests, 0 to 100; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(max = 100))]
    pub percentage: Option<u32>,
}

/// A fixed answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Abort {
    /// The status, from 200; above 999 PingSIX answers 500.
    #[garde(range(min = 200))]
    pub http_status: u16,
    /// The body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Headers; texts, numbers and truth values, anything else is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, Value>>,
    /// The share of requests, 0 to 100; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(max = 100))]
    pub percentage: Option<u32>,
}

/// Always the same answer, with status 200. PingSIX: `src/plugins/echo.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Echo {
    /// The body.
    pub body: String,
    /// Headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}
