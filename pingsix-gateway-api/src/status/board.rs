//! What each status should say, latest wins.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pingsix_translate::ObjectKey;
use tokio::sync::Notify;

use super::wanted::{Stated, Wanted};

/// What the status of each object should say. Cheap to clone: all clones are one board, for any number of authors and one
/// writer.
#[derive(Clone, Debug, Default)]
pub struct StatusBoard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    content: Mutex<Content>,
    marked: Notify,
}

#[derive(Debug, Default)]
struct Content {
    stated: BTreeMap<ObjectKey, Arc<Stated>>,
    /// What the writer has to look at.
    marks: BTreeSet<ObjectKey>,
}

impl StatusBoard {
    /// Says what a status should say from now on. To say the same again is free.
    pub fn set(&self, key: ObjectKey, wanted: Wanted) {
        let mut content = self.0.content.lock();
        match content.stated.entry(key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(Arc::new(Stated { wanted, before: None }));
            }
            Entry::Occupied(entry) if entry.get().wanted == wanted => return,
            Entry::Occupied(mut entry) => {
                let stated = entry.get().followed_by(wanted);
                entry.insert(Arc::new(stated));
            }
        }
        content.marks.insert(key);
        drop(content);
        self.0.marked.notify_one();
    }

    /// The live object has changed: its status may no longer be what was written.
    pub fn touched(&self, key: &ObjectKey) {
        let mut content = self.0.content.lock();
        if content.stated.contains_key(key) {
            content.marks.insert(key.clone());
            drop(content);
            self.0.marked.notify_one();
        }
    }

    /// The object is gone: nothing is to be said of it.
    pub fn removed(&self, key: &ObjectKey) {
        let mut content = self.0.content.lock();
        if content.stated.remove(key).is_some() {
            // The writer forgets it as well.
            content.marks.insert(key.clone());
            drop(content);
            self.0.marked.notify_one();
        }
    }

    /// Every object that has something to be said of, in order. For dumps, and to find those nobody judges any more.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.0.content.lock().stated.keys().cloned().collect()
    }

    /// Whether something is to be said of an object.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.0.content.lock().stated.contains_key(key)
    }

    /// What the status of an object should say.
    pub fn wanted(&self, key: &ObjectKey) -> Option<Wanted> {
        self.stated(key).map(|stated| stated.wanted.clone())
    }

    pub(super) fn stated(&self, key: &ObjectKey) -> Option<Arc<Stated>> {
        self.0.content.lock().stated.get(key).cloned()
    }

    /// Nothing of ours is left in an object that was released, unless it was taken up again meanwhile.
    pub(super) fn let_go(&self, key: &ObjectKey, released: &Arc<Stated>) {
        let mut content = self.0.content.lock();
        if content.stated.get(key).is_some_and(|stated| Arc::ptr_eq(stated, released)) {
            content.stated.remove(key);
        }
    }

    /// Everything has to be looked at.
    pub(super) fn mark_all(&self) {
        let mut content = self.0.content.lock();
        let keys: BTreeSet<ObjectKey> = content.stated.keys().cloned().collect();
        content.marks = keys;
        drop(content);
        self.0.marked.notify_one();
    }

    /// What has to be looked at, in order; each once.
    pub(super) fn take_marks(&self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut self.0.content.lock().marks)
    }

    /// Waits until there is something to look at.
    pub(super) async fn marked(&self) {
        self.0.marked.notified().await;
    }
}
