//! The action of a rule: its targets with their weights.

use smallvec::{SmallVec, smallvec};

/// The action of a rule on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    /// Never empty; weights are positive and have no common divisor; no target appears twice.
    pub(crate) targets: SmallVec<[(Target, u32); 1]>,
}

/// A target of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// Index into [`super::Backends`].
    Backend(usize),
    /// An answer without a backend.
    Status(u16),
    /// The responder, which redirects by the Route's plugins.
    Redirect,
}

impl Action {
    /// Answers every request with a status.
    pub(crate) fn status(status: u16) -> Self {
        Self { targets: smallvec![(Target::Status(status), 1)] }
    }

    /// Redirects every client.
    pub(super) fn redirect() -> Self {
        Self { targets: smallvec![(Target::Redirect, 1)] }
    }

    /// Whether filters matter. They do not if every target is a status.
    pub(crate) fn is_filtered(&self) -> bool {
        self.targets.iter().any(|(target, _)| !matches!(target, Target::Status(_)))
    }

    /// The status, if the action has no other target.
    pub(crate) fn only_status(&self) -> Option<u16> {
        match self.targets.as_slice() {
            [(Target::Status(status), _)] => Some(*status),
            _ => None,
        }
    }

    /// The targets with a positive weight, or `failure` if there is none.
    pub(super) fn weighted(shares: impl Iterator<Item = (Target, u32)>, failure: u16) -> Self {
        let mut targets = SmallVec::<[(Target, u32); 1]>::new();
        for (target, weight) in shares.filter(|(_, weight)| *weight > 0) {
            match targets.iter_mut().find(|(existing, _)| *existing == target) {
                Some((_, total)) => *total = total.saturating_add(weight),
                None => targets.push((target, weight)),
            }
        }
        // Gateway API: a rule without a backend that takes traffic answers 500, or UNAVAILABLE to gRPC.
        if targets.is_empty() {
            return Self::status(failure);
        }
        let divisor = targets.iter().fold(0, |divisor, (_, weight)| gcd(divisor, *weight));
        for (_, weight) in &mut targets {
            *weight /= divisor;
        }
        targets.shrink_to_fit();
        Self { targets }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
