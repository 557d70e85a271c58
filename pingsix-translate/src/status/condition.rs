//! Conditions without transition times.

use crate::model::{ConditionType, Reason, Refusal, joined};

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionStatus {
    /// `True`
    True,
    /// `False`
    False,
    /// `Unknown`
    Unknown,
}

impl ConditionStatus {
    /// The spelling in a status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A condition without `lastTransitionTime`, which the status writer adds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// `type`
    pub kind: ConditionType,
    /// `status`
    pub status: ConditionStatus,
    /// `reason`
    pub reason: Reason,
    /// `message`, at most 32,768 bytes.
    pub message: String,
    /// `observedGeneration`: the generation of the judged object.
    pub observed_generation: i64,
}

impl Condition {
    pub(super) fn new(
        kind: ConditionType,
        (status, reason, message): ConditionContent,
        observed_generation: i64,
    ) -> Self {
        Self { kind, status, reason, message, observed_generation }
    }
}

/// Status, reason and message of a condition.
pub(crate) type ConditionContent = (ConditionStatus, Reason, String);

/// The content of `Accepted` of an object with this refusal, or else with this message.
pub(super) fn accepted(refusal: Option<&Refusal>, message: &str) -> ConditionContent {
    match refusal {
        Some(refusal) => refused(refusal),
        None => (ConditionStatus::True, Reason::Accepted, message.to_owned()),
    }
}

/// The content of a condition that is `False` because of a refusal.
pub(super) fn refused(refusal: &Refusal) -> ConditionContent {
    (ConditionStatus::False, refusal.reason, refusal.to_string())
}

/// The content of `ResolvedRefs` of an object with these references that lead nowhere.
pub(super) fn resolved<'r>(unresolved: impl IntoIterator<Item = &'r Refusal>) -> ConditionContent {
    let mut unresolved = unresolved.into_iter().peekable();
    match unresolved.peek().map(|first| first.reason) {
        None => (ConditionStatus::True, Reason::ResolvedRefs, "All references are resolved.".to_owned()),
        Some(reason) => (ConditionStatus::False, reason, joined(unresolved)),
    }
}

/// The longest message that the API server stores (`metav1.Condition.message`).
const MAX_MESSAGE_BYTES: usize = 32_768;

/// Conditions of one object or part of one, sorted by type, one per type.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// Adds a condition, or replaces the one of the same type.
    pub fn set(&mut self, mut condition: Condition) {
        truncate(&mut condition.message);
        match self.0.binary_search_by_key(&condition.kind, |existing| existing.kind) {
            Ok(at) => self.0[at] = condition,
            Err(at) => self.0.insert(at, condition),
        }
    }

    /// Adds a condition with this content, or replaces the one of the same type.
    pub(super) fn put(&mut self, kind: ConditionType, content: ConditionContent, observed_generation: i64) {
        self.set(Condition::new(kind, content, observed_generation));
    }

    /// The condition of a type.
    pub fn get(&self, kind: ConditionType) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.kind == kind)
    }

    /// Whether the condition of a type exists and is `True`.
    pub fn is_true(&self, kind: ConditionType) -> bool {
        self.get(kind).is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// All conditions, sorted by type.
    pub fn iter(&self) -> std::slice::Iter<'_, Condition> {
        self.0.iter()
    }
}

impl From<Condition> for Conditions {
    fn from(condition: Condition) -> Self {
        let mut conditions = Self::default();
        conditions.set(condition);
        conditions
    }
}

impl<'a> IntoIterator for &'a Conditions {
    type Item = &'a Condition;
    type IntoIter = std::slice::Iter<'a, Condition>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn truncate(message: &mut String) {
    const ELLIPSIS: &str = " ...";
    if message.len() > MAX_MESSAGE_BYTES {
        let mut end = MAX_MESSAGE_BYTES - ELLIPSIS.len();
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(ELLIPSIS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_longer_than_the_api_allows_is_cut_at_a_character() {
        let mut conditions = Conditions::default();
        conditions.set(Condition {
            kind: ConditionType::Accepted,
            status: ConditionStatus::True,
            reason: Reason::Accepted,
            message: "\u{e9}".repeat(MAX_MESSAGE_BYTES),
            observed_generation: 1,
        });
        let message = &conditions.get(ConditionType::Accepted).unwrap().message;
        assert!(message.len() <= MAX_MESSAGE_BYTES);
        assert!(message.ends_with(" ..."));
    }
}
