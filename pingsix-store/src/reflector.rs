//! The store and its secondary maps.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use kube_runtime::watcher;

use crate::edge::{Direction, Edge, Target};
use crate::index::Index;
use crate::reader::{Reader, StoredObject};

/// The change of one object by an event. The three variants are final; their fields may grow.
#[derive(Clone, Debug)]
pub enum Change<K: StoredObject, T> {
    /// The object is new, or its content has changed.
    #[non_exhaustive]
    Applied {
        /// The object.
        name: K::Name,
        /// The targets that the object concerns or concerned; sorted, without repetitions.
        concerned: Vec<T>,
        /// The dependencies that the object no longer has; sorted.
        released: Vec<T>,
        /// The former object.
        before: Option<Arc<K>>,
        /// The new object.
        after: Arc<K>,
    },
    /// The content is equal: only parts that [`ReflectorStore::comparing`] ignores have changed, such as the status.
    #[non_exhaustive]
    Touched {
        /// The object.
        name: K::Name,
        /// The new object.
        after: Arc<K>,
    },
    /// The object is gone.
    #[non_exhaustive]
    Removed {
        /// The object.
        name: K::Name,
        /// The targets that the object concerned; sorted, without repetitions.
        concerned: Vec<T>,
        /// The former dependencies of the object; sorted.
        released: Vec<T>,
        /// The former object.
        before: Arc<K>,
    },
}

impl<K: StoredObject, T> Change<K, T> {
    /// The object.
    pub const fn name(&self) -> &K::Name {
        match self {
            Self::Applied { name, .. } | Self::Touched { name, .. } | Self::Removed { name, .. } => name,
        }
    }
}

/// The work of a store since its creation, which bounds the cost of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// Objects whose edges were read.
    pub objects: usize,
    /// Entries of secondary maps that were added or removed.
    pub entries: usize,
}

/// The objects of one kind, with secondary maps of their references.
pub struct ReflectorStore<K: StoredObject, T: 'static> {
    reader: Reader<K>,
    edges: Arc<[Edge<K, T>]>,
    /// One map per edge.
    indexes: Vec<Index<K::Name, T>>,
    same: fn(&K, &K) -> bool,
    /// The objects of an unfinished list.
    listing: Option<BTreeMap<K::Name, K>>,
    is_complete: bool,
    work: Work,
}

impl<K: StoredObject, T> fmt::Debug for ReflectorStore<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectorStore")
            .field("objects", &self.reader.len())
            .field("is_complete", &self.is_complete)
            .field("work", &self.work)
            .finish_non_exhaustive()
    }
}

impl<K: StoredObject, T: Target> ReflectorStore<K, T> {
    /// An empty store with a secondary map for each edge.
    pub fn new(edges: impl IntoIterator<Item = Edge<K, T>>) -> Self {
        let edges: Arc<[Edge<K, T>]> = edges.into_iter().collect();
        Self {
            reader: Reader::default(),
            indexes: edges.iter().map(|_| Index::default()).collect(),
            edges,
            same: K::is_same_version,
            listing: None,
            is_complete: false,
            work: Work::default(),
        }
    }

    /// Sets the equality of two versions of an object, which decides between [`Change::Touched`] and
    /// [`Change::Applied`]. The default compares their `resourceVersion`. Edges may read only the compared parts of an object,
    /// because equal versions keep their targets.
    #[must_use]
    pub fn comparing(mut self, same: fn(&K, &K) -> bool) -> Self {
        self.same = same;
        self
    }

    /// Applies an event, and returns the changes. Between `Init` and `InitDone` there are no changes.
    pub fn apply(&mut self, event: watcher::Event<K>) -> Vec<Change<K, T>> {
        match event {
            watcher::Event::Init => {
                self.listing = Some(BTreeMap::new());
                Vec::new()
            }
            watcher::Event::InitApply(object) => {
                self.listing.get_or_insert_default().insert(object.object_name(), object);
                Vec::new()
            }
            watcher::Event::InitDone => self.finish_listing(),
            watcher::Event::Apply(object) => vec![self.put(object.object_name(), object)],
            // The stored object has the indexed references; the event may carry a later version.
            watcher::Event::Delete(object) => self.remove(&object.object_name()).into_iter().collect(),
        }
    }

