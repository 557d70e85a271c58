//! `traffic-split`: another upstream than the route's own, by condition and weight.

use serde::{Deserialize, Serialize};

use crate::pingsix::upstream::Upstream;

/// An ordered decision list: the first rule whose conditions all hold chooses the upstream. Without such a rule, the
/// route's own upstream serves. PingSIX: `src/plugins/traffic_split.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficSplit {
    /// The rules in order; at least one.
    pub rules: Vec<SplitRule>,
}

/// One line of the decision list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitRule {
    /// Conditions `[variable, operator, value]`, all of which must hold; operators are `==` and `!=`. A
    /// condition of fewer than three parts always holds. An empty list always holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vars: Vec<Vec<String>>,
    /// The targets; at least one, with a total weight above 0.
    pub weighted_upstreams: Vec<WeightedUpstream>,
}

/// A target: a named upstream, an inline one, or, with neither, the route's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightedUpstream {
    /// The id of a named upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_id: Option<String>,
    /// An inline upstream, whose fields PingSIX does not validate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Upstream>,
    /// The share of this target; 0 gets nothing.
    pub weight: u32,
}
