//! The lines of the fields of a document.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::yaml::AtLine;

/// The lines of the values of a document. Its `Debug` text lacks the keys, which may be those of a Secret.
pub struct Lines {
    content: Content,
    /// The first line with content in the stream, from 1.
    line: usize,
    /// The number of lines of the stream before the text of the document.
    before: usize,
}

/// The places of the values in a value.
pub(super) enum Content {
    Scalar,
    List(Vec<AtLine<Content>>),
    /// Each value has the line of its key.
    Map(Vec<(String, AtLine<Content>)>),
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("line", &self.line).finish_non_exhaustive()
    }
}

impl Lines {
    pub(super) const fn new(content: Content, line: usize, before: usize) -> Self {
        Self { content, line, before }
    }

    /// The line of a field in the stream, from 1: that of its key, or of its start in a list. A path has the form
    /// `spec.rules[0].matches`; a field that is absent has the line of the innermost object around its place.
    pub fn of(&self, path: &str) -> usize {
        let (mut content, mut line, mut path) = (&self.content, self.line, path);
        while let Some((inner, rest)) = content.step(path) {
            line = self.before + inner.line;
            (content, path) = (&inner.value, rest);
        }
        line
    }
}

impl Content {
    /// The value to which the first step of a path leads, and the rest of the path.
    fn step<'p>(&self, path: &'p str) -> Option<(&AtLine<Self>, &'p str)> {
        match self {
            Self::Scalar => None,
            Self::List(items) => {
                let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
                Some((items.get(index.parse::<usize>().ok()?)?, rest))
            }
            Self::Map(fields) => {
                let path = path.strip_prefix('.').unwrap_or(path);
                let found = fields.iter().filter_map(|(name, value)| Some((name, value, after(path, name)?)));
                // The names of annotations have points of their own.
                let (_, value, rest) = found.max_by_key(|(name, ..)| name.len())?;
                Some((value, rest))
            }
        }
    }
}

/// The rest of a path that begins with the name of a field.
fn after<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    let bracketed = path.strip_prefix('[').and_then(|path| path.strip_prefix(name)?.strip_prefix(']'));
    let plain = || path.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    bracketed.or_else(plain)
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

macro_rules! scalars {
    ($($visit:ident: $scalar:ty)+) => {
        $(fn $visit<E>(self, _: $scalar) -> Result<Content, E> { Ok(Content::Scalar) })+
    };
}

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    scalars! { visit_bool: bool visit_i64: i64 visit_u64: u64 visit_f64: f64 visit_str: &str visit_i128: i128 visit_u128: u128 }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Content::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Content::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Content, A::Error> {
        let mut map = Vec::new();
        while let Some((name, value)) = fields.next_entry::<AtLine<String>, Content>()? {
            map.push((name.value, AtLine { line: name.line, value }));
        }
        Ok(Content::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::super::documents;

    fn lines(text: &str, paths: &[&str]) -> Vec<usize> {
        let documents = documents(text);
        let lines = documents.last().unwrap().lines().unwrap();
        paths.iter().map(|path| lines.of(path)).collect()
    }

    #[test]
    fn fields_have_the_line_of_their_key() {
        let text = "a: 1\n---\n# comment\nspec:\n  rules:\n  - name: one\n    matches:\n    - path: {\n        type: Exact,\n        \
                    value: /}\n  - matches: [{ path: x },\n      { path: y }]\n";
        let paths =
            ["", "spec", "spec.rules[0]", "spec.rules[0].matches", "spec.rules[0].matches[0].path.value"];
        assert_eq!(lines(text, &paths), [4, 4, 6, 7, 10]);
        assert_eq!(
            lines(text, &["spec.rules[1].matches[0].path", "spec.rules[1].matches[1].path"]),
            [11, 12]
        );
    }

    #[test]
    fn an_absent_field_has_the_line_of_the_object_around_it() {
        let text = "kind: A\nspec:\n  rules:\n  - name: one\n";
        assert_eq!(
            lines(text, &["spec.rules[0].backendRefs[0].port", "spec.rules[4]", "status", "spec."]),
            [4, 3, 1, 2]
        );
    }

    #[test]
    fn names_with_points_are_found_as_a_whole() {
        let text = "metadata:\n  annotations:\n    a: 1\n    a.b: 2\n    a.b/c: 3\n";
        let path = |name: &str| format!("metadata.annotations{name}");
        let paths = [path(".a"), path(".a.b"), path("[a.b/c]"), path(".a.b/c")];
        assert_eq!(lines(text, &paths.each_ref().map(String::as_str)), [3, 4, 5, 5]);
    }

    #[test]
    fn aliases_and_merged_fields_have_the_line_of_their_use() {
        let text = "base: &base\n  port: 80\nother: *base\nmerged:\n  <<: *base\n  name: x\n1: y\n";
        assert_eq!(lines(text, &["base.port", "other", "merged.name", "merged", "1"]), [2, 3, 6, 4, 7]);
    }

    #[test]
    fn json_has_lines_too() {
        let text = "{\n  \"kind\": \"List\",\n\t\"items\": [\n    { \"a\": 1 },\n    {\n      \"a\": null }\n  ]\n}\n";
        assert_eq!(lines(text, &["items", "items[0].a", "items[1]", "items[1].a"]), [3, 4, 5, 6]);
    }
}
