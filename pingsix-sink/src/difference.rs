//! The diff between a target and the desired documents, without secrets.
//!
//! Values are compared as JSON. For a secret that differs, the diff shows only that it differs. A secret that the
//! target masks or encrypts cannot be compared, and documents without another difference are listed apart.

use serde_json::Value;

use crate::desired::DocumentSet;
use crate::document::{Document, Key, Owner};
use crate::plan::Changed;
use crate::resource::{Agreement, MASK, compare, masked_by_key};

/// The diff from a target to the desired documents, sorted by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Differences {
    /// The documents that a publication would change.
    pub changes: Vec<Difference>,
    /// Documents that are equal except for secrets that cannot be compared.
    pub unknown: Vec<Key>,
}

/// A document that a publication would change.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The key of the document.
    pub key: Key,
    /// The owner, or the former owner, if known.
    pub owner: Owner,
    /// The change.
    pub change: Change,
}

/// Change of a document; values are without secrets.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The document is new.
    Created(Value),
    /// These fields change.
    Updated(Vec<Field>),
    /// The document is deleted.
    Deleted(Value),
}

/// A field that changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The path of the field, such as `plugins.redirect.ret_code` or `uris[1]`.
    pub path: String,
    /// The value in the target; `None` when the field is new.
    pub before: Option<Value>,
    /// The desired value; `None` when the field is removed.
    pub after: Option<Value>,
}

impl Differences {
    /// Number of documents by change.
    pub fn changed(&self) -> Changed {
        self.changes.iter().fold(Changed::default(), |mut changed, difference| {
            match difference.change {
                Change::Created(_) => changed.created += 1,
                Change::Updated(_) => changed.updated += 1,
                Change::Deleted(_) => changed.deleted += 1,
            }
            changed
        })
    }
}

/// The diff from `held` to `desired`.
pub fn differences(held: &DocumentSet, desired: &DocumentSet) -> Differences {
    let mut differences = Differences::default();
    for pair in desired.changes(held) {
        match pair {
            (Some(before), Some(after)) => differences.compare(before, after),
            (None, Some(new)) => differences.add(new, Change::Created(DocumentContent::of(new).masked)),
            (Some(gone), None) => differences.add(gone, Change::Deleted(DocumentContent::of(gone).masked)),
            (None, None) => {}
        }
    }
    differences
}

impl Differences {
    fn add(&mut self, document: &Document, change: Change) {
        let Document { key, owner, .. } = document.clone();
        self.changes.push(Difference { key, owner, change });
    }

    fn compare(&mut self, before: &Document, after: &Document) {
        let (old, new) = (DocumentContent::of(before), DocumentContent::of(after));
        let mut fields = Vec::new();
        if let (Some(before), Some(after)) = (&old.value, &new.value) {
            match compare(after, before) {
                Agreement::Equal => return,
                Agreement::Unknown => {
                    self.unknown.push(new.key);
                    return;
                }
                Agreement::Different => {}
            }
            compare_values(&mut fields, "", [before, &old.masked], [after, &new.masked]);
        } else {
            fields.push(Field { path: String::new(), before: Some(old.masked), after: Some(new.masked) });
        }
        self.add(after, Change::Updated(fields));
    }
}

/// The value of a document and its redacted form.
struct DocumentContent {
    key: Key,
    value: Option<Value>,
    masked: Value,
}

impl DocumentContent {
    fn of(document: &Document) -> Self {
        let value: Option<Value> = serde_json::from_slice(&document.value).ok();
        let masked = match &value {
            Some(value) => masked_by_key(&document.key, value),
            None => format!("({} bytes that are no JSON)", document.value.len()).into(),
        };
        Self { key: document.key.clone(), value, masked }
    }
}

/// Compares two values. Each comes with its redacted form, which has the same shape.
fn compare_values(fields: &mut Vec<Field>, path: &str, before: [&Value; 2], after: [&Value; 2]) {
    let ([old, old_masked], [new, new_masked]) = (before, after);
    if old == new {
        return;
    }
    match (old, old_masked, new, new_masked) {
        (Value::Object(old), Value::Object(old_masked), Value::Object(new), Value::Object(new_masked)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            let mut names: Vec<&String> = old.keys().chain(added).collect();
            names.sort();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match (old.get(name), old_masked.get(name), new.get(name), new_masked.get(name)) {
                    (Some(old), Some(old_masked), Some(new), Some(new_masked)) => {
                        compare_values(fields, &path, [old, old_masked], [new, new_masked]);
                    }
                    (_, before, _, after) => {
                        fields.push(Field { path, before: before.cloned(), after: after.cloned() });
                    }
                }
            }
        }
        (Value::Array(old), Value::Array(old_masked), Value::Array(new), Value::Array(new_masked))
            if old.len() == new.len() =>
        {
            let (old, new) = (old.iter().zip(old_masked), new.iter().zip(new_masked));
            for (index, ((old, old_masked), (new, new_masked))) in old.zip(new).enumerate() {
                compare_values(fields, &format!("{path}[{index}]"), [old, old_masked], [new, new_masked]);
            }
        }
        _ if compare(new, old) == Agreement::Unknown => {}
        _ => {
            let after = if old_masked == new_masked && new_masked == MASK {
                Value::from(CHANGED_SECRET)
            } else {
                new_masked.clone()
            };
            let path = path.to_owned();
            fields.push(Field { path, before: Some(old_masked.clone()), after: Some(after) });
        }
    }
}

