//! A whole configuration: every document of one prefix.

use serde_json::{Map, Value};

use super::document::Resource;
use super::kind::canonical_prefix;
use super::{
    Document, DocumentKey, GlobalRule, KeyError, LazyDocument, PluginConfig, ResourceKind, Route, Service,
    Ssl, Upstream,
};
use crate::shared_map::SharedMap;

/// The bytes of a list response for each key beside key and value: field tags, lengths and revisions.
const FRAMING: usize = 25;

/// The documents of one prefix, ordered by key and therefore by dependency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config(SharedMap<DocumentKey, LazyDocument>);

impl Config {
    /// No documents.
    pub const fn new() -> Self {
        Self(SharedMap::new())
    }

    /// Inserts a document with an id; the kind of the document completes the key. Returns whether it replaces a
    /// document.
    pub fn insert(&mut self, id: impl Into<String>, document: impl Into<Document>) -> bool {
        let document = document.into();
        self.0.insert(DocumentKey::new(document.kind(), id), document.into())
    }

    /// Removes a document. Returns whether it was present.
    pub fn remove(&mut self, key: &DocumentKey) -> bool {
        self.0.remove(key)
    }

    /// Inserts documents, each with a key of its kind.
    pub(crate) fn extend(&mut self, documents: impl IntoIterator<Item = (DocumentKey, LazyDocument)>) {
        self.0.extend(documents);
    }

    /// The document of a key.
    pub fn get(&self, key: &DocumentKey) -> Option<&Document> {
        self.0.get(key).map(LazyDocument::document)
    }

    /// The stored form of the document of a key.
    pub fn get_lazy(&self, key: &DocumentKey) -> Option<&LazyDocument> {
        self.0.get(key)
    }

    /// Whether there is a document with a key.
    pub fn contains(&self, key: &DocumentKey) -> bool {
        self.0.contains_key(key)
    }

    /// A copy for inspection, whose decoded documents are dropped with it. A translation stores encoded documents,
    /// which take a tenth of the memory of decoded ones.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(self.0.iter().map(|(key, document)| (key.clone(), document.detached())).collect())
    }

    /// The route of an id.
    pub fn route(&self, id: &str) -> Option<&Route> {
        self.one(id)
    }

    /// The named upstream of an id.
    pub fn upstream(&self, id: &str) -> Option<&Upstream> {
        self.one(id)
    }

    /// The service of an id.
    pub fn service(&self, id: &str) -> Option<&Service> {
        self.one(id)
    }

    fn one<R: Resource>(&self, id: &str) -> Option<&R> {
        R::of(self.get(&DocumentKey::new(R::KIND, id))?)
    }

    /// The host patterns under which PingSIX stores a route: its own ones, or those of its service.
    pub(crate) fn hosts_of<'c>(&'c self, route: &'c Route) -> &'c [String] {
        let own = route.host_patterns();
        let service = || self.service(route.service_id.as_deref()?);
        if own.is_empty() { service().map_or(own, |service| &service.hosts) } else { own }
    }

    /// The configuration of a plugin of a Route or, if it has none of that name, of its service (`src/proxy/route.rs`).
    ///
    /// # Errors
    ///
    /// As [`Plugins::get`](super::Plugins::get).
    pub fn plugin<C: PluginConfig>(&self, route: &Route) -> Option<Result<C, serde_json::Error>> {
        let of_service = || self.service(route.service_id.as_deref()?)?.plugins.get();
        route.plugins.get().or_else(of_service)
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
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&DocumentKey, &Document)> {
        self.0.iter().map(|(key, document)| (key, document.document()))
    }

    /// The documents, with structural sharing between configurations.
    pub const fn documents(&self) -> &SharedMap<DocumentKey, LazyDocument> {
        &self.0
    }

    /// The documents of a kind in id order.
    pub fn of_kind(&self, kind: ResourceKind) -> impl Iterator<Item = (&DocumentKey, &Document)> {
        let of_kind =
            self.0.from_key(&DocumentKey::new(kind, "")).take_while(move |(key, _)| key.kind == kind);
        of_kind.map(|(key, document)| (key, document.document()))
    }

    /// The named upstreams in id order.
    pub fn upstreams(&self) -> impl Iterator<Item = (&DocumentKey, &Upstream)> {
        self.all()
    }

    /// The services in id order.
    pub fn services(&self) -> impl Iterator<Item = (&DocumentKey, &Service)> {
        self.all()
    }

    /// The routes in id order.
    pub fn routes(&self) -> impl Iterator<Item = (&DocumentKey, &Route)> {
        self.all()
    }

    /// The global rules in id order.
    pub fn global_rules(&self) -> impl Iterator<Item = (&DocumentKey, &GlobalRule)> {
        self.all()
    }

    /// The certificates in id order.
    pub fn ssls(&self) -> impl Iterator<Item = (&DocumentKey, &Ssl)> {
        self.all()
    }

    fn all<R: Resource>(&self) -> impl Iterator<Item = (&DocumentKey, &R)> {
        self.of_kind(R::KIND).filter_map(|(key, document)| Some((key, R::of(document)?)))
    }

    /// The size in bytes of the list response for a prefix: all keys with the prefix, all values, and their framing.
    /// PingSIX reads the prefix in one response of at most 4 MiB (`src/config/etcd.rs`).
    pub fn size_in_bytes(&self, prefix: &str) -> usize {
        let prefix = canonical_prefix(prefix).len();
        self.0.iter().map(|(key, document)| prefix + listed_bytes(key, document)).sum()
    }

    /// The etcd keys and values of a prefix, in key order.
    pub fn to_pairs(&self, prefix: &str) -> impl Iterator<Item = (String, String)> {
        let prefix = canonical_prefix(prefix);
        self.0.iter().map(move |(key, document)| {
            (format!("{prefix}{key}"), String::from_utf8_lossy(&document.json()).into_owned())
        })
    }

    /// Reads the etcd keys and values of a prefix. Metadata keys are skipped, as PingSIX does.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] for the first pair that PingSIX would not decode. The acceptance rules list all such pairs.
    pub fn from_pairs<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        prefix: &str,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, DecodeError> {
        let prefix = canonical_prefix(prefix);
        let mut config = Self::new();
        for (key, value) in pairs {
            let Some(key) = relative_key(&prefix, key.as_ref())? else { continue };
            let document = serde_json::from_slice::<Value>(value.as_ref())
                .and_then(|value| Document::decode(key.kind, &value))
                .map_err(|source| DecodeError::Value { key: key.clone(), source })?;
            config.0.insert(key, document.into());
        }
        Ok(config)
    }

    /// Reads PingSIX's static form: top-level lists `upstreams`, `services`, `routes`, `global_rules` and
    /// `ssls`, each item with its `id`. Other top-level fields are ignored.
    ///
    /// # Errors
    ///
    /// [`StaticConfigError`] for the first violation for which PingSIX would refuse to start.
    pub fn from_static(value: &Value) -> Result<Self, StaticConfigError> {
        let mut config = Self::new();
        for kind in ResourceKind::ALL {
            let Some(list) = value.get(kind.segment()) else { continue };
            let items = list.as_array().ok_or(StaticConfigError::NotAList { kind })?;
            for (index, item) in items.iter().enumerate() {
                let id = item.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
                let id = id.ok_or(StaticConfigError::NoId { kind, index })?;
                let key = DocumentKey::new(kind, id);
                let document = Document::decode(kind, item)
                    .map_err(|source| DecodeError::Value { key: key.clone(), source })?;
                if config.0.insert(key.clone(), document.into()) {
                    return Err(StaticConfigError::DuplicateId { key });
                }
            }
        }
        Ok(config)
    }

    /// PingSIX's static form: the inverse of [`from_static`](Self::from_static). Kinds without documents are
    /// left out.
    pub fn to_static(&self) -> Value {
        let mut lists = Map::new();
        for kind in ResourceKind::ALL {
            let items: Vec<Value> =
                self.of_kind(kind).map(|(key, document)| with_id(key, document)).collect();
            if !items.is_empty() {
                lists.insert(kind.segment().to_owned(), Value::Array(items));
            }
        }
        Value::Object(lists)
    }
}

