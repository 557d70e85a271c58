//! YAML in: the only file that uses the YAML crate.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

/// A line of the text, from 1, and the problem there.
pub(super) type TextError = (Option<usize>, String);

/// The most bytes of content that the aliases of a document stand for.
const MAX_ALIASED_BYTES: usize = 1 << 20;

/// Decodes one document.
pub(super) fn decode(text: &str) -> Result<Value, TextError> {
    // A YAML parser also reads JSON, but not at the speed of one made for it.
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    parse(text).map_err(|error| {
        let line = error.location().and_then(|location| usize::try_from(location.line()).ok());
        let error = error.without_snippet();
        let message = exceeded_limit(error).map_or_else(|| readable(&error.to_string()), str::to_owned);
        (line.filter(|line| *line > 0), message)
    })
}

/// Parses one document within limits.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_events: 10_000_000,
            max_nodes: 5_000_000,
            max_total_scalar_bytes: text.len() + MAX_ALIASED_BYTES,
        },
        // An alias makes a short text long.
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// A value with the line on which it starts, from 1. The line of an alias is that of its use.
pub(super) struct AtLine<T> {
    pub(super) line: usize,
    pub(super) value: T,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for AtLine<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = serde_saphyr::Spanned::<T>::deserialize(deserializer)?;
        let line = usize::try_from(spanned.referenced.line()).unwrap_or_default();
        Ok(Self { line, value: spanned.value })
    }
}

/// The limit of the parser that a text exceeds, in words.
fn exceeded_limit(error: &Error) -> Option<&'static str> {
    if let Error::AliasError { error, .. } = error {
        return exceeded_limit(error);
    }
    let by_aliases = matches!(
        error,
        Error::AliasExpansionLimitExceeded { .. }
            | Error::AliasReplayCounterOverflow { .. }
            | Error::AliasReplayLimitExceeded { .. }
            | Error::AliasReplayStackDepthExceeded { .. }
            | Error::Budget {
                breach: BudgetBreach::Aliases { .. }
                    | BudgetBreach::AliasAnchorRatio { .. }
                    | BudgetBreach::Anchors { .. }
                    | BudgetBreach::MergeKeys { .. }
                    | BudgetBreach::RecordedAnchorBytes { .. }
                    | BudgetBreach::RecordedAnchorEvents { .. }
                    // A text without aliases has at most as many bytes as the limit.
                    | BudgetBreach::ScalarBytes { .. },
                ..
            }
    );
    if by_aliases {
        Some("the aliases are too many, or stand for too much content")
    } else if matches!(error, Error::Budget { breach: BudgetBreach::Depth { .. }, .. }) {
        Some("the nesting is too deep")
    } else {
        matches!(error, Error::Budget { .. }).then_some("the document is too large")
    }
}

/// The message of the parser without its quotations, its position, which is shown apart, and its advice to programmers.
fn readable(message: &str) -> String {
    let message = message.split_once(" at line ").map_or(message, |(message, _)| message);
    let message = message.split_once(", set DuplicateKeyPolicy").map_or(message, |(message, _)| message);
    unquoted(message)
}

/// A message without its quotations.
pub(super) fn unquoted(message: &str) -> String {
    let mut kept = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(start) = rest.find(['"', '`', '\u{2018}', '\u{201c}']) {
        let open = rest[start..].chars().next().unwrap_or('"');
        let close = match open {
            '\u{2018}' => '\u{2019}',
            '\u{201c}' => '\u{201d}',
            same => same,
        };
        let inside = start + open.len_utf8();
        let Some(end) =
            rest[inside..].rfind(close).filter(|_| open == '"').or_else(|| rest[inside..].find(close))
        else {
            break;
        };
        kept.push_str(&rest[..inside]);
        kept.push_str("...");
        kept.push(close);
        rest = &rest[inside + end + close.len_utf8()..];
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_left_out() {
        assert_eq!(
            unquoted("invalid type: string \"s3\\\"cr\", expected u16"),
            "invalid type: string \"...\", expected u16"
        );
        assert_eq!(unquoted("unknown field `x`, expected `y`"), "unknown field `...`, expected `...`");
    }
}
