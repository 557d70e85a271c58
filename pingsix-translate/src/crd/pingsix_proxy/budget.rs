//! How a budget is shared.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the budget of each data plane is shared. What a Gateway names can only say less than what its class names, or else
/// the controller's options.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct ProxyBudget {
    /// How much of the bytes and matcher entries of a data plane the routes, certificates and listeners of one namespace
    /// may take, in percent. The default is the controller's (`--budget-namespace-share`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1, max = 100))]
    pub namespace_share: Option<u8>,
}