    /// Removes an object by its name, and returns the change. Watches of single objects report an absence without the
    /// deleted object.
    pub fn remove(&mut self, name: &K::Name) -> Option<Change<K, T>> {
        let (name, before) = self.reader.remove(name)?;
        Some(self.removed(&name, before))
    }

    /// Whether a list was complete. Before that, missing objects are unknown.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The object with a name.
    pub fn get(&self, name: &K::Name) -> Option<Arc<K>> {
        self.reader.get(name)
    }

    /// A handle that reads the objects in other threads.
    pub fn reader(&self) -> Reader<K> {
        self.reader.clone()
    }

    /// Every object, by name.
    pub fn objects(&self) -> Vec<Arc<K>> {
        self.reader.objects()
    }

    /// The dependents of a target, by name and without repetitions.
    pub fn dependents(&self, target: &T) -> impl Iterator<Item = &K::Name> {
        self.referrers(target, Direction::DependsOn)
    }

    /// The objects that concern a target, by name and without repetitions.
    pub fn members(&self, target: &T) -> impl Iterator<Item = &K::Name> {
        self.referrers(target, Direction::Concerns)
    }

    /// The targets that the dependents of a target concern. The cost is proportional to the result.
    pub fn concerned_through(&self, target: &T) -> BTreeSet<T> {
        let mut concerned = BTreeSet::new();
        for (edge, index) in self.edges.iter().zip(&self.indexes) {
            if edge.direction == Direction::DependsOn {
                concerned.append(&mut index.concerned(target, concerned_by(&self.reader, &self.edges)));
            }
        }
        concerned
    }

    /// Whether a predicate holds for a dependent of a target.
    pub fn has_dependent(&self, target: &T, is_one: impl FnMut(&K::Name) -> bool) -> bool {
        let edges = self.edges.iter().zip(&self.indexes);
        let edges = edges.filter(|(edge, _)| edge.direction == Direction::DependsOn);
        edges.flat_map(|(_, index)| index.referrers(target)).any(is_one)
    }

    fn referrers(&self, target: &T, direction: Direction) -> impl Iterator<Item = &K::Name> {
        let edges = self.edges.iter().zip(&self.indexes).filter(move |(edge, _)| edge.direction == direction);
        let names: BTreeSet<&K::Name> = edges.flat_map(|(_, index)| index.referrers(target)).collect();
        names.into_iter()
    }

    /// The targets that an object concerns; sorted, without repetitions.
    pub fn concerns(&self, object: &K) -> Vec<T> {
        targets_of(&self.edges, Direction::Concerns, object)
    }

    /// The dependencies of an object; sorted, without repetitions.
    pub fn dependencies(&self, object: &K) -> Vec<T> {
        targets_of(&self.edges, Direction::DependsOn, object)
    }

    /// The edges, each with its targets in order. The call scans the maps, so it serves dumps.
    pub fn edges(&self) -> impl Iterator<Item = (&Edge<K, T>, BTreeSet<&T>)> {
        self.edges.iter().zip(self.indexes.iter().map(Index::targets))
    }

    /// The number of entries in the secondary maps.
    pub fn entries(&self) -> usize {
        self.indexes.iter().map(Index::len).sum()
    }

    /// The work so far.
    pub const fn work(&self) -> Work {
        self.work
    }

    fn finish_listing(&mut self) -> Vec<Change<K, T>> {
        let listing = self.listing.take().unwrap_or_default();
        self.is_complete = true;
        let gone: Vec<K::Name> =
            self.reader.names().into_iter().filter(|name| !listing.contains_key(name)).collect();
        let mut changes: Vec<Change<K, T>> = gone.iter().filter_map(|name| self.remove(name)).collect();
        for (name, object) in listing {
            // A relist leaves unchanged objects untouched.
            if self.get(&name).is_none_or(|before| !before.is_same_version(&object)) {
                changes.push(self.put(name, object));
            }
        }
        self.reader.shrink();
        self.indexes.iter_mut().for_each(Index::shrink);
        changes
    }

