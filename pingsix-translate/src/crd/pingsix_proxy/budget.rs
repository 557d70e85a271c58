//! Shares of what a data plane can hold and do.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shares of namespaces in the budget of each data plane, and of changes in its CPU. Parameters of a Gateway can only
/// lower the values of the class, or of the controller's options.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct ProxyBudget {
    /// The share of the bytes and matcher entries of a data plane for the routes, certificates and listeners of one
    /// namespace, in percent. Default: the option `--budget-namespace-share` of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1, max = 100))]
    pub(crate) namespace_share: Option<u8>,

    /// The share of one core that each PingSIX process may spend on changes of its configuration, in percent. While
    /// changes follow each other without a pause, the controller sends several of them at once to stay below the share;
    /// the first two seconds are free. The cost of a change is an estimate by the number and the bytes of all
    /// documents. Only for processes that read from the controller. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1, max = 100))]
    pub(crate) apply_share: Option<u8>,
}
