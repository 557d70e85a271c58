//! The possible upstreams of a request.

use super::request::{Request, conditions_hold};
use crate::pingsix::plugin::{TrafficSplit, WeightedUpstream};
use crate::pingsix::{Route, Service, Upstream};

/// An upstream and its share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The share, above 0, in proportion to those of the other candidates.
    pub weight: u32,
    /// The upstream.
    pub upstream: UpstreamRef,
}

/// An upstream as a document refers to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamRef {
    /// A named upstream, by its id.
    Named(String),
    /// An inline upstream.
    Inline(Box<Upstream>),
}

/// The targets of the first rule whose conditions hold; `None` without such a rule. Targets of weight 0 get no
/// requests and are left out.
pub(super) fn chosen_targets(split: TrafficSplit, request: &Request) -> Option<Vec<WeightedUpstream>> {
    let rule = split.rules.into_iter().find(|rule| conditions_hold(&rule.vars, request))?;
    Some(rule.weighted_upstreams.into_iter().filter(|target| target.weight > 0).collect())
}

/// The candidates of a list of targets. A target without upstream stands for the route's own. Repeated upstreams stay
/// separate, as in PingSIX.
pub(super) fn candidates(targets: Vec<WeightedUpstream>, own: Option<&UpstreamRef>) -> Vec<Candidate> {
    targets
        .into_iter()
        .filter_map(|target| {
            let upstream = match (target.upstream_id, target.upstream) {
                (Some(id), _) => Some(UpstreamRef::Named(id)),
                (None, Some(upstream)) => Some(UpstreamRef::Inline(Box::new(upstream))),
                (None, None) => own.cloned(),
            };
            upstream.map(|upstream| Candidate { weight: target.weight, upstream })
        })
        .collect()
}

/// The upstream of a route without any split: inline, then named, then the service's (`src/proxy/route.rs`).
pub(super) fn own_upstream(route: &Route, service: Option<&Service>) -> Option<UpstreamRef> {
    let inline = |upstream: &Upstream| UpstreamRef::Inline(Box::new(upstream.clone()));
    let named = |id: &String| UpstreamRef::Named(id.clone());
    route.upstream.as_deref().map(inline).or_else(|| route.upstream_id.as_ref().map(named)).or_else(|| {
        let service = service?;
        service.upstream.as_deref().map(inline).or_else(|| service.upstream_id.as_ref().map(named))
    })
}
