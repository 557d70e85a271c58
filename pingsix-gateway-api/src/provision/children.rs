//! The observed child objects of owners.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{BoxStream, SelectAll, StreamExt as _, select_all};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DynamicObject};
use kube::{Client, ResourceExt as _};
use kube_runtime::{WatchStreamExt as _, watcher};
use pingsix_translate::status::Address;
use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::Value;

use super::addresses::addresses_of_service;
use super::keys::{KeyRecord, Rollout};
use super::{ChildKind, MANAGED_BY};
use crate::api_error::{ApiError, ApiErrorCategory};
use crate::digest::short_digest;
use crate::pki::FeedIdentity;
use crate::watch::Namespaces;

/// Kind and name of an object.
pub(super) type ChildKey = (ChildKind, ObjectName);

/// The relevant part of an observed object.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) uid: String,
    /// Its `resourceVersion`, which grows for objects of one kind.
    version: u64,
    /// The owner and its UID; `None` without an owner of our kinds.
    pub(super) owner: Option<(ObjectKey, String)>,
    /// The digest of the desired content.
    pub(super) digest: String,
    /// Of a Service.
    pub(super) addresses: Vec<Address>,
    /// Of a Secret for the feed.
    pub(super) identity: Option<FeedIdentity>,
    /// Of a Secret with the configuration of processes.
    pub(super) keys: KeyRecord,
    /// Of a Deployment.
    pub(super) rollout: Option<Rollout>,
    /// For a Deployment: the field managers of the number of Pods.
    pub(super) scaled_by: BTreeSet<String>,
}

impl Observed {
    /// Reads an object.
    pub(super) fn of(kind: ChildKind, object: DynamicObject) -> Self {
        let owner = object.owner_references().iter().find(|owner| owner.controller == Some(true));
        let owner = owner.and_then(|reference| {
            let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
            let kinds = [Kind::Gateway, Kind::IngressClass];
            let kind =
                kinds.into_iter().find(|kind| kind.as_str() == reference.kind && kind.group() == group)?;
            let namespace =
                if kind == Kind::Gateway { object.namespace().unwrap_or_default() } else { String::new() };
            Some((ObjectKey::new(kind, namespace, reference.name.as_str()), reference.uid.clone()))
        });
        let uid = object.uid().unwrap_or_default();
        let version = object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default();
        let scaled_by = if kind == ChildKind::Deployment { scaled_by(&object) } else { BTreeSet::new() };
        let value = serde_json::to_value(object).unwrap_or_default();
        Self {
            uid,
            version,
            owner,
            digest: digest(&value),
            identity: (kind == ChildKind::Secret).then(|| identity(&value)).flatten(),
            keys: if kind == ChildKind::Secret { KeyRecord::of(&value) } else { KeyRecord::default() },
            rollout: (kind == ChildKind::Deployment).then(|| Rollout::of(&value)),
            scaled_by,
            addresses: if kind == ChildKind::Service {
                let service = serde_json::from_value::<Service>(value);
                service.map(|service| addresses_of_service(&service)).unwrap_or_default()
            } else {
                Vec::new()
            },
        }
    }

    /// Whether the relevant content is equal.
    fn has_equal_content(&self, other: &Self) -> bool {
        let essence = |observed: &Self| {
            let Self { uid, version: _, owner, digest, addresses, identity, keys, rollout, scaled_by: _ } =
                observed.clone();
            (uid, owner, digest, addresses, identity, keys, rollout)
        };
        essence(self) == essence(other)
    }

    /// The precondition of a request that needs the object unchanged.
    pub(super) fn observed_version(&self) -> ObservedVersion {
        let version = (self.version > 0).then(|| self.version.to_string());
        ObservedVersion { uid: self.uid.clone(), version }
    }

    pub(super) fn is_owned_by(&self, uid: &str) -> bool {
        self.owner.as_ref().is_some_and(|(_, owner)| owner == uid)
    }
}

/// The digest of the desired content of any author: without status, and without fields that change with every write.
fn digest(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["resourceVersion", "generation", "managedFields", "creationTimestamp"] {
            metadata.remove(field);
        }
    }
    short_digest(&object.to_string())
}

