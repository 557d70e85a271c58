//! Changes on their way to data planes.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits for the feed, from which data planes read changes. They have no effect on a data plane that reads from an etcd or
/// that an Admin API configures.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct FeedSettings {
    /// The share of one core that each PingSIX process may spend on changes of its configuration, in percent. The
    /// controller estimates the time of a change by the number and the bytes of all documents. Changes within that
    /// time, divided by the share, are sent together, also changes of endpoints. No change waits longer than two
    /// seconds, so PingSIX may spend more on a large data plane. Parameters of a Gateway can only lower the value of
    /// the class. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1, max = 100))]
    pub(crate) cpu_percent: Option<u8>,
}
