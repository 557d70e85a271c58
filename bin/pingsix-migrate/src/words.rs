//! Words of messages.

/// Text on one line, without what a terminal would obey: manifests come from anywhere.
pub fn printable(text: String) -> String {
    if text.contains(char::is_control) { text.replace(char::is_control, "\u{fffd}") } else { text }
}

/// `1 object`, `2 objects`
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
