//! All stream documents of one prefix.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{StreamCa, StreamDocument, StreamKey, StreamKind, StreamRoute, StreamSsl, StreamUpstream};
use crate::pingsix::{canonical_prefix, listed_len};

/// The stream documents of one prefix, ordered by key and therefore by dependency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamConfig(BTreeMap<StreamKey, StreamDocument>);

impl StreamConfig {
    /// No documents.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Inserts a document with an id; the kind of the document completes the key. Returns the replaced document.
    pub fn insert(
        &mut self,
        id: impl Into<String>,
        document: impl Into<StreamDocument>,
    ) -> Option<StreamDocument> {
        let document = document.into();
        self.0.insert(StreamKey::new(document.kind(), id), document)
    }

    /// Removes a document, and returns it.
    pub fn remove(&mut self, key: &StreamKey) -> Option<StreamDocument> {
        self.0.remove(key)
    }

    /// The document of a key.
    pub fn get(&self, key: &StreamKey) -> Option<&StreamDocument> {
        self.0.get(key)
    }

    /// The route of an id.
    pub fn route(&self, id: &str) -> Option<&StreamRoute> {
        let document = self.0.get(&StreamKey::new(StreamKind::StreamRoute, id))?;
        if let StreamDocument::StreamRoute(route) = document { Some(route) } else { None }
    }

    /// The named upstream of an id.
    pub fn upstream(&self, id: &str) -> Option<&StreamUpstream> {
        let document = self.0.get(&StreamKey::new(StreamKind::Upstream, id))?;
        if let StreamDocument::Upstream(upstream) = document { Some(upstream) } else { None }
    }

    /// The certificate of an id.
    pub fn ssl(&self, id: &str) -> Option<&StreamSsl> {
        let document = self.0.get(&StreamKey::new(StreamKind::Ssl, id))?;
        if let StreamDocument::Ssl(ssl) = document { Some(ssl) } else { None }
    }

    /// The authorities of an id.
    pub fn ca(&self, id: &str) -> Option<&StreamCa> {
        let document = self.0.get(&StreamKey::new(StreamKind::Ca, id))?;
        if let StreamDocument::Ca(ca) = document { Some(ca) } else { None }
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All documents in key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&StreamKey, &StreamDocument)> {
        self.0.iter()
    }

    /// The routes in id order.
    pub fn routes(&self) -> impl Iterator<Item = (&StreamKey, &StreamRoute)> {
        self.0.iter().filter_map(|(key, document)| match document {
            StreamDocument::StreamRoute(route) => Some((key, route)),
            StreamDocument::Upstream(_) | StreamDocument::Ssl(_) | StreamDocument::Ca(_) => None,
        })
    }

    /// The bytes of the list response for a prefix: every key with the prefix, every value, and the framing of each.
    pub fn size_in_bytes(&self, prefix: &str) -> usize {
        let prefix = canonical_prefix(prefix).len();
        self.0.iter().map(|(key, document)| listed_len(prefix + key.len(), document.json_len())).sum()
    }

    /// The matches of connections: ports, and server names on a port.
    pub fn matcher_entries(&self) -> usize {
        self.routes().map(|(_, route)| route.snis.len().max(1)).sum()
    }

    /// The keys and values of a prefix, in key order.
    pub fn to_pairs(&self, prefix: &str) -> impl Iterator<Item = (String, String)> {
        let prefix = canonical_prefix(prefix);
        self.0.iter().map(move |(key, document)| (format!("{prefix}{key}"), document.to_json()))
    }

    /// Reads the keys and values of a prefix; the inverse of [`to_pairs`](Self::to_pairs). Metadata keys, whose last
    /// segment starts with a dot, are skipped.
    ///
    /// # Errors
    /// [`StreamDecodeError`] for the first pair that is no stream document.
    pub fn from_pairs<K: AsRef<str>, V: AsRef<[u8]>>(
        prefix: &str,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, StreamDecodeError> {
        let prefix = canonical_prefix(prefix);
        let mut config = Self::new();
        for (key, value) in pairs {
            let path = key.as_ref().strip_prefix(&prefix);
            let key =
                path.ok_or("it is not under the prefix").and_then(StreamKey::parse).map_err(|problem| {
                    StreamDecodeError::Key { key: key.as_ref().escape_default().to_string(), problem }
                })?;
            let Some(key) = key else { continue };
            match StreamDocument::decode(&key, value.as_ref()) {
                Ok(document) => config.0.insert(key, document),
                Err(source) => return Err(StreamDecodeError::Value { key, source }),
            };
        }
        Ok(config)
    }

    /// Lists `upstreams`, `ssls`, `cas` and `stream_routes`, each item with its `id`: the form people read. Kinds
    /// without documents are left out.
    pub fn to_static(&self) -> Value {
        let mut lists: Map<String, Value> = Map::new();
        for kind in StreamKind::ALL {
            let items: Vec<Value> = self
                .0
                .iter()
                .filter(|(key, _)| key.kind == kind)
                .map(|(key, document)| with_id(key, document))
                .collect();
            if !items.is_empty() {
                lists.insert(kind.segment().to_owned(), Value::Array(items));
            }
        }
        Value::Object(lists)
    }
}

fn with_id(key: &StreamKey, document: &StreamDocument) -> Value {
    let mut value = document.to_value();
    if let Value::Object(fields) = &mut value {
        fields.insert("id".to_owned(), Value::String(key.id.clone()));
    }
    value
}

/// Reason why keys and values are no stream documents.
#[derive(Debug, thiserror::Error)]
pub enum StreamDecodeError {
    /// A key names no document.
    #[error("key \"{key}\" cannot be used: {problem}")]
    Key {
        /// The whole key, escaped.
        key: String,
        /// The error of the key.
        problem: &'static str,
    },
    /// A value is no JSON, or does not decode as its kind. The source can quote the value and thereby a secret; this text
    /// does not.
    #[error("document {key} cannot be decoded")]
    Value {
        /// The key below the prefix.
        key: StreamKey,
        /// The decoder's error.
        #[source]
        source: serde_json::Error,
    },
}
