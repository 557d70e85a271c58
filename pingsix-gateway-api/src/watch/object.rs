//! An object as it comes from the API server.

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

use super::kinds::{Writes, facts};
use super::small::{KeptStatus, Uid, Version};
use crate::store::StoredObject;

/// A kind that can be watched: every kind of the table.
pub trait WatchedKind:
    Identified + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static
{
}

impl<K> WatchedKind for K where
    K: Identified + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static
{
}

/// An object, or what is wrong with it. One that cannot be decoded is still there, with its name: a list that fails for
/// it would lose all the others, and an event that is dropped would leave an old version in force for ever.
///
/// There is one of them for each object of the cluster, so it holds as little as it can.
#[derive(Clone)]
pub struct Watched<K> {
    content: Content<K>,
    version: Version,
    digest: Digest,
    uid: Option<Uid>,
    /// As it was sent, for a typed round trip would lose what others have written.
    status: Option<Box<KeptStatus>>,
}

/// Of everything but `resourceVersion`, `managedFields`, the status and what the projection drops.
type Digest = [u8; 16];

#[derive(Clone)]
enum Content<K> {
    Decoded(Arc<K>),
    Undecodable(Arc<Undecodable>),
}

/// An object that has another shape than its kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Undecodable {
    /// The namespace and name.
    pub name: ObjectName,
    /// `metadata.generation`; 0 when it has none.
    pub generation: i64,
    /// The field of another shape; `.` for the whole object.
    pub field: FieldPath,
    /// The fault of this field.
    pub message: String,
}

impl Undecodable {
    /// For whoever made the object.
    pub fn problem(&self, object: ObjectKey) -> Problem {
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

    /// The decoding fault, if any.
    pub fn undecodable(&self) -> Option<&Undecodable> {
        match &self.content {
            Content::Decoded(_) => None,
            Content::Undecodable(fault) => Some(fault),
        }
    }

    /// The namespace and name.
    pub fn name(&self) -> ObjectName {
        match &self.content {
            Content::Decoded(object) => object.name(),
            Content::Undecodable(fault) => fault.name.clone(),
        }
    }

    /// Its identity.
    pub fn key(&self) -> ObjectKey {
        ObjectKey { kind: K::KIND, name: self.name() }
    }

    /// `metadata.generation`; 0 when it has none, or when it is not kept for this kind.
    pub fn generation(&self) -> i64 {
        match &self.content {
            Content::Decoded(object) => object.generation(),
            Content::Undecodable(fault) => fault.generation,
        }
    }

    /// `metadata.resourceVersion`; `None` when it has none.
    pub fn version(&self) -> Option<String> {
        Some(self.version.to_string()).filter(|version| !version.is_empty())
    }

    /// `metadata.uid`; `None` when it has none, or when it is not kept for this kind.
    pub fn uid(&self) -> Option<String> {
        self.uid.as_ref().map(ToString::to_string)
    }

    /// Its status as the API server has it; null when there is none, or when it is not kept for this kind.
    pub fn status(&self) -> Value {
        self.status.as_deref().map(KeptStatus::read).unwrap_or_default()
    }

    /// Whether both have equal content, apart from the status and from unread fields.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    /// Holds what others hold as well together with them.
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
    fn object_name(&self) -> ObjectName {
        self.name()
    }

    fn is_same_version(&self, other: &Self) -> bool {
        self.version == other.version
    }
}

/// An object as it arrives: what is kept of it, and what kube reads of an object while it is under way.
#[derive(Clone)]
pub struct DecodedObject<K> {
    metadata: ObjectMeta,
    watched: Watched<K>,
}

impl<K> DecodedObject<K> {
    /// The kept part of the object.
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
            .map(|status| Box::new(KeptStatus::new(status)));
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
        // Without metadata there is no name, and nobody to report it to: that is a fault of the server.
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
    /// The name alone: a Secret has more to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("key", &self.key().to_string()).finish_non_exhaustive()
    }
}

impl<K: WatchedKind> Resource for DecodedObject<K> {
    type DynamicType = ();
    /// One code watches kinds of either scope, within a namespace or in all.
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
    use pingsix_translate::snapshot::{EndpointSlice, HttpRoute, Secret, Service};
    use serde_json::json;

    use super::*;

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
        assert!(one.says_the_same(&two) && !one.says_the_same(&other));
    }

    #[test]
    fn what_cannot_be_decoded_keeps_its_name_and_says_which_field() {
        let broken: Watched<HttpRoute> = read(route("1", &json!({"rules": [{"matches": 7}]})));
        assert_eq!(broken.key().to_string(), "HTTPRoute shop/cart");
        assert!(broken.object().is_none());
        let fault = broken.undecodable().unwrap();
        assert_eq!(fault.field.as_str(), "spec.rules[0].matches");
        let problem = fault.problem(broken.key());
        assert_eq!(
            problem.message,
            "The HTTPRoute cannot be decoded, and counts as not there: invalid type: integer `7`, expected a sequence."
        );
        // The content has changed.
        assert!(!broken.says_the_same(&read(route("1", &json!({})))));
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret: Watched<Secret> = read(json!({
            "metadata": {"name": "tls", "namespace": "shop"}, "data": {"tls.key": "Y2FuYXJ5"},
        }));
        assert_eq!(format!("{secret:?}"), "Watched { key: \"Secret shop/tls\", .. }");
        // Nor when it cannot be decoded: a decoder quotes what it does not understand.
        let broken: Watched<Secret> = read(json!({
            "metadata": {"name": "tls", "namespace": "shop"}, "data": "canary",
        }));
        assert_eq!(broken.undecodable().unwrap().to_string(), "data: it has another shape");
    }

    #[test]
    fn of_services_and_slices_only_what_is_read_is_kept() {
        let one: Watched<Service> = read(json!({
            "metadata": {"name": "cart", "namespace": "shop", "uid": "1", "labels": {"team": "a"}},
            "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "selector": {"app": "cart"}, "ports": [
                {"name": "web", "port": 80, "protocol": "TCP", "appProtocol": "http", "targetPort": 8080, "nodePort": 30080},
            ]},
        }));
        let kept = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "cart", "namespace": "shop"},
            "spec": {"ports": [{"name": "web", "port": 80, "protocol": "TCP", "appProtocol": "http"}]},
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
        assert!(one.says_the_same(&slice("2", "b")), "where an endpoint runs is no change");
    }
}
