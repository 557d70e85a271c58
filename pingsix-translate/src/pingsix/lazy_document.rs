//! The stored form of a document.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;

use super::document::json_len;
use super::{Document, ResourceKind, RoutePatterns, Summary};

/// A document of a [`Config`](super::Config): decoded, encoded, or both.
///
/// Sinks deliver the encoded form, which takes a tenth of the memory, so translation stores documents encoded. The
/// first access decodes a document, which then stays decoded. A [copy](Self::detached) can be inspected and dropped.
#[derive(Clone)]
pub struct LazyDocument {
    kind: ResourceKind,
    /// At least one of both forms is present.
    json: Option<Bytes>,
    document: OnceLock<Box<Document>>,
    /// Present in documents that were encoded.
    summary: Option<Box<Summary>>,
}

impl LazyDocument {
    /// An encoded document.
    pub(super) fn written(document: &Document, summary: Summary) -> Self {
        let json = Bytes::from(document.to_json());
        let summary = Some(Box::new(summary));
        Self { kind: document.kind(), json: Some(json), document: OnceLock::new(), summary }
    }

    /// The summary of a document that was encoded.
    pub(super) fn summary(&self) -> Option<&Summary> {
        self.summary.as_deref()
    }

    /// The document.
    pub fn document(&self) -> &Document {
        self.document.get_or_init(|| Box::new(self.decode()))
    }

    /// The document, decoded for this call if necessary.
    pub(crate) fn look(&self) -> Cow<'_, Document> {
        self.document.get().map_or_else(|| Cow::Owned(self.decode()), |document| Cow::Borrowed(&**document))
    }

    /// The canonical JSON, see [`Document::to_json`].
    pub fn json(&self) -> Bytes {
        self.json.clone().unwrap_or_else(|| Bytes::from(self.document().to_json()))
    }

    /// The length of [`json`](Self::json).
    pub fn json_len(&self) -> usize {
        self.json.as_ref().map_or_else(|| json_len(self.document()), Bytes::len)
    }

    /// A copy without the decoded form.
    #[must_use]
    pub fn detached(&self) -> Self {
        let document = if self.json.is_some() { OnceLock::new() } else { self.document.clone() };
        Self { kind: self.kind, json: self.json.clone(), document, summary: self.summary.clone() }
    }

    /// The patterns of a Route, without decoding the rest of the document.
    pub(crate) fn route_patterns(&self) -> Option<RoutePatterns> {
        if self.kind != ResourceKind::Route {
            return None;
        }
        match (self.document.get().map(AsRef::as_ref), &self.json) {
            (Some(Document::Route(route)), _) => Some(route.patterns()),
            (_, Some(json)) => serde_json::from_slice(json).ok(),
            (_, None) => None,
        }
    }

    fn decode(&self) -> Document {
        let json = self.json.as_deref().unwrap_or_default();
        Document::read(self.kind, json).expect("it was written down by us, and what is written can be read")
    }
}

impl From<Document> for LazyDocument {
    fn from(document: Document) -> Self {
        Self {
            kind: document.kind(),
            json: None,
            document: OnceLock::from(Box::new(document)),
            summary: None,
        }
    }
}

impl PartialEq for LazyDocument {
    fn eq(&self, other: &Self) -> bool {
        match (&self.json, &other.json) {
            (Some(one), Some(other_json)) => self.kind == other.kind && one == other_json,
            (_, _) => self.look() == other.look(),
        }
    }
}

impl Eq for LazyDocument {}

/// Prints the document, without secrets.
impl fmt::Debug for LazyDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pingsix::validate::encode;
    use crate::pingsix::{Config, DocumentKey, Route};

    fn encoded(document: &Document) -> LazyDocument {
        encode(&DocumentKey::new(ResourceKind::Route, "r"), document)
    }

    fn route() -> Document {
        Document::Route(Route {
            uris: vec!["/a".to_owned(), "/a/{*p}".to_owned()],
            host: Some("a.test".to_owned()),
            priority: 7,
            upstream_id: Some("u".to_owned()),
            ..Route::default()
        })
    }

    #[test]
    fn an_encoded_document_equals_the_decoded_one() {
        let (written, decoded) = (encoded(&route()), LazyDocument::from(route()));
        assert_eq!(written.document(), &route());
        assert_eq!((written.json(), written.json_len()), (decoded.json(), decoded.json_len()));
        assert_eq!(written, decoded);
        assert_ne!(written, encoded(&Document::Route(Route { priority: 8, ..Route::default() })));
    }

    #[test]
    fn a_decoded_copy_leaves_the_original_encoded() {
        let key = DocumentKey::new(ResourceKind::Route, "r");
        let config: Config = [(key.clone(), encoded(&route()))].into_iter().collect();
        assert_eq!(config.detached().get(&key), Some(&route()));
        assert!(config.get_lazy(&key).is_some_and(|held| held.document.get().is_none()));
    }
}
