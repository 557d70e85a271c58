//! The base configuration.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::FileError;
use crate::resource::ResourceKind;

/// The user's own configuration.
#[derive(Debug, Default)]
pub(super) struct Base {
    pub(super) path: PathBuf,
    /// The settings without resources.
    pub(super) settings: Map<String, Value>,
    /// The user's resources.
    pub(super) lists: BTreeMap<ResourceKind, Vec<Value>>,
}

impl Base {
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        let text = fs::read_to_string(path).map_err(|source| FileError::Io {
            path: path.to_owned(),
            action: "read",
            source,
        })?;
        let failure = |line, problem| FileError::Base { path: path.to_owned(), line, problem };
        let mut settings = match decode(&text) {
            Ok(Value::Object(settings)) => settings,
            // An empty file is an empty configuration.
            Ok(Value::Null) => Map::new(),
            Ok(_) => return Err(failure(None, "is no mapping")),
            Err(line) => return Err(failure(line, "is not YAML, or several documents of it")),
        };
        if settings.get("pingsix").and_then(|pingsix| pingsix.get("etcd")).is_some_and(|etcd| !etcd.is_null())
        {
            return Err(failure(
                None,
                "has pingsix.etcd, and with it PingSIX ignores every resource in the file",
            ));
        }
        let mut lists = BTreeMap::new();
        for kind in ResourceKind::ALL {
            match settings.remove(kind.as_str()) {
                None | Some(Value::Null) => {}
                Some(Value::Array(list)) => {
                    lists.insert(kind, list);
                }
                Some(_) => return Err(failure(None, "has resources that are no list")),
            }
        }
        Ok(Self { path: path.to_owned(), settings, lists })
    }

    /// Whether the user has a resource of this kind and id.
    pub(super) fn has(&self, kind: ResourceKind, id: &str) -> bool {
        self.lists.get(&kind).is_some_and(|list| list.iter().any(|resource| id_of(resource) == Some(id)))
    }
}

/// The id of a resource in a list.
pub(super) fn id_of(resource: &Value) -> Option<&str> {
    resource.get("id")?.as_str()
}

/// Parses one YAML document as PingSIX would; the error is the line at fault, if known.
pub(super) fn decode(text: &str) -> Result<Value, Option<u64>> {
    let options = serde_saphyr::options! {
        // The text at fault may be a secret.
        with_snippet: false,
        // In PingSIX and YAML 1.2, `yes` is a string.
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_events: 10_000_000, max_nodes: 5_000_000 },
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| error.location().map(|location| location.line()).filter(|line| *line > 0))
}
