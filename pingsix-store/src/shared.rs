//! A store that tasks share.

use std::fmt::{self, Debug};
use std::sync::Arc;

use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use kube::{Api, Resource};
use kube_runtime::reflector::ObjectRef;
use kube_runtime::{WatchStreamExt as _, reflector, watcher};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::edge::{Edge, Target};
use crate::name::ObjectName;
use crate::reader::StoredObject;
use crate::reflector::{Change, ReflectorStore};

/// A [`ReflectorStore`] that tasks share, such as the reconciler of a kube-runtime `Controller` and its watches. Clones are
/// the same store.
///
/// One task feeds the store: [`watch`](Self::watch) begins a watch, and [`reflect`](Self::reflect) and
/// [`changes`](Self::changes) adapt the stream of one.
pub struct SharedStore<K: StoredObject, T: 'static>(Arc<Mutex<ReflectorStore<K, T>>>);

impl<K: StoredObject, T> Clone for SharedStore<K, T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: StoredObject, T> Debug for SharedStore<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.lock().fmt(f)
    }
}

impl<K: StoredObject, T> From<ReflectorStore<K, T>> for SharedStore<K, T> {
    fn from(store: ReflectorStore<K, T>) -> Self {
        Self(Arc::new(Mutex::new(store)))
    }
}

impl<K: StoredObject + Send + Sync, T: Target + Send + Sync> SharedStore<K, T> {
    /// An empty store of objects with these references; see [`ReflectorStore::new`].
    pub fn new(edges: impl IntoIterator<Item = Edge<K, T>>) -> Self {
        ReflectorStore::new(edges).into()
    }

    /// Applies an event, and returns the changes; see [`ReflectorStore::apply`].
    pub fn apply(&self, event: watcher::Event<K>) -> Vec<Change<K, T>> {
        self.0.lock().apply(event)
    }

    /// Applies the events of a stream, and passes them on, as kube-runtime's `reflector` does. Both can adapt one stream
    /// for `Controller::for_stream`.
    pub fn reflect<S>(
        &self,
        events: S,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + use<S, K, T>
    where
        S: Stream<Item = watcher::Result<watcher::Event<K>>>,
        K: Clone,
    {
        let store = self.clone();
        events.inspect_ok(move |event| {
            store.apply(event.clone());
        })
    }

    /// The changes by the events of a stream.
    pub fn changes<S>(&self, events: S) -> impl Stream<Item = watcher::Result<Change<K, T>>> + use<S, K, T>
    where
        S: Stream<Item = watcher::Result<watcher::Event<K>>>,
    {
        let store = self.clone();
        events.map_ok(move |event| stream::iter(store.apply(event)).map(Ok)).try_flatten()
    }

    /// Whether a list was complete. Before that, missing objects are unknown.
    pub fn is_complete(&self) -> bool {
        self.0.lock().is_complete()
    }

    /// Every object, by name.
    pub fn objects(&self) -> Vec<Arc<K>> {
        self.0.lock().objects()
    }
}

/// Methods that speak of objects as [`ObjectRef`].
impl<K: Resource<DynamicType = ()> + Send + Sync + 'static, T: Target + Send + Sync> SharedStore<K, T> {
    /// Watches the objects of an API, with pauses after errors. Returns the changed objects, and a `Store` of kube-runtime, as
    /// `Controller::for_stream` takes them. Both stores have the objects of the first list when the list ends.
    pub fn watch(
        &self,
        api: Api<K>,
        config: watcher::Config,
    ) -> (impl Stream<Item = watcher::Result<K>> + use<K, T>, reflector::Store<K>)
    where
        K: Clone + Debug + DeserializeOwned + 'static,
    {
        let (reader, writer) = reflector::store();
        let events = self.reflect(watcher(api, config).default_backoff());
        (reflector(writer, events).applied_objects(), reader)
    }

    /// The object of a reference.
    pub fn get(&self, object: &ObjectRef<K>) -> Option<Arc<K>> {
        self.0.lock().get(&ObjectName::new(object.namespace.as_deref().unwrap_or_default(), &object.name))
    }

    /// The dependents of a target, by name and without repetitions.
    pub fn dependents(&self, target: &T) -> Vec<ObjectRef<K>> {
        self.0.lock().dependents(target).map(object_ref).collect()
    }

    /// The mapper of kube-runtime's `Controller::watches` for the objects of another kind: `target` is the target that an
    /// object of that kind stands for, and the mapper returns the dependents of this target.
    pub fn mapper<O, F>(&self, target: F) -> impl Fn(O) -> Vec<ObjectRef<K>> + use<O, F, K, T>
    where
        F: Fn(&O) -> T,
    {
        let store = self.clone();
        move |object| store.dependents(&target(&object))
    }

    /// The objects that concern a target, by name and without repetitions.
    pub fn members(&self, target: &T) -> Vec<ObjectRef<K>> {
        self.0.lock().members(target).map(object_ref).collect()
    }
}

/// A name as a reference of kube-runtime.
pub fn object_ref<K: Resource<DynamicType = ()>>(name: &ObjectName) -> ObjectRef<K> {
    let reference = ObjectRef::new(&name.name);
    if name.namespace.is_empty() { reference } else { reference.within(&name.namespace) }
}
