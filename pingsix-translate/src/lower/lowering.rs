//! The inputs of a data plane.

use std::sync::Arc;

use super::plane::{Plane, RuleRef};
use super::rows::RouteInput;
use crate::backends::Backends;
use crate::model::Options;
use crate::normalise::Rule;
use crate::pingsix::canonical_prefix;
use crate::policy::Policies;

/// The inputs of a data plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lowering<'a> {
    pub(crate) plane: &'a Plane,
    pub(crate) routes: &'a [Arc<RouteInput>],
    pub(crate) backends: &'a Backends,
    pub(crate) policies: &'a Policies,
    pub(crate) options: &'a Options,
}

impl<'a> Lowering<'a> {
    /// Length of the prefix of all keys.
    pub(super) fn prefix(&self) -> usize {
        canonical_prefix(&self.plane.key.prefix(&self.options.root)).len()
    }

    /// A rule with its route.
    pub(super) fn rule(&self, rule: RuleRef) -> (&'a RouteInput, &'a Rule) {
        let input: &'a RouteInput = &self.routes[rule.route];
        (input, &input.route.rules[rule.rule])
    }
}
