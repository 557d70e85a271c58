//! Objects as they are: in the stores, and at the API server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::Value;

use crate::store::Reader;
use crate::watch::{Watched, WatchedKind, Writes, facts};
use crate::world::{PerKind, Stored, World, with_kind};

/// An object, as far as its status goes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Live {
    /// `metadata.resourceVersion`
    pub(super) version: String,
    /// `metadata.generation`; 0 when it has none.
    pub(super) generation: i64,
    /// `metadata.uid`; empty when it has none.
    pub(super) uid: String,
    /// Null when it has none.
    pub(super) status: Value,
}

impl Live {
    /// As the API server answers.
    pub(super) fn of(mut object: DynamicObject) -> Self {
        Self {
            version: object.metadata.resource_version.take().unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or_default(),
            uid: object.metadata.uid.take().unwrap_or_default(),
            status: object.data.get_mut("status").map(Value::take).unwrap_or_default(),
        }
    }
}

/// Reads objects of all kinds from the stores of a [`World`], also while that changes. Cheap to clone.
#[derive(Clone)]
pub struct Readers(Arc<BTreeMap<Kind, Box<dyn Picture>>>);

/// A store of whatever kind.
trait Picture: Send + Sync {
    fn live(&self, name: &ObjectName) -> Option<Live>;
    fn statuses(&self) -> Vec<(ObjectName, Value)>;
    fn resource(&self) -> ApiResource;
}

impl<K: WatchedKind> Picture for Reader<Watched<K>> {
    fn live(&self, name: &ObjectName) -> Option<Live> {
        let object = self.get(name)?;
        Some(Live {
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

/// Makes a reader of a store.
struct StatusReader;

impl PerKind for StatusReader {
    type Output = Box<dyn Picture>;

    fn run<K: Stored>(&self, world: &World) -> Box<dyn Picture> {
        Box::new(world.reader::<K>())
    }
}

impl Readers {
    /// Of all stores.
    pub fn of(world: &World) -> Self {
        let readers = Kind::ALL.iter().map(|kind| (*kind, with_kind(&StatusReader, *kind, world)));
        Self(Arc::new(readers.collect()))
    }

    /// Every route and policy whose status has entries of a controller, in order. What of these has no verdict was left
    /// behind by a process that ended too soon, and is to be released ([`super::Wanted::Released`]). It reads every
    /// object: for once after the start.
    pub fn with_entries_of(&self, controller_name: &str) -> Vec<ObjectKey> {
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

    /// An object as its store has it.
    pub(super) fn live(&self, key: &ObjectKey) -> Option<Live> {
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
