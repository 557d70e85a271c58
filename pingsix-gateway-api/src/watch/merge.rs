//! The merge of a kind's watches into one list and its events.
//!
//! The merge is a plain value without I/O.

use std::collections::BTreeMap;
use std::mem;

use kube_runtime::watcher;
use pingsix_translate::{ObjectKey, ObjectName};

use super::input::{Input, WorldKind};
use super::object::Watched;
use super::stream::Selection;

/// Merges the events of a kind's watches.
pub(super) struct EventMerger<K> {
    /// The watches, one for each selection.
    parts: Vec<NamespacePart<K>>,
    /// Whether the world has a complete list.
    is_complete: bool,
    /// Whether the last input was an empty list.
    is_empty: bool,
}

/// The state of one watch. The events of a single watch need no merge, so its state stays empty.
struct NamespacePart<K> {
    /// The versions of all objects of the namespace. Comparison with a new list reveals deleted objects.
    known: BTreeMap<ObjectName, Option<String>>,
    /// The unfinished list.
    listing: BTreeMap<ObjectName, Watched<K>>,
    /// The objects of a complete list, until all other namespaces are listed.
    buffered: Option<BTreeMap<ObjectName, Watched<K>>>,
    is_listed: bool,
}

impl<K> Default for NamespacePart<K> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), listing: BTreeMap::new(), buffered: None, is_listed: false }
    }
}

impl<K: WorldKind> EventMerger<K> {
    /// A merge of one watch for each selection.
    pub(super) fn of(selections: &[Selection]) -> Self {
        Self {
            parts: selections.iter().map(|_| NamespacePart::default()).collect(),
            is_complete: false,
            is_empty: false,
        }
    }

    /// Whether the world has a complete list.
    pub(super) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The inputs that remove all objects of the kind. The result is empty if the last input was such a removal.
    pub(super) fn clear(&mut self) -> Vec<Input> {
        if mem::replace(&mut self.is_empty, true) {
            return Vec::new();
        }
        self.parts.iter_mut().for_each(|part| *part = NamespacePart::default());
        self.is_complete = true;
        vec![K::input(watcher::Event::Init), K::input(watcher::Event::InitDone)]
    }

    /// The inputs for the world after an event of one watch.
    pub(super) fn apply(&mut self, part: usize, event: watcher::Event<Watched<K>>) -> Vec<Input> {
        self.is_empty = false;
        if self.parts.len() == 1 {
            self.is_complete |= matches!(event, watcher::Event::InitDone);
            return vec![K::input(event)];
        }
        let Some(part) = self.parts.get_mut(part) else { return Vec::new() };
        // After an absence of the kind, `is_complete` is set, but each watch starts with a first list again.
        let is_first = !part.is_listed;
        match event {
            watcher::Event::Init => {
                part.listing.clear();
                Vec::new()
            }
            watcher::Event::InitApply(object) => {
                part.listing.insert(object.name(), object);
                Vec::new()
            }
            watcher::Event::InitDone if is_first => {
                part.is_listed = true;
                part.buffered = Some(mem::take(&mut part.listing));
                self.release()
            }
            watcher::Event::InitDone => part.relisted(),
            watcher::Event::Apply(object) => part.applied(object).into_iter().collect(),
            watcher::Event::Delete(object) => part.deleted(object).into_iter().collect(),
        }
    }

    /// The whole list, after every watch has been listed.
    fn release(&mut self) -> Vec<Input> {
        if !self.parts.iter().all(|part| part.is_listed) {
            return Vec::new();
        }
        self.is_complete = true;
        let mut inputs = vec![K::input(watcher::Event::Init)];
        for part in &mut self.parts {
            let buffered = part.buffered.take().unwrap_or_default();
            part.known = buffered.iter().map(|(name, object)| (name.clone(), object.version())).collect();
            inputs.extend(buffered.into_values().map(|object| K::input(watcher::Event::InitApply(object))));
        }
        inputs.push(K::input(watcher::Event::InitDone));
        inputs
    }
}

impl<K: WorldKind> NamespacePart<K> {
    fn applied(&mut self, object: Watched<K>) -> Option<Input> {
        let name = object.name();
        if let Some(buffered) = &mut self.buffered {
            buffered.insert(name, object);
            return None;
        }
        self.known.insert(name, object.version());
        Some(K::input(watcher::Event::Apply(object)))
    }

    fn deleted(&mut self, object: Watched<K>) -> Option<Input> {
        let name = object.name();
        if let Some(buffered) = &mut self.buffered {
            buffered.remove(&name);
            return None;
        }
        self.known.remove(&name);
        Some(K::input(watcher::Event::Delete(object)))
    }

    /// The changes since the previous list.
    fn relisted(&mut self) -> Vec<Input> {
        let listing = mem::take(&mut self.listing);
        if let Some(buffered) = &mut self.buffered {
            *buffered = listing;
            return Vec::new();
        }
        let mut gone = mem::take(&mut self.known);
        let mut inputs = Vec::new();
        for (name, object) in listing {
            let now = object.version();
            let before = gone.remove(&name);
            if now.is_none() || before.as_ref() != Some(&now) {
                inputs.push(K::input(watcher::Event::Apply(object)));
            }
            self.known.insert(name, now);
        }
        inputs.extend(gone.into_keys().map(|name| Input::Gone(ObjectKey { kind: K::KIND, name })));
        inputs
    }
}
