//! Which stream routes there is room for.

use std::sync::Arc;

use crate::lower::budget::{Older, refusal};
use crate::lower::plane::RuleRef;
use crate::lower::rows::RouteInput;
use crate::options::Budget;
use crate::route::Refusal;
use crate::translation::DataPlaneKey;

/// How many of some rules, which do not fit all together, do, and what is written with those; nothing is unless at
/// least one does.
pub(super) fn admit<W>(
    oldest_first: &[RuleRef],
    within: impl Fn(&[RuleRef]) -> Option<W>,
) -> (usize, Option<W>) {
    // Admitting a rule may make the table smaller, since one without conditions ends decision lists. So more
    // rules than are found here might fit, but those that are found do.
    let (mut fitting, mut too_many, mut written) = (0, oldest_first.len(), None);
    while too_many - fitting > 1 {
        let middle = fitting.midpoint(too_many);
        match within(&oldest_first[..middle]) {
            Some(fits) => (fitting, written) = (middle, Some(fits)),
            None => too_many = middle,
        }
    }
    (fitting, written)
}

/// The rules that are not admitted, because only so many fit, and why.
pub(super) fn no_room(
    oldest_first: &[RuleRef],
    fitting: usize,
    routes: &[Arc<RouteInput>],
    plane: &DataPlaneKey,
    budget: Budget,
) -> Vec<(RuleRef, Refusal)> {
    let refused = oldest_first.iter().enumerate().skip(fitting);
    refused
        .map(|(position, &rule)| {
            let older = match (fitting, position) {
                (0, 0) => Older::None,
                (0, _) => Older::TooLarge(oldest_first[0]),
                (_, _) => Older::Admitted,
            };
            (rule, refusal(routes, rule, older, plane, budget))
        })
        .collect()
}
