//! An object of the API server.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use kube::Resource;
use kube::core::{DynamicResourceScope, ObjectMeta};
use pingsix_translate::snapshot::{Identified, Pool};
use pingsix_translate::status::{Problem, Reason, Severity};
use pingsix_translate::{FieldPath, Kind, ObjectKey, ObjectName};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::compact::{CompactStatus, Uid, Version};
use super::kinds::{Writes, facts};
use crate::store::StoredObject;

/// A kind that can be watched. Every kind of the table implements it.
pub trait WatchedKind:
    Identified + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static
{
}

impl<K> WatchedKind for K where
    K: Identified + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static
{
}

/// An object, or its decoding problem. An undecodable object has a name and takes part in lists and events: a failed
/// list would lose all other objects, and a dropped event would keep the old version forever.
///
/// The controller holds one for each watched object, so the type is small.
#[derive(Clone)]
pub struct Watched<K> {
    content: Content<K>,
    version: Version,
    digest: Digest,
    uid: Option<Uid>,
    /// The untyped status, because a typed one would lose the fields of other writers.
    status: Option<Box<CompactStatus>>,
}

/// A digest of the object without `resourceVersion`, `managedFields`, the status and the dropped fields.
type Digest = [u8; 16];

#[derive(Clone)]
enum Content<K> {
    Decoded(Arc<K>),
    Undecodable(Arc<Undecodable>),
}

/// The decoding problem of an object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Undecodable {
    /// The namespace and name.
    pub name: ObjectName,
    /// `metadata.generation`, or 0.
    pub generation: i64,
    /// The invalid field; `.` for the whole object.
    pub field: FieldPath,
    /// The problem of the field.
    pub message: String,
}

impl Undecodable {
    /// The problem for the author of the object.
    pub(crate) fn problem(&self, object: ObjectKey) -> Problem {
        let message =
            format!("The {} cannot be decoded, and counts as not there: {}.", object.kind, self.message);
        Problem {
            object: Arc::new(object),
            field: self.field.clone(),
            severity: Severity::Error,
            reason: Reason::Invalid,
            message,
        }
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl<K: WatchedKind> Watched<K> {
    /// The object, if it could be decoded.
    pub const fn object(&self) -> Option<&Arc<K>> {
        match &self.content {
            Content::Decoded(object) => Some(object),
            Content::Undecodable(_) => None,
        }
    }

    /// The decoding problem, if any.
    pub(crate) fn undecodable(&self) -> Option<&Undecodable> {
        match &self.content {
            Content::Decoded(_) => None,
            Content::Undecodable(problem) => Some(problem),
        }
    }

    /// The namespace and name.
    pub fn name(&self) -> ObjectName {
        match &self.content {
            Content::Decoded(object) => object.name(),
            Content::Undecodable(problem) => problem.name.clone(),
        }
    }

    /// The kind, namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey { kind: K::KIND, name: self.name() }
    }

    /// `metadata.generation`; 0 if absent or dropped for this kind.
    pub fn generation(&self) -> i64 {
        match &self.content {
            Content::Decoded(object) => object.generation(),
            Content::Undecodable(problem) => problem.generation,
        }
    }

    /// `metadata.resourceVersion`.
    pub fn version(&self) -> Option<String> {
        Some(self.version.to_string()).filter(|version| !version.is_empty())
    }

    /// `metadata.uid`; `None` if absent or dropped for this kind.
    pub fn uid(&self) -> Option<String> {
        self.uid.as_ref().map(ToString::to_string)
    }

    /// The status as the API server has it; null if absent or dropped for this kind.
    pub fn status(&self) -> Value {
        self.status.as_deref().map(CompactStatus::read).unwrap_or_default()
    }

    /// Whether both have equal content, apart from the status and from dropped fields.
    pub(crate) fn has_equal_content(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    /// Interns the parts that other objects have, too.
    pub(crate) fn share(&mut self, pool: &mut Pool) {
        if let Content::Decoded(object) = &mut self.content
            && let Some(object) = Arc::get_mut(object)
        {
            object.share(pool);
        }
        if let Some(status) = &mut self.status {
            status.share(pool);
        }
    }
}

impl<K: WatchedKind> StoredObject for Watched<K> {
    type Name = ObjectName;

    fn object_name(&self) -> ObjectName {
        self.name()
    }

    fn is_same_version(&self, other: &Self) -> bool {
        self.version == other.version
    }
}

/// An object on its way through kube: the stored part, and the metadata that kube reads.
#[derive(Clone)]
pub struct DecodedObject<K> {
    metadata: ObjectMeta,
    watched: Watched<K>,
}

impl<K> DecodedObject<K> {
    /// The stored part of the object.
    pub fn into_watched(self) -> Watched<K> {
        self.watched
    }
}

impl<K> Deref for DecodedObject<K> {
    type Target = Watched<K>;

    fn deref(&self) -> &Watched<K> {
        &self.watched
    }
}

impl<K: WatchedKind> DecodedObject<K> {
    fn read(mut object: Value) -> Result<Self, serde_json::Error> {
        let facts = facts(K::KIND);
        let status = object.as_object_mut().and_then(|object| object.remove("status"));
        let status = status
            .filter(|_| facts.writes != Writes::Nothing)
            .map(|status| Box::new(CompactStatus::new(status)));
        let mut resource_version = None;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
            }
            resource_version = metadata.remove("resourceVersion");
        }
        (facts.project)(&mut object);
        let digest = digest(&object);
        // An object without a name is a problem of the server.
        let mut metadata: ObjectMeta =
            serde_json::from_value(object.get("metadata").cloned().unwrap_or_default())?;
        if metadata.name.is_none() {
            return Err(serde_json::Error::custom("metadata.name is missing"));
        }
        metadata.resource_version = resource_version.map(serde_json::from_value).transpose()?;
        let content = match serde_path_to_error::deserialize::<_, K>(object) {
            Ok(object) => Content::Decoded(Arc::new(object)),
            Err(error) => {
                // The decoder quotes its input, and Secrets must not appear in messages.
                let message = if matches!(K::KIND, Kind::Secret | Kind::ConfigMap) {
                    "it has another shape".to_owned()
                } else {
                    error.inner().to_string()
                };
                let namespace = metadata.namespace.as_deref().unwrap_or_default();
                Content::Undecodable(Arc::new(Undecodable {
                    name: ObjectName::new(namespace, metadata.name.as_deref().unwrap_or_default()),
                    generation: metadata.generation.unwrap_or_default(),
                    field: FieldPath::new(&error.path().to_string()),
                    message,
                }))
            }
        };
        let version = Version::from(metadata.resource_version.as_deref().unwrap_or_default());
        let uid = metadata.uid.as_deref().map(Uid::from);
        Ok(Self { metadata, watched: Watched { content, version, digest, uid, status } })
    }
}

