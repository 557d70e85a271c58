//! Commits from the steps of a plan.
//!
//! A publication is one commit, hence one revision and one watch response, when that response fits a message.
//! Otherwise it is cut into several commits with revisions of their own, each of which fits. The cuts lie between
//! units of the plan, unless a unit is larger than a message. Every prefix of the plan is valid, so a client that
//! applies the responses in order never sees a dangling reference. A client that lists sees all commits or none.

use crate::desired::{DesiredError, DocumentSet, Scope};
use crate::error::SinkError;
use crate::plan::{Step, units};

/// The steps in the order of their events, and the number of steps in each commit.
///
/// # Errors
/// [`DesiredError::DocumentTooLarge`] when a single document does not fit.
pub(super) fn split(
    scope: &Scope,
    steps: Vec<Step>,
    current: &DocumentSet,
    limit: usize,
) -> Result<(Vec<Step>, Vec<usize>), SinkError> {
    let mut bytes = 0;
    for step in &steps {
        let size = event_bytes(scope, step);
        if size > limit {
            let (scope, key) = (scope.clone(), step.key().clone());
            return Err(DesiredError::DocumentTooLarge { scope, key, bytes: size, limit }.into());
        }
        bytes += size;
    }
    if steps.is_empty() {
        return Ok((steps, Vec::new()));
    }
    if bytes <= limit {
        let all = steps.len();
        return Ok((steps, vec![all]));
    }
    let units = units(&steps, current);
    let (mut parts, mut taken) = (Vec::new(), 0);
    while let rest = &units.steps()[taken..]
        && !rest.is_empty()
    {
        let mut bytes = 0;
        let fitting = rest.iter().take_while(|step| {
            bytes += event_bytes(scope, step);
            bytes <= limit
        });
        let part = units.batch_len(taken, fitting.count());
        parts.push(part);
        taken += part;
    }
    Ok((units.into_steps(), parts))
}

fn event_bytes(scope: &Scope, step: &Step) -> usize {
    let value = match step {
        Step::Create(document) | Step::Update(document) => document.value.len(),
        Step::Delete { .. } => 0,
    };
    scope.as_str().len() + 1 + step.key().as_str().len() + value + super::store::EVENT_OVERHEAD
}

/// The steps of each commit, cut by `parts`, with one of `revisions` each.
pub(super) fn commits<'s>(
    steps: &'s [Step],
    parts: &[usize],
    revisions: impl Iterator<Item = i64>,
) -> Vec<(i64, &'s [Step])> {
    let mut rest = steps;
    let commits = parts.iter().zip(revisions).map(|(part, revision)| {
        let (now, later) = rest.split_at(*part);
        rest = later;
        (revision, now)
    });
    commits.collect()
}
