//! Objects by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kube::Resource;
use parking_lot::RwLock;

use crate::edge::Target;
use crate::name::ObjectName;

/// An object that can be stored. There is a blanket implementation for kube's resources.
pub trait StoredObject: 'static {
    /// The type of the names.
    type Name: Target;

    /// The name, which identifies an object among those of its kind.
    fn object_name(&self) -> Self::Name;

    /// Whether both have the same `resourceVersion`. Objects without one are never the same.
    fn is_same_version(&self, other: &Self) -> bool;
}

impl<K: Resource + 'static> StoredObject for K {
    type Name = ObjectName;

    fn object_name(&self) -> ObjectName {
        let metadata = self.meta();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        ObjectName::new(namespace, metadata.name.as_deref().unwrap_or_default())
    }

    fn is_same_version(&self, other: &Self) -> bool {
        let version = self.meta().resource_version.as_ref();
        version.is_some() && version == other.meta().resource_version.as_ref()
    }
}

/// A handle that reads the objects of a [`ReflectorStore`](super::ReflectorStore) from any thread. Clones are cheap.
///
/// kube-runtime's store copies version and uid of every object into its own table, which takes some 300 bytes per
/// object.
pub struct Reader<K: StoredObject>(Arc<RwLock<Objects<K>>>);

type Objects<K> = BTreeMap<<K as StoredObject>::Name, Arc<K>>;

impl<K: StoredObject> Default for Reader<K> {
    fn default() -> Self {
        Self(Arc::new(RwLock::new(BTreeMap::new())))
    }
}

impl<K: StoredObject> Clone for Reader<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: StoredObject> fmt::Debug for Reader<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("objects", &self.len()).finish_non_exhaustive()
    }
}

impl<K: StoredObject> Reader<K> {
    /// The object with a name.
    pub fn get(&self, name: &K::Name) -> Option<Arc<K>> {
        self.0.read().get(name).cloned()
    }

    /// Every object, by name.
    pub fn objects(&self) -> Vec<Arc<K>> {
        self.0.read().values().cloned().collect()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.0.read().len()
    }

    /// Whether the store is empty.
    pub fn is_empty(&self) -> bool {
        self.0.read().is_empty()
    }

    pub(crate) fn names(&self) -> Vec<K::Name> {
        self.0.read().keys().cloned().collect()
    }

    /// Inserts an object. Returns its interned name and the former object.
    pub(crate) fn insert(&self, name: K::Name, object: Arc<K>) -> (K::Name, Option<Arc<K>>) {
        let mut objects = self.0.write();
        let known = objects.get_key_value(&name).map(|(name, _)| name.clone());
        let name = known.unwrap_or(name);
        let before = objects.insert(name.clone(), object);
        (name, before)
    }

    pub(crate) fn remove(&self, name: &K::Name) -> Option<(K::Name, Arc<K>)> {
        self.0.write().remove_entry(name)
    }

    /// Frees spare capacity, after a list was inserted.
    pub(crate) fn shrink(&self) {
        let mut objects = self.0.write();
        *objects = std::mem::take(&mut *objects).into_iter().collect();
    }
}