    fn put(&mut self, name: K::Name, object: K) -> Change<K, T> {
        let after = Arc::new(object);
        let (name, before) = self.reader.insert(name, after.clone());
        if before.as_ref().is_some_and(|before| (self.same)(before, &after)) {
            return Change::Touched { name, after };
        }
        let (concerned, released) = self.reindex(&name, before.as_deref(), Some(&after));
        Change::Applied { name, concerned, released, before, after }
    }

    fn removed(&mut self, name: &K::Name, before: Arc<K>) -> Change<K, T> {
        let (concerned, released) = self.reindex(name, Some(&before), None);
        Change::Removed { name: name.clone(), concerned, released, before }
    }

    /// Moves an object from its old targets to its new ones. Returns the concerned targets of both versions, and the
    /// dependencies of the old version alone.
    fn reindex(&mut self, name: &K::Name, before: Option<&K>, after: Option<&K>) -> (Vec<T>, Vec<T>) {
        let (mut concerned, mut released) = (BTreeSet::new(), BTreeSet::new());
        let mut kept = BTreeSet::new();
        let edges = &self.edges;
        let concerned_before = before.map(|object| concerns(edges, object)).unwrap_or_default();
        let concerned_after = after.map(|object| concerns(edges, object)).unwrap_or_default();
        for (edge, index) in edges.iter().zip(&mut self.indexes) {
            let (old, new) = (targets(edge, before), targets(edge, after));
            let uncounted = BTreeSet::new();
            let (left, joined) = match edge.direction {
                Direction::Concerns => (&uncounted, &uncounted),
                Direction::DependsOn => (&concerned_before, &concerned_after),
            };
            for target in old.difference(&new) {
                self.work.entries += usize::from(index.remove(target, name, left));
            }
            for target in new.difference(&old) {
                let others = concerned_by(&self.reader, edges);
                self.work.entries += usize::from(index.insert(target.clone(), name, joined, others));
            }
            if left != joined {
                old.intersection(&new).for_each(|target| index.recount(target, left, joined));
            }
            match edge.direction {
                Direction::Concerns => concerned.extend(old.into_iter().chain(new)),
                Direction::DependsOn => {
                    released.extend(old);
                    kept.extend(new);
                }
            }
        }
        self.work.objects += usize::from(before.is_some()) + usize::from(after.is_some());
        released.retain(|target| !kept.contains(target));
        (concerned.into_iter().collect(), released.into_iter().collect())
    }
}

/// The targets of an edge from an object.
fn targets<K, T: Target>(edge: &Edge<K, T>, object: Option<&K>) -> BTreeSet<T> {
    let mut targets = Vec::new();
    if let Some(object) = object {
        edge.add_targets(object, &mut targets);
    }
    targets.into_iter().collect()
}

/// The targets of an object by the edges of a direction; sorted, without repetitions.
fn targets_of<K, T: Target>(edges: &[Edge<K, T>], direction: Direction, object: &K) -> Vec<T> {
    let mut targets = Vec::new();
    for edge in edges.iter().filter(|edge| edge.direction == direction) {
        edge.add_targets(object, &mut targets);
    }
    targets.sort();
    targets.dedup();
    targets
}

/// The targets that an object concerns.
fn concerns<K, T: Target>(edges: &[Edge<K, T>], object: &K) -> BTreeSet<T> {
    targets_of(edges, Direction::Concerns, object).into_iter().collect()
}

/// The targets that a stored object concerns, by its name.
fn concerned_by<K: StoredObject, T: Target>(
    reader: &Reader<K>,
    edges: &[Edge<K, T>],
) -> impl FnOnce(&K::Name) -> BTreeSet<T> {
    move |name| reader.get(name).map(|object| concerns(edges, &object)).unwrap_or_default()
}
