//! The wanted status of each object; the latest wins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use pingsix_translate::ObjectKey;
use tokio::sync::Notify;

use super::wanted::{StatusEntry, Wanted};

/// The wanted status of each object. Clones are cheap and share one board, for any number of authors and one writer.
#[derive(Clone, Debug, Default)]
pub struct StatusBoard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    content: Mutex<Content>,
    marked: Notify,
}

#[derive(Debug, Default)]
struct Content {
    entries: BTreeMap<Arc<ObjectKey>, Arc<StatusEntry>>,
    /// The objects that the writer should check.
    marks: BTreeSet<Arc<ObjectKey>>,
}

impl StatusBoard {
    /// Sets the wanted status of an object. An equal status causes no write.
    pub fn set(&self, key: ObjectKey, wanted: Wanted) {
        let mut content = self.0.content.lock();
        let known = content.entries.get_key_value(&key).map(|(key, entry)| (key.clone(), entry.clone()));
        let (key, entry) = match known {
            None => {
                let own = wanted.key().filter(|own| ***own == key).cloned();
                let key = own.unwrap_or_else(|| Arc::new(key));
                (key, StatusEntry { wanted, before: None, is_held: false })
            }
            Some((_, entry)) if entry.wanted == wanted && !entry.is_held => return,
            Some((key, entry)) if entry.wanted == wanted => {
                (key, StatusEntry { is_held: false, ..StatusEntry::clone(&entry) })
            }
            Some((key, entry)) => (key, entry.replaced_by(wanted)),
        };
        content.entries.insert(key.clone(), Arc::new(entry));
        self.mark(content, [key]);
    }

    fn mark(&self, mut content: MutexGuard<'_, Content>, keys: impl IntoIterator<Item = Arc<ObjectKey>>) {
        content.marks.extend(keys);
        drop(content);
        self.0.marked.notify_one();
    }

    /// Marks the wanted status of an object as outdated. The written status stays until the next [`set`](Self::set).
    pub fn hold(&self, key: &ObjectKey) {
        let mut content = self.0.content.lock();
        let entry = content.entries.get_mut(key).filter(|entry| !entry.is_held);
        if let Some(entry) = entry {
            *entry = Arc::new(StatusEntry { is_held: true, ..StatusEntry::clone(entry) });
        }
    }

    /// Records a change of the live object, whose status may differ from the written one.
    pub fn touched(&self, key: &ObjectKey) {
        let content = self.0.content.lock();
        if let Some(key) = content.entries.get_key_value(key).map(|(key, _)| key.clone()) {
            self.mark(content, [key]);
        }
    }

    /// Removes a deleted object.
    pub fn removed(&self, key: &ObjectKey) {
        let mut content = self.0.content.lock();
        if let Some((key, _)) = content.entries.remove_entry(key) {
            // The writer drops its own state of the object then.
            self.mark(content, [key]);
        }
    }

    /// All objects with a wanted status, in order.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.0.content.lock().entries.keys().map(|key| ObjectKey::clone(key)).collect()
    }

    /// Whether the status of an object may be written now.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.0.content.lock().entries.get(key).is_some_and(|entry| !entry.is_held)
    }

    /// The wanted status of an object.
    pub fn wanted(&self, key: &ObjectKey) -> Option<Wanted> {
        self.entry(key).map(|entry| entry.wanted.clone())
    }

    pub(super) fn entry(&self, key: &ObjectKey) -> Option<Arc<StatusEntry>> {
        self.0.content.lock().entries.get(key).cloned()
    }

    /// Removes an object after its release, unless it has another wanted status by now.
    pub(super) fn finish_release(&self, key: &ObjectKey, released: &Arc<StatusEntry>) {
        let mut content = self.0.content.lock();
        if content.entries.get(key).is_some_and(|entry| Arc::ptr_eq(entry, released)) {
            content.entries.remove(key);
        }
    }

    /// Marks all objects for a check.
    pub(super) fn mark_all(&self) {
        let content = self.0.content.lock();
        let keys: Vec<_> = content.entries.keys().cloned().collect();
        self.mark(content, keys);
    }

    /// Takes the marked objects.
    pub(super) fn take_marks(&self) -> BTreeSet<Arc<ObjectKey>> {
        std::mem::take(&mut self.0.content.lock().marks)
    }

    /// Waits for a mark.
    pub(super) async fn marked(&self) {
        self.0.marked.notified().await;
    }
}