/// The field managers of `spec.replicas`.
pub(super) fn scaled_by(deployment: &DynamicObject) -> BTreeSet<String> {
    let managers = deployment.managed_fields().iter().filter(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        entry.operation.as_deref() == Some("Apply")
            && fields.is_some_and(|fields| fields.pointer("/f:spec/f:replicas").is_some())
    });
    managers.filter_map(|entry| entry.manager.clone()).collect()
}

fn identity(secret: &Value) -> Option<FeedIdentity> {
    let data: BTreeMap<String, ByteString> = serde_json::from_value(secret.get("data")?.clone()).ok()?;
    FeedIdentity::from_data(&data)
}

/// The object and the version that a request expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObservedVersion {
    pub(super) uid: String,
    /// Its `resourceVersion`.
    pub(super) version: Option<String>,
}

/// The result of a request about an object.
#[derive(Clone, Debug)]
pub(super) enum ChildChange {
    /// The object exists.
    There(Box<Observed>),
    /// The object with this UID is deleted.
    Deleted { uid: String },
}

/// All objects with the label of an installation, as watches observe them.
pub(super) struct Children {
    known: BTreeMap<ChildKey, Observed>,
    watches: Vec<Watch>,
    events: SelectAll<BoxStream<'static, (usize, watcher::Result<watcher::Event<DynamicObject>>)>>,
}

/// One of the watches.
struct Watch {
    kind: ChildKind,
    namespace: Option<String>,
    /// The objects of the running list.
    listing: BTreeMap<ChildKey, Observed>,
    is_listed: bool,
    /// Whether the last try was forbidden.
    is_forbidden: bool,
    /// The newest delivered version.
    newest: u64,
    /// The last complaint: a lasting error is logged once.
    complaint: Option<ApiErrorCategory>,
}

impl Children {
    pub(super) fn watch(client: &Client, namespaces: &Namespaces, managed_by: &str) -> Self {
        let places = namespaces.scopes();
        let config = watcher::Config::default().labels(&format!("{MANAGED_BY}={managed_by}"));
        let (mut watches, mut streams) = (Vec::new(), Vec::new());
        for kind in ChildKind::ALL {
            for namespace in &places {
                let index = watches.len();
                let resource = kind.api_resource();
                let api: Api<DynamicObject> = match namespace {
                    None => Api::all_with(client.clone(), &resource),
                    Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                };
                let events = watcher(api, config.clone()).default_backoff();
                streams.push(events.map(move |event| (index, event)).boxed());
                watches.push(Watch {
                    kind: *kind,
                    namespace: namespace.clone(),
                    listing: BTreeMap::new(),
                    is_listed: false,
                    is_forbidden: false,
                    newest: 0,
                    complaint: None,
                });
            }
        }
        Self { known: BTreeMap::new(), watches, events: select_all(streams) }
    }

    /// Whether all lists are complete.
    pub(super) fn is_listed(&self) -> bool {
        self.watches.iter().all(|watch| watch.is_listed)
    }

    pub(super) fn get(&self, key: &ChildKey) -> Option<&Observed> {
        self.known.get(key)
    }

    /// An object of an owner.
    pub(super) fn of_owner(&self, key: &ChildKey, uid: &str) -> Option<&Observed> {
        self.known.get(key).filter(|child| child.is_owned_by(uid))
    }

    /// Whether the watch of an object is permitted.
    pub(super) fn is_watched(&self, key: &ChildKey) -> bool {
        self.watch_of(key).is_some_and(|watch| !watch.is_forbidden)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ChildKey, &Observed)> {
        self.known.iter()
    }

    /// Records the result of a request. The watch may have delivered this version or a later one.
    pub(super) fn note(&mut self, key: ChildKey, noted: ChildChange) {
        match noted {
            ChildChange::There(observed) => {
                let is_news = match self.known.get(&key) {
                    Some(known) => known.version < observed.version,
                    // A watch that has passed this version has delivered the deletion as well.
                    None => self.version_of(&key) < observed.version,
                };
                if is_news {
                    self.known.insert(key, *observed);
                }
            }
            ChildChange::Deleted { uid } => {
                if self.known.get(&key).is_some_and(|known| known.uid == uid) {
                    self.known.remove(&key);
                }
            }
        }
    }

    /// The version that the watch of an object has reached.
    fn version_of(&self, key: &ChildKey) -> u64 {
        self.watch_of(key).map_or(0, |watch| watch.newest)
    }

