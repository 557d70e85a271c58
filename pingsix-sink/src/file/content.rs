//! The text of a file: a mark in the first line, then the configuration.

use std::fmt;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::base::{Base, decode, id_of};
use super::{FileError, key_of};
use crate::desired::{DocumentSet, Scope};
use crate::document::{Document, OrderHint, Owner};
use crate::error::SinkError;
use crate::resource::{Resource, ResourceKind};
use crate::revision::Revision;

/// The owner and the revision of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) scope: Scope,
    pub(super) revision: Revision,
}

const MARK_PREFIX: &str = "# Written by pingsix-sink, and by nobody else: revision ";
const SCOPE_SEPARATOR: &str = " of ";

impl Mark {
    /// The mark of a file that has one.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (revision, scope) =
            text.lines().next()?.strip_prefix(MARK_PREFIX)?.split_once(SCOPE_SEPARATOR)?;
        Some(Self { scope: Scope::new(scope).ok()?, revision: Revision::new(revision.parse().ok()?)? })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK_PREFIX}{}{SCOPE_SEPARATOR}{}", self.revision, self.scope)
    }
}

/// The text after the mark.
pub(super) fn body_of(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, body)| body)
}

/// The base configuration with the resources added to its lists.
pub(super) fn body(base: &Base, resources: &[Resource<'_>]) -> Result<String, FileError> {
    let mut lists = base.lists.clone();
    for resource in resources {
        let Resource { kind, id, fields, document } = resource;
        if base.has(*kind, id) {
            return Err(FileError::IdConflict {
                key: document.key.clone(),
                owner: document.owner.clone(),
                base: base.path.clone(),
            });
        }
        lists.entry(*kind).or_default().push(Value::Object(with_id(fields, id)));
    }
    // Settings come first, then lists in the order of their references.
    let mut body = String::new();
    encode(&base.settings, &mut body)?;
    for (kind, list) in lists {
        encode(&Map::from_iter([(kind.to_string(), Value::Array(list))]), &mut body)?;
    }
    Ok(body)
}

/// A resource with the field by which PingSIX identifies it.
fn with_id(fields: &Map<String, Value>, id: &str) -> Map<String, Value> {
    let mut fields = fields.clone();
    fields.insert("id".to_owned(), id.into());
    fields
}

fn encode(mapping: &Map<String, Value>, out: &mut String) -> Result<(), FileError> {
    if mapping.is_empty() {
        return Ok(());
    }
    // Long lines stay unfolded, because they are patterns and certificates.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let text = serde_saphyr::to_string_with_options(mapping, options).map_err(|_| FileError::Yaml)?;
    out.push_str(&text);
    Ok(())
}

/// The documents of a file without those of the base configuration.
///
/// An unreadable resource counts as absent, because the next publication replaces the file.
pub(super) fn documents(text: &str, base: &Base) -> DocumentSet {
    let Ok(Value::Object(mut lists)) = decode(text) else { return DocumentSet::default() };
    let mut documents = Vec::new();
    for kind in ResourceKind::ALL {
        let Some(Value::Array(list)) = lists.remove(kind.as_str()) else { continue };
        for resource in list {
            let Some(id) = id_of(&resource).filter(|id| !base.has(kind, id)).map(str::to_owned) else {
                continue;
            };
            let (Some(key), Value::Object(mut fields)) = (key_of(kind, &id), resource) else { continue };
            fields.remove("id");
            let value = Bytes::from(Value::Object(fields).to_string());
            documents.push(Document { key, value, order: OrderHint(0), owner: Owner::new("") });
        }
    }
    DocumentSet::new(documents).unwrap_or_default()
}

/// The resources in the form of [`documents`].
pub(super) fn comparable(resources: &[Resource<'_>]) -> Result<DocumentSet, SinkError> {
    DocumentSet::new(resources.iter().map(|Resource { fields, document, .. }| {
        let mut fields = fields.clone();
        fields.remove("id");
        Document { value: Bytes::from(Value::Object(fields).to_string()), ..(*document).clone() }
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Strings that resemble other YAML types, and syntax of YAML.
    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            proptest::sample::select(vec![
                ":", " ", "#", "- ", "? ", "\n", "\r", "\t", "'", "\"", "\\", "{", "}", "[", "]", ",", "&",
                "*", "!", "|", ">", "%", "@", "`", "0", "1e", ".", "_", "~", "null", "yes", "\u{85}",
                "\u{2028}", "\u{feff}", "---",
            ])
            .prop_map(str::to_owned),
            any::<char>().prop_map(String::from),
        ];
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_string_comes_back(name in text(), value in text()) {
            let mapping = Map::from_iter([(name, Value::from(vec![Value::from(value)]))]);
            let mut out = String::new();
            encode(&mapping, &mut out).unwrap();
            prop_assert_eq!(decode(&out), Ok(Value::Object(mapping)), "{}", out);
        }
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_and_nothing_else_is_one() {
        let mark = Mark { scope: Scope::new("/p/a of b").unwrap(), revision: Revision::MIN };
        assert_eq!(Mark::of(&format!("{mark}\nroutes: []\n")), Some(mark.clone()));
        for other in ["", "routes: []", &format!("\n{mark}"), &mark.to_string().replace('1', "0")] {
            assert_eq!(Mark::of(other), None, "{other}");
        }
    }
}
