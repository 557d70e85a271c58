//! YAML in and out: the only file that knows the crate behind it.

use serde_json::Value;

/// Text that is no YAML. The message never quotes the text, which may hold a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    /// The line of the fault, from 1, when it is known.
    pub(crate) line: Option<usize>,
    pub(crate) message: String,
}

/// Decodes one document.
pub(crate) fn decode(text: &str) -> Result<Value, YamlError> {
    // A YAML parser also reads JSON, but not at the speed of one made for it.
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_events: 10_000_000, max_nodes: 5_000_000 },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| YamlError {
        line: error
            .location()
            .and_then(|location| usize::try_from(location.line()).ok())
            .filter(|line| *line > 0),
        message: readable(&error.without_snippet().to_string()),
    })
}

/// The message of the parser without its quotations, its position, which is shown apart, and its advice to programmers.
fn readable(message: &str) -> String {
    let message = message.split_once(" at line ").map_or(message, |(message, _)| message);
    let message = message.split_once(", set DuplicateKeyPolicy").map_or(message, |(message, _)| message);
    unquoted(message)
}

/// Encodes a value as one document, without a line of dashes.
pub(crate) fn encode(value: &Value) -> anyhow::Result<String> {
    // Long lines stay as they are: nobody wraps a certificate or a pattern by hand.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    Ok(serde_saphyr::to_string_with_options(value, options)?)
}

/// A document of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    /// Its place in the stream, from 1.
    pub(crate) number: usize,
    /// The first line with content, from 1.
    pub(crate) line: usize,
    /// The line its text starts on, from 1.
    pub(crate) first_line: usize,
    pub(crate) text: &'a str,
}

impl Chunk<'_> {
    /// The line of each item of a list of objects, from 1, if the text is laid out as tools write it: an item begins
    /// with its dash or brace, and nothing else stands as far to the left. Empty when there is any doubt.
    pub(crate) fn item_lines(&self, count: usize) -> Vec<usize> {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let mut lines = self.text.lines().enumerate().map(|(index, line)| (self.first_line + index, line));
        if !lines.any(|(_, line)| matches!(line.trim(), "items:" | "\"items\": [")) {
            return Vec::new();
        }
        let mut lines = lines.filter(|(_, line)| is_content(line)).peekable();
        let Some(left) = lines.peek().map(|(_, line)| indent(line)) else { return Vec::new() };
        let found: Vec<usize> = lines
            .take_while(|(_, line)| indent(line) >= left)
            .filter(|(_, line)| indent(line) == left)
            .take_while(|(_, line)| line.trim_start().starts_with(['-', '{', '}']))
            .filter(|(_, line)| !line.trim_start().starts_with('}'))
            .map(|(number, _)| number)
            .collect();
        if found.len() == count { found } else { Vec::new() }
    }
}

/// Cuts a stream at its document markers, which YAML forbids inside of a document, so that a fault in one document
/// says nothing about the others. Documents without content are left out, and not counted.
pub(crate) fn split(stream: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let (mut start, mut first_line, mut at) = (0, 1, 0);
    let mut push = |text: &'_ str, range: (usize, usize), line: usize| {
        let text: &str = &text[range.0..range.1];
        // Lines with content; directives belong to the document after them and say nothing of interest.
        let content = text.lines().position(|line| {
            let line = line.trim_start();
            !line.is_empty() && !line.starts_with('#') && !line.starts_with('%')
        });
        if let Some(skipped) = content {
            chunks.push((line, skipped, range));
        }
    };
    for (number, line) in stream.split_inclusive('\n').enumerate() {
        let marker = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
        if let Some(rest) = marker
            && (rest.is_empty() || rest.starts_with(char::is_whitespace))
        {
            push(stream, (start, at), first_line);
            // Text after `--- ` on its line belongs to the document.
            start = at + 3;
            first_line = number + 1;
        }
        at += line.len();
    }
    push(stream, (start, at), first_line);
    let chunks = chunks.into_iter().enumerate();
    chunks
        .map(|(index, (first_line, skipped, (start, end)))| Chunk {
            number: index + 1,
            line: first_line + skipped,
            first_line,
            text: &stream[start..end],
        })
        .collect()
}

/// A message without what it quotes.
pub(crate) fn unquoted(message: &str) -> String {
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
    fn a_stream_is_cut_at_its_markers() {
        let stream =
            "# nothing\n---\na: 1\n---\n# only a comment\n--- \nb: |\n  ----\n  ---x\n...\n---\nc: 3";
        let chunks: Vec<_> = split(stream).into_iter().map(|chunk| (chunk.number, chunk.line)).collect();
        assert_eq!(chunks, [(1, 3), (2, 7), (3, 12)]);
        let values: Vec<Value> = split(stream).into_iter().map(|chunk| decode(chunk.text).unwrap()).collect();
        assert_eq!(values[1], serde_json::json!({ "b": "----\n---x\n" }));
    }

    #[test]
    fn faults_have_a_line_and_quote_nothing() {
        let error = decode("a: 1\nkey: \"hunter2\nb: [\n").unwrap_err();
        assert!(error.line.is_some());
        assert!(!error.message.contains("hunter2"), "{error:?}");
        let error = decode("a: 1\na: 2\n").unwrap_err();
        assert_eq!((error.line, error.message.as_str()), (Some(2), "duplicate mapping key: a"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let value = serde_json::json!({
            "uris": ["/", "/{*p}", "*.example.com", "yes", "1e3", "0x1f", "null", "~", "a: b", "# no", " x ", ""],
            "pem": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
            "long": "x".repeat(300), "words": "word ".repeat(100), "multi": "a\n\n b\n\n\n", "empty": {}, "list": [],
            "number": 4_294_967_296_u64, "negative": -1, "float": 1.5, "truth": true, "null": null,
        });
        assert_eq!(decode(&encode(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn quoted_text_is_left_out() {
        assert_eq!(
            unquoted("invalid type: string \"s3\\\"cr\", expected u16"),
            "invalid type: string \"...\", expected u16"
        );
        assert_eq!(unquoted("unknown field `x`, expected `y`"), "unknown field `...`, expected `...`");
    }
}
