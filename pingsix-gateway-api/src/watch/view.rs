//! One view of a kind, from one watch or from several.
//!
//! Kept apart from the watches themselves: it is a plain value, which turns their events into those of one list.

use std::collections::BTreeMap;
use std::mem;

use kube_runtime::watcher;
use pingsix_translate::{ObjectKey, ObjectName};

use super::input::{Input, WorldKind};
use super::object::Watched;
use super::stream::Selection;

/// The state of a kind that was passed to the world. `parts` are its watches.
pub(super) struct View<K> {
    parts: Vec<Part<K>>,
    /// Whether the world has a complete list.
    is_complete: bool,
    /// Whether the last input was an empty list.
    is_empty: bool,
}

/// The state of one namespace. With a single part the state stays empty, because its events are complete.
struct Part<K> {
    /// The version of every object that is there; how a list that is read anew finds out what vanished meanwhile, in
    /// this namespace alone.
    known: BTreeMap<ObjectName, Option<String>>,
    /// The list that is being read.
    listing: BTreeMap<ObjectName, Watched<K>>,
    /// The objects, until all namespaces have been listed and the world gets them all at once.
    held: Option<BTreeMap<ObjectName, Watched<K>>>,
    is_listed: bool,
}

impl<K> Default for Part<K> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), listing: BTreeMap::new(), held: None, is_listed: false }
    }
}

impl<K: WorldKind> View<K> {
    /// A view of as many parts as there are selections.
    pub(super) fn of(selections: &[Selection]) -> Self {
        Self {
            parts: selections.iter().map(|_| Part::default()).collect(),
            is_complete: false,
            is_empty: false,
        }
    }

    /// Whether the world has a complete list.
    pub(super) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The kind has no objects: none is left in the world, and it knows that. Says nothing if that was the last it was
    /// told.
    pub(super) fn empty(&mut self) -> Vec<Input> {
        if mem::replace(&mut self.is_empty, true) {
            return Vec::new();
        }
        self.parts.iter_mut().for_each(|part| *part = Part::default());
        self.is_complete = true;
        vec![K::input(watcher::Event::Init), K::input(watcher::Event::InitDone)]
    }

    /// Takes an event of one part in, and says what the world has to take in.
    pub(super) fn take(&mut self, part: usize, event: watcher::Event<Watched<K>>) -> Vec<Input> {
        self.is_empty = false;
        if self.parts.len() == 1 {
            self.is_complete |= matches!(event, watcher::Event::InitDone);
            return vec![K::input(event)];
        }
        let Some(part) = self.parts.get_mut(part) else { return Vec::new() };
        // After the kind was absent, the world has a list, and the parts begin anew.
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
                part.held = Some(mem::take(&mut part.listing));
                self.release()
            }
            watcher::Event::InitDone => part.relisted(),
            watcher::Event::Apply(object) => part.applied(object).into_iter().collect(),
            watcher::Event::Delete(object) => part.deleted(object).into_iter().collect(),
        }
    }

    /// Once every part has been listed, all of them together are one list.
    fn release(&mut self) -> Vec<Input> {
        if !self.parts.iter().all(|part| part.is_listed) {
            return Vec::new();
        }
        self.is_complete = true;
        let mut inputs = vec![K::input(watcher::Event::Init)];
        for part in &mut self.parts {
            let held = part.held.take().unwrap_or_default();
            part.known = held.iter().map(|(name, object)| (name.clone(), object.version())).collect();
            inputs.extend(held.into_values().map(|object| K::input(watcher::Event::InitApply(object))));
        }
        inputs.push(K::input(watcher::Event::InitDone));
        inputs
    }
}

impl<K: WorldKind> Part<K> {
    fn applied(&mut self, object: Watched<K>) -> Option<Input> {
        let name = object.name();
        if let Some(held) = &mut self.held {
            held.insert(name, object);
            return None;
        }
        self.known.insert(name, object.version());
        Some(K::input(watcher::Event::Apply(object)))
    }

    fn deleted(&mut self, object: Watched<K>) -> Option<Input> {
        let name = object.name();
        if let Some(held) = &mut self.held {
            held.remove(&name);
            return None;
        }
        self.known.remove(&name);
        Some(K::input(watcher::Event::Delete(object)))
    }

    /// The changes by a new list.
    fn relisted(&mut self) -> Vec<Input> {
        let listing = mem::take(&mut self.listing);
        if let Some(held) = &mut self.held {
            *held = listing;
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
