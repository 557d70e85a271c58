//! Shares of a budget.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shares of namespaces in the budget of each data plane. Parameters of a Gateway can only lower the values of the
/// class, or of the controller's options.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct ProxyBudget {
    /// The share of the bytes and matcher entries of a data plane for the routes, certificates and listeners of one
    /// namespace, in percent. Default: the option `--budget-namespace-share` of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1, max = 100))]
    pub(crate) namespace_share: Option<u8>,
}
