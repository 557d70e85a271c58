//! Live objects of the stores and of the API server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::Value;

use crate::store::Reader;
use crate::watch::{Watched, WatchedKind, Writes, facts};
use crate::world::{KindVisitor, Stored, World, with_kind};

/// The status of an object, and the metadata for its update.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LiveObject {
    /// `metadata.resourceVersion`.
    pub(super) version: String,
    /// `metadata.generation`, or 0.
    pub(super) generation: i64,
    /// `metadata.uid`, or an empty text.
    pub(super) uid: String,
    /// The status, or null.
    pub(super) status: Value,
}

impl LiveObject {
    /// The live object of a response.
    pub(super) fn of(mut object: DynamicObject) -> Self {
        Self {
            version: object.metadata.resource_version.take().unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or_default(),
            uid: object.metadata.uid.take().unwrap_or_default(),
            status: object.data.get_mut("status").map(Value::take).unwrap_or_default(),
        }
    }
}

/// Reads objects of all kinds from the stores of a [`World`] in any thread. Clones are cheap.
#[derive(Clone)]
pub struct Readers(Arc<BTreeMap<Kind, Box<dyn LiveReader>>>);

/// A store of any kind.
trait LiveReader: Send + Sync {
    fn live(&self, name: &ObjectName) -> Option<LiveObject>;
    fn statuses(&self) -> Vec<(ObjectName, Value)>;
    fn resource(&self) -> ApiResource;
}

impl<K: WatchedKind> LiveReader for Reader<Watched<K>> {
    fn live(&self, name: &ObjectName) -> Option<LiveObject> {
        let object = self.get(name)?;
        Some(LiveObject {
            version: object.version().unwrap_or_default(),
            generation: object.generation(),
            uid: object.uid().unwrap_or_default(),
            status: object.status(),
        })
    }

    fn statuses(&self) -> Vec<(ObjectName, Value)> {
        self.objects().iter().map(|object| (object.name(), object.status())).collect()
    }

    fn resource(&self) -> ApiResource {
        ApiResource::erase::<K::Wire>(&())
    }
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Readers").finish_non_exhaustive()
    }
}

/// Creates the reader of a kind's store.
struct StatusReader;

impl KindVisitor for StatusReader {
    type Output = Box<dyn LiveReader>;

    fn run<K: Stored>(&self, world: &World) -> Box<dyn LiveReader> {
        Box::new(world.reader::<K>())
    }
}

impl Readers {
    /// The readers of all stores.
    pub fn of(world: &World) -> Self {
        let readers = Kind::ALL.iter().map(|kind| (*kind, with_kind(&StatusReader, *kind, world)));
        Self(Arc::new(readers.collect()))
    }

    /// All routes and policies with status entries of a controller, in order. Entries without a verdict are remains of
    /// an earlier process, and are to be released ([`super::Wanted::Released`]). The call scans all objects, so callers
    /// make it once after the start.
    pub(crate) fn with_entries_of(&self, controller_name: &str) -> Vec<ObjectKey> {
        let mut keys = Vec::new();
        for (kind, reader) in &*self.0 {
            let Writes::Entries(list) = facts(*kind).writes else { continue };
            let has_entries = |status: &Value| {
                let mut entries = status[list].as_array().into_iter().flatten();
                entries.any(|entry| entry["controllerName"] == *controller_name)
            };
            let found = reader.statuses().into_iter().filter(|(_, status)| has_entries(status));
            keys.extend(found.map(|(name, _)| ObjectKey { kind: *kind, name }));
        }
        keys.sort();
        keys
    }

    /// The stored version of an object.
    pub(super) fn live(&self, key: &ObjectKey) -> Option<LiveObject> {
        self.0.get(&key.kind)?.live(&key.name)
    }

    /// The API resource of a kind.
    pub(super) fn resource(&self, kind: Kind) -> Option<ApiResource> {
        self.0.get(&kind).map(|reader| reader.resource())
    }

    /// The API of an object.
    pub(super) fn api(&self, client: &Client, key: &ObjectKey) -> Option<Api<DynamicObject>> {
        let resource = self.resource(key.kind)?;
        let namespace = &key.name.namespace;
        Some(if namespace.is_empty() {
            Api::all_with(client.clone(), &resource)
        } else {
            Api::namespaced_with(client.clone(), namespace, &resource)
        })
    }
}