/// The size in bytes of a document in a list response, without its prefix.
pub(crate) fn listed_bytes(key: &DocumentKey, document: &LazyDocument) -> usize {
    listed_len(key.len(), document.json_len())
}

/// The size in bytes of a key and a value of these lengths in a list response.
pub(crate) const fn listed_len(key: usize, value: usize) -> usize {
    key + value + FRAMING
}

impl FromIterator<(DocumentKey, Document)> for Config {
    /// The kind of a key must be that of its document.
    fn from_iter<I: IntoIterator<Item = (DocumentKey, Document)>>(documents: I) -> Self {
        Self(documents.into_iter().map(|(key, document)| (key, document.into())).collect())
    }
}

impl FromIterator<(DocumentKey, LazyDocument)> for Config {
    /// The kind of a key must be that of its document.
    fn from_iter<I: IntoIterator<Item = (DocumentKey, LazyDocument)>>(documents: I) -> Self {
        Self(documents.into_iter().collect())
    }
}

impl FromIterator<(String, Document)> for Config {
    fn from_iter<I: IntoIterator<Item = (String, Document)>>(documents: I) -> Self {
        let mut config = Self::new();
        for (id, document) in documents {
            config.insert(id, document);
        }
        config
    }
}

fn with_id(key: &DocumentKey, document: &Document) -> Value {
    let mut value = document.to_value();
    if let Value::Object(fields) = &mut value {
        fields.insert("id".to_owned(), Value::String(key.id.clone()));
    }
    value
}

/// Parses the part of an etcd key behind the canonical prefix; `None` for metadata.
pub(super) fn relative_key(prefix: &str, key: &[u8]) -> Result<Option<DocumentKey>, KeyError> {
    let text = std::str::from_utf8(key)
        .map_err(|_| KeyError::NotText { path: String::from_utf8_lossy(key).into_owned() })?;
    let Some(path) = text.strip_prefix(prefix) else {
        return Err(KeyError::ForeignPrefix { path: text.to_owned() });
    };
    DocumentKey::parse(path)
}

/// The error of reading a configuration.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A key names no document.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A value is no JSON, or does not decode as its kind. The source may quote the value and thereby a secret; this
    /// text does not.
    #[error("document {key} cannot be decoded")]
    Value {
        /// The key below the prefix.
        key: DocumentKey,
        /// The error of the decoder.
        #[source]
        source: serde_json::Error,
    },
}

/// The error of reading a static configuration.
#[derive(Debug, thiserror::Error)]
pub enum StaticConfigError {
    /// A field that must be a list is something else.
    #[error("field \"{kind}\" is not a list")]
    NotAList {
        /// The kind of the field.
        kind: ResourceKind,
    },
    /// An item has no id, an empty one, or one that is not text.
    #[error("item {index} of \"{kind}\" has no id")]
    NoId {
        /// The kind of the item.
        kind: ResourceKind,
        /// The index in the list.
        index: usize,
    },
    /// Two items of a list share an id.
    #[error("document {key} is given twice")]
    DuplicateId {
        /// The shared key.
        key: DocumentKey,
    },
    /// An item cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}
