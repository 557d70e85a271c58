//! The condition `pingsix.io/Limited` of objects that are served with limitations.

use super::{Condition, ConditionStatus};
use crate::model::{ConditionType, Reason, Refusal, joined};

/// `pingsix.io/Limited` with a sentence for each limitation. Without limitations the condition is absent, because it is never
/// `False`.
pub(super) fn limited<'a>(
    limitations: impl IntoIterator<Item = &'a Refusal>,
    observed_generation: i64,
) -> Option<Condition> {
    let message = joined(limitations);
    (!message.is_empty()).then(|| {
        let content = (ConditionStatus::True, Reason::Limited, message);
        Condition::new(ConditionType::Limited, content, observed_generation)
    })
}
