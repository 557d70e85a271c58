//! The condition of objects that are served, though not quite as asked.

use super::{Condition, ConditionStatus};
use crate::model::{ConditionType, Limit, Reason, joined};

/// `pingsix.io/Limited` with a sentence per limit; nothing when there is none, since the condition is only ever
/// `True`.
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
