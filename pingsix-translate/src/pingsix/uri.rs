//! The parser of paths and queries in PingSIX's version of the http crate.

/// The text without its fragment, if http 1.3.1 parses it as a path and query. That version accepts paths without a
/// leading slash, unlike later ones; an empty path becomes `/`.
pub(super) fn path_and_query(text: &str) -> Option<String> {
    let text = text.split('#').next().unwrap_or_default();
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let in_path =
        |byte: u8| matches!(byte, b'!' | b'"' | b'$'..=b';' | b'=' | b'@'..=b'_' | b'a'..=b'~' | 0x7F..=0xFF);
    let in_query = |byte: u8| matches!(byte, b'!' | b'$'..=b';' | b'=' | b'?'..=0xFF);
    if !path.bytes().all(in_path) || !query.bytes().all(in_query) {
        return None;
    }
    Some(if path.is_empty() { format!("/{text}") } else { text.to_owned() })
}
