//! Resources of the API and the cache of this sink's writes.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::mark;
use crate::desired::Scope;
use crate::document::{Digest, Document, Key, OrderHint, Owner};
use crate::resource::{Agreement, ResourceKind, compare};
use crate::revision::Revision;

/// A resource in a list of the API.
pub(super) struct ListedResource {
    pub(super) key: Key,
    pub(super) kind: ResourceKind,
    pub(super) fields: Map<String, Value>,
    pub(super) revision: Revision,
}

/// The documents that this sink wrote and the revisions of the writes.
#[derive(Default)]
pub(super) struct WriteCache(BTreeMap<Key, CachedWrite>);

struct CachedWrite {
    digest: Digest,
    revision: Revision,
    order: OrderHint,
    owner: Owner,
}

impl WriteCache {
    pub(super) fn record(&mut self, sent: &Document, revision: Revision) {
        let written =
            CachedWrite { digest: sent.digest(), revision, order: sent.order, owner: sent.owner.clone() };
        self.0.insert(sent.key.clone(), written);
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

impl ListedResource {
    /// The scope in the mark of the resource.
    pub(super) fn scope(&self) -> Option<&str> {
        mark::scope_of(&self.fields)
    }

    /// The publisher in the mark of the resource.
    pub(super) fn publisher(&self) -> Option<&str> {
        mark::publisher_of(&self.fields)
    }

    pub(super) fn is_of(&self, scope: &Scope) -> bool {
        self.scope() == Some(scope.as_str())
    }

    /// The document that the target holds under this key, for a plan: the document of `sent` if nothing differs.
    pub(super) fn target_document(&self, sent: Option<&Document>, writes: &WriteCache) -> Document {
        let written = writes.0.get(&self.key);
        let value = match sent {
            Some(sent) if self.is_unchanged(sent, written) => sent.value.clone(),
            Some(_) | None => Bytes::new(),
        };
        Document {
            key: self.key.clone(),
            value,
            order: self.order(written),
            owner: written
                .map_or_else(|| Owner::new("an earlier publication"), |written| written.owner.clone()),
        }
    }

    fn is_unchanged(&self, sent: &Document, written: Option<&CachedWrite>) -> bool {
        let Ok(ours) = serde_json::from_slice(&sent.value) else { return false };
        match compare(&ours, &Value::Object(self.fields.clone())) {
            Agreement::Equal => true,
            Agreement::Unknown => written
                .is_some_and(|written| written.revision == self.revision && written.digest == sent.digest()),
            Agreement::Different => false,
        }
    }

    /// The deletion order: by kind, which is always right, and within a kind by the order hint of the write.
    fn order(&self, written: Option<&CachedWrite>) -> OrderHint {
        let kind = ResourceKind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or_default();
        let kind = u32::try_from(kind).unwrap_or_default() << 29;
        OrderHint(kind | (written.map_or(0, |written| written.order.0) >> 3))
    }

    /// The document as the API returns it.
    pub(super) fn into_document(self, scope: &Scope) -> Option<Document> {
        if !self.is_of(scope) {
            return None;
        }
        let order = self.order(None);
        let value = Bytes::from(Value::Object(mark::unmarked(self.fields)).to_string());
        Some(Document { key: self.key, value, order, owner: Owner::new("an earlier publication") })
    }
}
