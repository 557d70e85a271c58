//! The wanted status of each object; the latest wins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pingsix_translate::ObjectKey;
use tokio::sync::Notify;

use super::wanted::{Stated, Wanted};

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
    stated: BTreeMap<Arc<ObjectKey>, Arc<Stated>>,
    /// The objects that the writer has to visit.
    marks: BTreeSet<Arc<ObjectKey>>,
}

impl StatusBoard {
    /// Says what a status should say from now on. To say the same again is free.
    pub fn set(&self, key: ObjectKey, wanted: Wanted) {
        let mut content = self.0.content.lock();
        let known = content.stated.get_key_value(&key).map(|(key, stated)| (key.clone(), stated.clone()));
        let (key, stated) = match known {
            None => {
                let own = wanted.key().filter(|own| ***own == key).cloned();
                let key = own.unwrap_or_else(|| Arc::new(key));
                (key, Stated { wanted, before: None, is_held: false })
            }
            Some((_, stated)) if stated.wanted == wanted && !stated.is_held => return,
            Some((key, stated)) if stated.wanted == wanted => {
                (key, Stated { is_held: false, ..Stated::clone(&stated) })
            }
            Some((key, stated)) => (key, stated.followed_by(wanted)),
        };
        content.stated.insert(key.clone(), Arc::new(stated));
        content.marks.insert(key);
        drop(content);
        self.0.marked.notify_one();
    }

    /// The wanted status is out of date, and the next one is not known yet: the written status stays until then.
    pub fn hold(&self, key: &ObjectKey) {
        let mut content = self.0.content.lock();
        let stated = content.stated.get_mut(key).filter(|stated| !stated.is_held);
        if let Some(stated) = stated {
            *stated = Arc::new(Stated { is_held: true, ..Stated::clone(stated) });
        }
    }

    /// The live object has changed: its status may no longer be what was written.
    pub fn touched(&self, key: &ObjectKey) {
        let mut content = self.0.content.lock();
        let known = content.stated.get_key_value(key).map(|(key, _)| key.clone());
        if let Some(key) = known {
            content.marks.insert(key);
            drop(content);
            self.0.marked.notify_one();
        }
    }

    /// The object is gone: nothing is to be said of it.
    pub fn removed(&self, key: &ObjectKey) {
        let mut content = self.0.content.lock();
        if let Some((key, _)) = content.stated.remove_entry(key) {
            // The writer forgets it as well.
            content.marks.insert(key);
            drop(content);
            self.0.marked.notify_one();
        }
    }

    /// Every object that has something to be said of, in order. For dumps, and to find those nobody judges any more.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.0.content.lock().stated.keys().map(|key| ObjectKey::clone(key)).collect()
    }

    /// Whether the status of an object may be written now.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.0.content.lock().stated.get(key).is_some_and(|stated| !stated.is_held)
    }

    /// The wanted status of an object.
    pub fn wanted(&self, key: &ObjectKey) -> Option<Wanted> {
        self.stated(key).map(|stated| stated.wanted.clone())
    }

    pub(super) fn stated(&self, key: &ObjectKey) -> Option<Arc<Stated>> {
        self.0.content.lock().stated.get(key).cloned()
    }

    /// A released object has no entry of ours left, unless it has a wanted status again.
    pub(super) fn let_go(&self, key: &ObjectKey, released: &Arc<Stated>) {
        let mut content = self.0.content.lock();
        if content.stated.get(key).is_some_and(|stated| Arc::ptr_eq(stated, released)) {
            content.stated.remove(key);
        }
    }

    /// Marks all objects.
    pub(super) fn mark_all(&self) {
        let mut content = self.0.content.lock();
        let keys = content.stated.keys().cloned().collect();
        content.marks = keys;
        drop(content);
        self.0.marked.notify_one();
    }

    /// The marked objects, in order, each once.
    pub(super) fn take_marks(&self) -> BTreeSet<Arc<ObjectKey>> {
        std::mem::take(&mut self.0.content.lock().marks)
    }

    /// Waits until there is something to look at.
    pub(super) async fn marked(&self) {
        self.0.marked.notified().await;
    }
}