fn digest(object: &Value) -> Digest {
    let hash = Sha256::digest(object.to_string());
    let mut digest = Digest::default();
    digest.copy_from_slice(&hash[..size_of::<Digest>()]);
    digest
}

impl<'de, K: WatchedKind> Deserialize<'de> for Watched<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DecodedObject::deserialize(deserializer).map(DecodedObject::into_watched)
    }
}

impl<'de, K: WatchedKind> Deserialize<'de> for DecodedObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<K: WatchedKind> fmt::Debug for Watched<K> {
    /// Prints the name alone, because Secrets are among the objects.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("key", &self.key().to_string()).finish_non_exhaustive()
    }
}

impl<K: WatchedKind> Resource for DecodedObject<K> {
    type DynamicType = ();
    /// The same code watches kinds of both scopes.
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::Wire::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::Wire::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::Wire::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::Wire::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<K: WatchedKind> fmt::Debug for DecodedObject<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.watched.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pingsix_translate::snapshot::{self, EndpointSlice, HttpRoute, Object, Secret, Service};
    use pingsix_translate::{Objects, Options, for_each_kind};
    use serde_json::json;

    use super::*;
    use crate::pipeline::Pipeline;

    fn read<K: WatchedKind>(object: Value) -> Watched<K> {
        serde_json::from_value(object).unwrap()
    }