    /// The watch of an object.
    fn watch_of(&self, (kind, name): &ChildKey) -> Option<&Watch> {
        let watches = self.watches.iter().filter(|watch| watch.kind == *kind);
        let mut of_it = watches
            .filter(|watch| watch.namespace.as_deref().is_none_or(|namespace| *name.namespace == *namespace));
        of_it.next()
    }

    /// Waits for the next event, and records it. Returns the owners of its objects.
    pub(super) async fn next(&mut self) -> Vec<ObjectKey> {
        match self.events.next().await {
            Some((index, event)) => self.take(index, event),
            None => std::future::pending().await,
        }
    }

    fn take(
        &mut self,
        index: usize,
        event: watcher::Result<watcher::Event<DynamicObject>>,
    ) -> Vec<ObjectKey> {
        let Some(watch) = self.watches.get_mut(index) else { return Vec::new() };
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                let error = ApiError::from(&error);
                // An object without permission to watch is read before each write; changes by others are not observed.
                watch.is_forbidden |= error.category == ApiErrorCategory::Forbidden;
                watch.is_listed |= watch.is_forbidden;
                watch.log_error(&error);
                return Vec::new();
            }
        };
        let kind = watch.kind;
        let read = |object: DynamicObject| {
            let name = ObjectName::new(object.namespace().unwrap_or_default(), object.name_any());
            ((kind, name), Observed::of(kind, object))
        };
        match event {
            watcher::Event::Init => {
                watch.listing.clear();
                Vec::new()
            }
            watcher::Event::InitApply(object) => {
                let (key, observed) = read(object);
                watch.newest = watch.newest.max(observed.version);
                watch.listing.insert(key, observed);
                Vec::new()
            }
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut watch.listing);
                (watch.is_listed, watch.is_forbidden, watch.complaint) = (true, false, None);
                let namespace = watch.namespace.clone();
                let is_of_watch = |(known, name): &ChildKey| {
                    *known == kind
                        && namespace.as_deref().is_none_or(|namespace| *name.namespace == *namespace)
                };
                let gone: Vec<ChildKey> = self
                    .known
                    .keys()
                    .filter(|key| is_of_watch(key) && !listed.contains_key(*key))
                    .cloned()
                    .collect();
                let mut owners: Vec<ObjectKey> =
                    gone.iter().filter_map(|key| owner(self.known.remove(key))).collect();
                for (key, observed) in listed {
                    let is_other = |known: &Observed| !known.has_equal_content(&observed);
                    if self.known.get(&key).is_none_or(is_other) {
                        owners.extend(owner(Some(observed.clone())));
                    }
                    self.known.insert(key, observed);
                }
                owners
            }
            watcher::Event::Apply(object) => {
                watch.complaint = None;
                let (key, observed) = read(object);
                watch.newest = watch.newest.max(observed.version);
                // The result of a request may be newer.
                if self.known.get(&key).is_some_and(|known| known.version > observed.version) {
                    return Vec::new();
                }
                let before = self.known.insert(key, observed.clone());
                if before.as_ref().is_some_and(|before| before.has_equal_content(&observed)) {
                    return Vec::new();
                }
                [owner(before), owner(Some(observed))].into_iter().flatten().collect()
            }
            watcher::Event::Delete(object) => {
                let (key, observed) = read(object);
                watch.newest = watch.newest.max(observed.version);
                // An object of the same name may have been created since.
                if self.known.get(&key).is_some_and(|known| known.uid != observed.uid) {
                    return Vec::new();
                }
                owner(self.known.remove(&key)).into_iter().collect()
            }
        }
    }
}

impl Watch {
    fn log_error(&mut self, error: &ApiError) {
        if self.complaint.replace(error.category) == Some(error.category) {
            return;
        }
        let (resource, namespace) = (self.kind.resource(), self.namespace.as_deref().unwrap_or("*"));
        tracing::warn!(resource, namespace, error = %error, "the objects of managed data planes cannot be watched");
    }
}

