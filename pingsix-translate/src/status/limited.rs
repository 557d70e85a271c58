//! The condition `pingsix.io/Limited` of objects that are served with limits.

use super::{Condition, ConditionStatus};
use crate::model::{ConditionType, Limit, Reason, joined};

/// `pingsix.io/Limited` with a sentence for each limit. Without limits the condition is absent, because it is never
/// `False`.
pub(super) fn limited<'a>(
    limits: impl IntoIterator<Item = &'a Limit>,
    observed_generation: i64,
) -> Option<Condition> {
    let message = joined(limits);
    (!message.is_empty()).then_some(Condition {
        kind: ConditionType::Limited,
        status: ConditionStatus::True,
        reason: Reason::Limited,
        message,
        observed_generation,
    })
}