    fn route(version: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {
                "name": "cart", "namespace": "shop", "resourceVersion": version, "generation": 1,
                "managedFields": [{"manager": version}],
            },
            "spec": spec,
            "status": {"parents": [{"controllerName": "another", "unknown": version}]},
        })
    }

    #[test]
    fn the_status_is_kept_as_it_was_sent_and_is_no_change() {
        let one: Watched<HttpRoute> = read(route("1", &json!({"hostnames": ["a.example"]})));
        let two: Watched<HttpRoute> = read(route("2", &json!({"hostnames": ["a.example"]})));
        let other: Watched<HttpRoute> = read(route("3", &json!({"hostnames": ["b.example"]})));
        assert_eq!(two.status()["parents"][0]["unknown"], "2");
        assert_eq!(two.version().as_deref(), Some("2"));
        assert!(one.has_equal_content(&two) && !one.has_equal_content(&other));
    }

    #[test]
    fn an_undecodable_object_has_its_name_and_the_invalid_field() {
        let broken: Watched<HttpRoute> = read(route("1", &json!({"rules": [{"matches": 7}]})));
        assert_eq!(broken.key().to_string(), "HTTPRoute shop/cart");
        assert!(broken.object().is_none());
        let problem = broken.undecodable().unwrap();
        assert_eq!(problem.field.as_str(), "spec.rules[0].matches");
        let problem = problem.problem(broken.key());
        assert_eq!(
            problem.message,
            "The HTTPRoute cannot be decoded, and counts as not there: invalid type: integer `7`, expected a sequence."
        );
        // The content has changed.
        assert!(!broken.has_equal_content(&read(route("1", &json!({})))));
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret: Watched<Secret> = read(json!({
            "metadata": {"name": "tls", "namespace": "shop"}, "data": {"tls.key": "Y2FuYXJ5"},
        }));
        assert_eq!(format!("{secret:?}"), "Watched { key: \"Secret shop/tls\", .. }");
        // A decoder quotes its input.
        let broken: Watched<Secret> = read(json!({
            "metadata": {"name": "tls", "namespace": "shop"}, "data": "canary",
        }));
        assert_eq!(broken.undecodable().unwrap().to_string(), "data: it has another shape");
    }

    macro_rules! kept {
        ($($kind:ident in $field:ident $facts:tt)+) => {
            /// An object as the controller keeps it.
            fn kept(object: &Object) -> Object {
                match object {
                    $(Object::$kind(object) => {
                        let watched: Watched<snapshot::$kind> = read(serde_json::to_value(&**object).unwrap());
                        Object::$kind(Arc::clone(watched.object().unwrap()))
                    })+
                }
            }
        };
    }

    for_each_kind! { kept }

    #[test]
    fn no_field_is_dropped_that_translation_reads() {
        let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/scenarios");
        let folders = |path: &Path| {
            let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
            entries.filter(|path| path.is_dir())
        };
        let responder = "127.0.0.1:9180".parse().ok();
        let pipeline = Pipeline::new(Options { responder, stream: true, ..Options::default() });
        let translated = |objects: &Objects| {
            let output = pipeline.run(objects);
            let planes = output.desired().map(|(key, desired)| (key.clone(), desired.documents().clone()));
            (planes.collect::<Vec<_>>(), format!("{:?}", output.findings))
        };
        let mut count = 0;
        for scenario in folders(&scenarios).flat_map(|group| folders(&group).collect::<Vec<_>>()) {
            let Ok(text) = std::fs::read_to_string(scenario.join("input.yaml")) else { continue };
            let (objects, _) = Objects::from_yaml(&text);
            let mut as_kept = Objects::default();
            for object in Kind::ALL.iter().flat_map(|kind| objects.of_kind(*kind)) {
                as_kept.insert(kept(&object));
            }
            assert!(translated(&as_kept) == translated(&objects), "{}", scenario.display());
            count += 1;
        }
        assert!(count > 300, "{count} scenarios");
    }

    #[test]
    fn unused_fields_of_services_and_slices_are_dropped() {
        let one: Watched<Service> = read(json!({
            "metadata": {"name": "cart", "namespace": "shop", "uid": "1", "labels": {"team": "a"}},
            "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "selector": {"app": "cart"}, "ports": [
                {"name": "web", "port": 80, "protocol": "TCP", "appProtocol": "http", "targetPort": 8080, "nodePort": 30080},
            ]},
        }));
        let kept = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "cart", "namespace": "shop"},
            "spec": {
                "clusterIP": "10.0.0.1",
                "ports": [{"name": "web", "port": 80, "protocol": "TCP", "appProtocol": "http"}],
            },
        });
        assert_eq!(serde_json::to_value(&**one.object().unwrap()).unwrap(), kept);
        assert_eq!(one.uid().as_deref(), Some("1"), "Events are about this very object");

        let slice = |version: &str, node: &str| -> Watched<EndpointSlice> {
            read(json!({
                "metadata": {"name": "cart-1", "namespace": "shop", "uid": "2", "resourceVersion": version,
                    "labels": {"kubernetes.io/service-name": "cart", "managed-by": node}},
                "addressType": "IPv4", "ports": [{"name": "web", "port": 8080, "protocol": "TCP"}],
                "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}, "nodeName": node}],
            }))
        };
        let one = slice("1", "a");
        let kept = json!({
            "metadata": {"name": "cart-1", "namespace": "shop",
                "labels": {"kubernetes.io/service-name": "cart"}},
            "addressType": "IPv4", "ports": [{"name": "web", "port": 8080}],
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}],
        });
        let mut object = serde_json::to_value(&**one.object().unwrap()).unwrap();
        object.as_object_mut().unwrap().retain(|field, _| field != "apiVersion" && field != "kind");
        assert_eq!(object, kept);
        assert!(one.has_equal_content(&slice("2", "b")), "where an endpoint runs is no change");
    }
}
