//! Conditions and deliveries in colours. Each has its meaning in words, too, because a colour alone is invisible to some.

use maud::{Markup, html};
use pingsix_translate::status::{Condition, ConditionStatus, ConditionType, Conditions, Delivery};

use super::{FindingLevel, cut};

/// The meaning of a colour, from the least to the most urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Neutral,
    Good,
    Warning,
    Bad,
}

impl Mark {
    pub(super) fn with(self, words: &str) -> Markup {
        // Screen readers skip the sign.
        let (class, sign) = match self {
            Self::Good => ("mark good", "✓"),
            Self::Neutral => ("mark neutral", "–"),
            Self::Warning => ("mark warning", "!"),
            Self::Bad => ("mark bad", "✗"),
        };
        html! {
            span class=(class) { span aria-hidden="true" { (sign) } "\u{a0}" (cut(words)) }
        }
    }
}

/// The mark of a condition. Some types are good news if they are `True`, and others are bad news.
pub(super) fn of_condition(condition: &Condition) -> Mark {
    use ConditionStatus::{False, True, Unknown};
    let (good, otherwise) = match condition.kind {
        ConditionType::Accepted | ConditionType::ResolvedRefs | ConditionType::SupportedVersion => {
            (True, Mark::Bad)
        }
        ConditionType::Programmed => (True, Mark::Warning),
        ConditionType::Conflicted => (False, Mark::Bad),
        ConditionType::PartiallyInvalid
        | ConditionType::Limited
        | ConditionType::OverlappingTlsConfig
        | ConditionType::InsecureFrontendValidationMode
        | ConditionType::Overridden => (False, Mark::Warning),
        ConditionType::PolicyAffected => return Mark::Neutral,
    };
    match condition.status {
        Unknown => Mark::Warning,
        status if status == good => Mark::Good,
        True | False => otherwise,
    }
}

/// A condition as type and status, with the reason unless the reason repeats the type.
fn words(condition: &Condition) -> String {
    let Condition { kind, status, reason, .. } = condition;
    if kind.as_str() == reason.as_str() {
        format!("{kind} {}", status.as_str())
    } else {
        format!("{kind} {} ({reason})", status.as_str())
    }
}

/// Conditions beside each other, without messages.
pub(super) fn conditions_in_line(conditions: &Conditions) -> Markup {
    html! {
        @for condition in conditions {
            (of_condition(condition).with(&words(condition))) " "
        }
    }
}

/// Conditions with messages.
pub(super) fn conditions_in_full(conditions: &Conditions) -> Markup {
    html! {
        ul.plain {
            @for condition in conditions {
                li {
                    (of_condition(condition).with(&words(condition)))
                    @if !condition.message.is_empty() { " " span.message { (cut(&condition.message)) } }
                }
            }
        }
    }
}

/// The worst mark of conditions.
pub(super) fn worst(conditions: &Conditions) -> Mark {
    conditions.iter().map(of_condition).max().unwrap_or(Mark::Neutral)
}

/// A delivery in a word and in colour, with its sentence.
pub(super) fn delivery(delivery: &Delivery) -> Markup {
    let (mark, word, message) = match delivery {
        Delivery::Offline => (Mark::Neutral, "not published", None),
        Delivery::Pending(message) => (Mark::Warning, "pending", Some(message)),
        Delivery::Delivered => (Mark::Good, "delivered", None),
        Delivery::Confirmed => (Mark::Good, "confirmed", None),
        Delivery::ConfirmedInPart(message) => (Mark::Warning, "confirmed in part", Some(message)),
        Delivery::ConfirmedByOtherVersion(message) => {
            (Mark::Warning, "confirmed by another version", Some(message))
        }
        Delivery::Refused(message) => (Mark::Bad, "refused", Some(message)),
    };
    html! {
        (mark.with(word))
        @if let Some(message) = message { " " span.message { (cut(message)) } }
    }
}

/// A level of findings.
pub(super) fn level(level: FindingLevel) -> Markup {
    match level {
        FindingLevel::Error => Mark::Bad.with("error"),
        FindingLevel::Warning => Mark::Warning.with("warning"),
        FindingLevel::Info => Mark::Neutral.with("info"),
    }
}