/// Placeholder of a secret that differs.
const CHANGED_SECRET: &str = "*** (another)";

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::document::OrderHint;

    fn set(documents: &[(&str, &str)]) -> DocumentSet {
        let documents = documents.iter().map(|(key, value)| Document {
            key: Key::new(*key).unwrap(),
            value: Bytes::from((*value).to_owned()),
            order: OrderHint(0),
            owner: Owner::new(format!("owner of {value}")),
        });
        DocumentSet::new(documents).unwrap()
    }

    fn fields(key: &str, before: &Value, after: &Value) -> Vec<(String, Option<Value>, Option<Value>)> {
        let (before, after) = (before.to_string(), after.to_string());
        let found = differences(&set(&[(key, &before)]), &set(&[(key, &after)]));
        let [Difference { change: Change::Updated(fields), .. }] = found.changes.as_slice() else {
            panic!("{found:?}")
        };
        fields.iter().map(|field| (field.path.clone(), field.before.clone(), field.after.clone())).collect()
    }

    #[test]
    fn created_updated_and_deleted_documents_have_their_owner() {
        let held = set(&[("routes/a", "1"), ("routes/b", "2"), ("routes/c", "3")]);
        let found = differences(&held, &set(&[("routes/b", "2"), ("routes/c", "4"), ("routes/d", "5")]));
        assert_eq!(found.changed().to_string(), "1 created, 1 updated, 1 deleted");
        let told: Vec<_> =
            found.changes.iter().map(|change| format!("{} {}", change.key, change.owner)).collect();
        assert_eq!(told, ["routes/a owner of 1", "routes/c owner of 4", "routes/d owner of 5"]);
        assert_eq!(differences(&held, &held), Differences::default());
    }

    #[test]
    fn fields_are_named_by_their_paths() {
        let before =
            json!({"uris": ["/a", "/b"], "priority": 1, "plugins": {"redirect": {"uri": "/x"}}, "old": 1});
        let after =
            json!({"uris": ["/a", "/c"], "priority": 1, "plugins": {"redirect": {"uri": "/y"}}, "new": []});
        assert_eq!(
            fields("routes/a", &before, &after),
            [
                ("new".to_owned(), None, Some(json!([]))),
                ("old".to_owned(), Some(json!(1)), None),
                ("plugins.redirect.uri".to_owned(), Some(json!("/x")), Some(json!("/y"))),
                ("uris[1]".to_owned(), Some(json!("/b")), Some(json!("/c"))),
            ]
        );
        assert_eq!(
            fields("routes/a", &json!({"uris": ["/a"]}), &json!({"uris": ["/a", "/b"]})),
            [("uris".to_owned(), Some(json!(["/a"])), Some(json!(["/a", "/b"])))]
        );
        let other_bytes = differences(&set(&[("routes/a", "{ }")]), &set(&[("routes/a", "{}")]));
        assert_eq!(other_bytes, Differences::default(), "the same in other bytes");
        let nonsense = differences(&set(&[("routes/a", "sesame")]), &set(&[("routes/a", "{}")]));
        assert!(!format!("{nonsense:?}").contains("\"sesame\""), "{nonsense:?}");
    }

    #[test]
    fn a_different_secret_is_reported_and_never_shown() {
        let ssl = |key: &str, sni: &str| json!({"key": key, "snis": [sni]});
        assert_eq!(
            fields("ssls/a", &ssl("sesame", "a"), &ssl("hunter2", "a")),
            [("key".to_owned(), Some(json!("***")), Some(json!("*** (another)")))]
        );
        // The target masks or encrypts the secret: the diff has all other fields and nothing of the secret.
        for masked in ["***", "$pingsix-enc:v1$AA=="] {
            let found = fields("ssls/a", &ssl(masked, "a"), &ssl("hunter2", "b"));
            assert_eq!(found, [("snis[0]".to_owned(), Some(json!("a")), Some(json!("b")))]);
            let (held, desired) = (ssl(masked, "a").to_string(), ssl("hunter2", "a").to_string());
            let found = differences(&set(&[("ssls/a", &held)]), &set(&[("ssls/a", &desired)]));
            assert_eq!((found.changes.len(), found.unknown.len()), (0, 1));
        }
        // In a document of unknown kind, every field with the name of a secret is a secret.
        for (key, value) in
            [("ssls/a", ssl("sesame", "a")), ("other/a", json!({"a": [{"password": "sesame"}]}))]
        {
            let found = differences(&DocumentSet::default(), &set(&[(key, &value.to_string())]));
            let Change::Created(masked) = &found.changes[0].change else { panic!("{found:?}") };
            assert!(!masked.to_string().contains("sesame"), "{masked}");
        }
    }
}
