//! Redaction of PingSIX's messages about refused documents.
//!
//! PingSIX validates the whole configuration, so a message may quote any document, also one of another writer with
//! unknown secrets. Redaction therefore conceals everything that looks like a secret: PEM, and long quotations.

use super::{AdminError, PreparedDocument};
use crate::document::{Document, Key};
use crate::resource::{MASK, ResourceKind, conceal};

/// Length limit of a message, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// Length limit of a quotation, in characters. Names are shorter, and generated keys are longer.
const MAX_QUOTATION_CHARS: usize = 40;

const QUOTES: [char; 3] = ['"', '\'', '`'];

pub(super) fn refused(sent: &Document, message: String, prepared: &[PreparedDocument<'_>]) -> AdminError {
    let message = prepared.iter().fold(message, |message, PreparedDocument { resource, .. }| {
        conceal(resource.kind, &resource.fields, &message)
    });
    let message = without_long_quotations(&without_pem(&message));
    // Truncation comes last, because redaction does not recognise half a secret.
    AdminError::Refused { key: sent.key.clone(), owner: sent.owner.clone(), message: shortened(&message) }
}

fn shortened(message: &str) -> String {
    let mut short: String = message
        .chars()
        .take(MAX_MESSAGE_CHARS)
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    if short.len() < message.len() {
        short.push('…');
    }
    short
}

/// A block without an end extends to the closing quote, because PEM contains no quotes.
fn without_pem(text: &str) -> String {
    const END: &str = "-----END ";
    const DASHES: &str = "-----";

    let mut redacted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, begun)) = rest.split_once("-----BEGIN ") {
        redacted.push_str(before);
        redacted.push_str(MASK);
        let (block, after) = begun.split_at(begun.find(QUOTES).unwrap_or(begun.len()));
        let ended = block.split_once(END).and_then(|(_, label)| label.split_once(DASHES));
        rest = match ended {
            Some((_, left)) => begun.split_at(block.len() - left.len()).1,
            None => after,
        };
    }
    redacted.push_str(rest);
    redacted
}

/// Keys of resources stay, because they name the resource at fault.
fn without_long_quotations(text: &str) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut chars = text.chars();
    let mut before = ' ';
    while let Some(char) = chars.next() {
        redacted.push(char);
        // A quote after a letter is an apostrophe.
        if QUOTES.contains(&char) && !before.is_alphanumeric() {
            let (quoted, after) = split_quotation(chars.as_str(), char);
            let is_long = quoted.chars().count() > MAX_QUOTATION_CHARS;
            redacted.push_str(if is_long && !is_resource(quoted) { MASK } else { quoted });
            chars = after.chars();
            redacted.extend(chars.next());
        }
        before = char;
    }
    redacted
}

/// Splits before the closing quote. A quote after a backslash does not close.
fn split_quotation(text: &str, quote: char) -> (&str, &str) {
    let mut is_escaped = false;
    let end = text.find(|char| {
        let is_end = char == quote && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
        is_end
    });
    text.split_at(end.unwrap_or(text.len()))
}

fn is_resource(text: &str) -> bool {
    Key::new(text).is_ok_and(|key| ResourceKind::of(&key).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_is_concealed_wherever_it_stands() {
        let block = "-----BEGIN PRIVATE KEY-----\nSESAME\n-----END PRIVATE KEY-----";
        let escaped = block.escape_debug();
        for (text, redacted) in [
            (format!("key {block} is bad, {block}"), "key *** is bad, ***"),
            (format!("string \"{escaped}\\n\", expected u16"), "string \"***\\n\", expected u16"),
            ("string \"-----BEGIN KEY-----\\nSES\", expected u16".to_owned(), "string \"***\", expected u16"),
            ("cut off: -----BEGIN KEY-----\nSES".to_owned(), "cut off: ***"),
            ("cut off: -----BEGIN KEY-----\nSES\n-----END KEY--".to_owned(), "cut off: ***"),
            ("no -----END KEY-----".to_owned(), "no -----END KEY-----"),
        ] {
            assert_eq!(without_pem(&text), redacted);
        }
    }

    #[test]
    fn long_quotations_are_concealed_but_for_keys_of_resources() {
        let (long, id) = ("s".repeat(MAX_QUOTATION_CHARS + 1), "i".repeat(60));
        for (text, redacted) in [
            (
                format!("invalid type: string \"{long}\", expected u16"),
                "invalid type: string \"***\", expected u16",
            ),
            (format!("unknown variant `{long}`, expected `a`"), "unknown variant `***`, expected `a`"),
            (format!("value '{long}' of '{long}'"), "value '***' of '***'"),
            (format!("string \"a\\\"{long}\\\\\" and \"b\""), "string \"***\" and \"b\""),
            (format!("cut off: \"{long}"), "cut off: \"***"),
            (format!("PingSIX's plugin can't take \"{long}\""), "PingSIX's plugin can't take \"***\""),
        ] {
            assert_eq!(without_long_quotations(&text), redacted);
        }
        for kept in [
            format!("invalid resource 'routes/{id}': missing field `uri`"),
            format!("string \"{}\" is short", "s".repeat(MAX_QUOTATION_CHARS)),
            "an end \"".to_owned(),
        ] {
            assert_eq!(without_long_quotations(&kept), kept);
        }
    }

    #[test]
    fn a_long_message_is_cut() {
        let message = shortened(&"ä\n".repeat(MAX_MESSAGE_CHARS));
        assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS + 1);
        assert!(message.starts_with("ä ä ") && message.ends_with(" …"), "{message}");
    }
}