fn owner(observed: Option<Observed>) -> Option<ObjectKey> {
    observed?.owner.map(|(owner, _)| owner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(kind: ChildKind, object: Value) -> Observed {
        Observed::of(kind, serde_json::from_value(object).unwrap())
    }

    #[test]
    fn the_digest_of_a_child_ignores_its_status_and_version() {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "b", "uid": "1", "resourceVersion": "7", "generation": 2},
            "spec": {"replicas": 1}, "status": {"replicas": 1}});
        let same = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "b", "uid": "1", "resourceVersion": "9", "generation": 3},
            "spec": {"replicas": 1}, "status": {"replicas": 0}});
        let mut other = same.clone();
        other["spec"]["replicas"] = json!(2);
        let digest = |object| read(ChildKind::Deployment, object).digest;
        assert_eq!(digest(object.clone()), digest(same));
        assert_ne!(digest(object), digest(other));
    }

    fn service(uid: &str, version: u64, address: Option<&str>) -> DynamicObject {
        let ingress: Vec<Value> = address.iter().map(|ip| json!({ "ip": ip })).collect();
        let object = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "a", "namespace": "b", "uid": uid, "resourceVersion": version.to_string()},
            "spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": ingress}}});
        serde_json::from_value(object).unwrap()
    }

    fn noted(uid: &str, version: u64) -> ChildChange {
        ChildChange::There(Box::new(Observed::of(ChildKind::Service, service(uid, version, None))))
    }

    /// The known state of one Service after watch events and results of requests.
    struct KnownChildren(Children, ChildKey);

    impl KnownChildren {
        fn new() -> Self {
            let client = crate::fixture::api_server::ApiServer::default().client();
            let name = ObjectName::new("b", "a");
            Self(Children::watch(&client, &Namespaces::All, "us"), (ChildKind::Service, name))
        }

        fn apply(&mut self, event: watcher::Event<DynamicObject>) {
            let index = ChildKind::ALL.iter().position(|kind| *kind == ChildKind::Service).unwrap();
            self.0.take(index, Ok(event));
        }

        fn note(&mut self, noted: ChildChange) {
            self.0.note(self.1.clone(), noted);
        }

        /// Its UID and its version, and how many addresses it has.
        fn is(&self) -> Option<(&str, u64, usize)> {
            self.0.get(&self.1).map(|known| (known.uid.as_str(), known.version, known.addresses.len()))
        }
    }

    #[tokio::test]
    async fn the_result_of_a_request_does_not_undo_later_events() {
        let mut known = KnownChildren::new();
        known.note(noted("1", 5));
        assert_eq!(known.is(), Some(("1", 5, 0)), "before the watch tells of it");
        known.apply(watcher::Event::Apply(service("1", 5, None)));
        known.apply(watcher::Event::Apply(service("1", 7, Some("192.0.2.1"))));
        known.note(noted("1", 5));
        assert_eq!(known.is(), Some(("1", 7, 1)), "the address stays");
        known.note(noted("1", 9));
        known.apply(watcher::Event::Apply(service("1", 8, Some("192.0.2.1"))));
        assert_eq!(known.is(), Some(("1", 9, 0)), "nor does a watch that is behind");

        known.apply(watcher::Event::Delete(service("1", 11, None)));
        known.note(noted("1", 9));
        assert_eq!(known.is(), None, "what is gone stays so");
        known.note(noted("2", 13));
        known.note(ChildChange::Deleted { uid: "1".to_owned() });
        known.apply(watcher::Event::Delete(service("1", 11, None)));
        assert_eq!(known.is(), Some(("2", 13, 0)), "another one of its name");
        known.note(ChildChange::Deleted { uid: "2".to_owned() });
        assert_eq!(known.is(), None);
    }

    #[test]
    fn the_owner_is_the_controlling_reference_of_a_kind_of_ours() {
        let object = |owner: Value| {
            json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "a", "namespace": "b", "uid": "1", "ownerReferences": [owner]}})
        };
        let gateway = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "web", "uid": "7",
            "controller": true});
        let observed = read(ChildKind::Secret, object(gateway.clone()));
        assert_eq!(observed.owner, Some((ObjectKey::new(Kind::Gateway, "b", "web"), "7".to_owned())));
        assert!(observed.is_owned_by("7") && !observed.is_owned_by("8"));
        for (field, value) in
            [("controller", json!(false)), ("kind", json!("Cart")), ("apiVersion", json!("other/v1"))]
        {
            let mut other = gateway.clone();
            other[field] = value;
            assert_eq!(read(ChildKind::Secret, object(other)).owner, None);
        }
        let class = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "name": "web", "uid": "7",
            "controller": true});
        let owner = read(ChildKind::Secret, object(class)).owner.unwrap().0;
        assert_eq!(owner, ObjectKey::new(Kind::IngressClass, "", "web"));
    }
}
