//! Routes as translation writes them: a host and a backend of three endpoints each.

use std::collections::BTreeMap;

use bytes::Bytes;
use pingsix_sink::{Desired, Document, DocumentSet, Key, OrderHint, Owner, Scope};

/// The prefix of a data plane.
pub(crate) const PREFIX: &str = "/pingsix/default/web";

pub(crate) fn scope() -> Scope {
    Scope::new(PREFIX).unwrap()
}

/// The published documents, with a new value for each change of a route.
pub(crate) struct Routes {
    documents: DocumentSet,
    count: usize,
    changes: usize,
}

impl Routes {
    pub(crate) fn new(count: usize) -> Self {
        let documents = (0..count).map(|number| document(number, 0));
        Self { documents: DocumentSet::new(documents).unwrap(), count, changes: 0 }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn desired(&self) -> Desired {
        Desired::new(scope(), self.documents.clone())
    }

    /// The same documents without shared memory.
    pub(crate) fn unshared(&self) -> Desired {
        let documents: Vec<Document> = self.documents.iter().cloned().collect();
        Desired::new(scope(), DocumentSet::new(documents.into_iter().rev()).unwrap())
    }

    /// Gives one route a new value.
    pub(crate) fn change(&mut self, number: usize) -> Document {
        self.change_many([number]).remove(0)
    }

    /// Gives some routes new values.
    pub(crate) fn change_many(&mut self, numbers: impl IntoIterator<Item = usize>) -> Vec<Document> {
        self.changes += 1;
        let changed = numbers.into_iter().map(|number| document(number % self.count, self.changes));
        let changed: BTreeMap<Key, Document> =
            changed.map(|document| (document.key.clone(), document)).collect();
        let all = changed.values().cloned().collect();
        let changed = changed.into_iter().map(|(key, document)| (key, Some(document))).collect();
        self.documents = self.documents.with_changes(changed);
        all
    }

    /// All documents with their full keys.
    pub(crate) fn pairs(&self) -> Vec<(Bytes, Bytes)> {
        self.documents.iter().map(pair).collect()
    }
}

/// A document with its full key.
pub(crate) fn pair(document: &Document) -> (Bytes, Bytes) {
    (Bytes::from(scope().full_key(&document.key)), document.value.clone())
}

fn document(number: usize, change: usize) -> Document {
    let (high, low) = (number / 250, number % 250 + 1);
    let value = format!(
        r#"{{"host":"shop-{number}.example","upstream":{{"nodes":{{"10.1.{high}.{low}:8080":1,"10.2.{high}.{low}:8080":1,"10.3.{high}.{low}:{}":1}}}},"uris":["/","/{{*p}}"]}}"#,
        1 + change % 60_000
    );
    Document {
        key: Key::new(format!("routes/r{number:012}")).unwrap(),
        value: value.into(),
        order: OrderHint(2),
        owner: Owner::new("bench"),
    }
}
