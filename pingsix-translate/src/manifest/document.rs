//! The documents of a stream of YAML or JSON.

use std::fmt;

use serde_json::Value;

use super::lines::{Content, Lines};
use super::yaml;

/// Text that is no YAML. The message never quotes the text, which may hold a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct YamlError {
    /// The line of the problem in the stream, from 1; the first line of the document if the problem has no line.
    pub line: usize,
    /// The problem in words.
    pub message: String,
}

/// A document of a stream. Its `Debug` text lacks the content, which may be a Secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Document<'a> {
    number: usize,
    line: usize,
    /// The line on which the text starts, from 1.
    first_line: usize,
    text: &'a str,
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("number", &self.number)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

impl Document<'_> {
    /// The place in the stream, from 1. Documents without content do not count.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// The first line with content, from 1.
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// [`YamlError`] for a text that is no YAML, or beyond five million values.
    pub fn decode(&self) -> Result<Value, YamlError> {
        yaml::decode(self.text).map_err(|(line, message)| {
            let line = line.map_or(self.line, |line| self.first_line + line - 1);
            YamlError { line, message: message.trim_end_matches('.').to_owned() }
        })
    }

    /// The lines of the values; `None` for a text that is no YAML.
    pub fn lines(&self) -> Option<Lines> {
        let content: Content = yaml::parse(self.text).ok()?;
        Some(Lines::new(content, self.line, self.first_line - 1))
    }

    /// The line of each item of a list of objects, from 1, if the text is laid out as tools write it: an item begins
    /// with its dash or brace, and nothing else stands as far to the left. Empty when there is any doubt; `count` is
    /// the number of items.
    pub fn item_lines(&self, count: usize) -> Vec<usize> {
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

/// The documents of a stream of YAML or JSON. Document markers, which YAML forbids inside of a document, end each of
/// them, so a problem in one document does not affect the others. Documents without content are left out.
pub fn documents(stream: &str) -> Vec<Document<'_>> {
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
        .map(|(index, (first_line, skipped, (start, end)))| Document {
            number: index + 1,
            line: first_line + skipped,
            first_line,
            text: &stream[start..end],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_cut_at_its_markers() {
        let stream =
            "# nothing\n---\na: 1\n---\n# only a comment\n--- \nb: |\n  ----\n  ---x\n...\n---\nc: 3";
        let places: Vec<_> = documents(stream).iter().map(|one| (one.number(), one.line())).collect();
        assert_eq!(places, [(1, 3), (2, 7), (3, 12)]);
        let values: Vec<Value> = documents(stream).iter().map(|one| one.decode().unwrap()).collect();
        assert_eq!(values[1], serde_json::json!({ "b": "----\n---x\n" }));
    }

    #[test]
    fn problems_have_a_line_and_quote_nothing() {
        let error = |text| documents(text)[0].decode().unwrap_err();
        assert!(!error("a: 1\nkey: \"hunter2\nb: [\n").message.contains("hunter2"));
        let twice = error("# a comment\n\na: 1\na: 2\n");
        assert_eq!((twice.line, twice.message.as_str()), (4, "duplicate mapping key: a"));
        let second = documents("a: 1\n---\nb: 1\nb: 2\n")[1].decode().unwrap_err();
        assert_eq!(second.to_string(), "line 4: duplicate mapping key: b");
    }

    #[test]
    fn limits_are_told_in_words() {
        let message = |text: &str| documents(text)[0].decode().unwrap_err().message;
        let lists = |names: &str| -> String {
            let lines = names.as_bytes().windows(2).map(|pair| {
                let (from, to) = (char::from(pair[0]), char::from(pair[1]));
                format!("{to}: &{to} [{}]\n", vec![format!("*{from}"); 10].join(", "))
            });
            lines.collect()
        };
        let bomb = format!("a: &a [x, x, x, x, x, x, x, x, x, x]\n{}", lists("abcdefghi"));
        assert_eq!(message(&bomb), "the aliases are too many, or stand for too much content");
        // Five aliases are allowed to be long, and 80 of them are not.
        let long = |aliases: usize| {
            let names: Vec<String> = (0..10).map(|index| format!("&b{index} y")).collect();
            let aliases = vec!["*a"; aliases].join(", ");
            format!("a: &a {}\nb: [{}]\nc: [{aliases}]\n", "x".repeat(1 << 14), names.join(", "))
        };
        assert!(documents(&long(5))[0].decode().is_ok());
        assert_eq!(message(&long(80)), "the aliases are too many, or stand for too much content");
        let deep = format!("{}{}", "[".repeat(80), "]".repeat(80));
        assert_eq!(message(&deep), "the nesting is too deep");
    }
}
