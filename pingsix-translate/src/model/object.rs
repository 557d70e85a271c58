//! Identities of Kubernetes objects, by which every other module refers to them.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::kind::Kind;

/// Namespace and name of a namespaced object. Displays as `namespace/name`.
///
/// The type is a shared pointer, because a dozen maps have an object's name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName(Arc<NameParts>);

/// The parts of an [`ObjectName`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct NameParts {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Box<str>,
}

impl ObjectName {
    /// Names an object.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl AsRef<str>) -> Self {
        Self(Arc::new(NameParts { namespace: namespace.into(), name: name.as_ref().into() }))
    }

    /// Mutable access, if the name is not shared.
    pub(crate) fn get_mut(&mut self) -> Option<&mut NameParts> {
        Arc::get_mut(&mut self.0)
    }

    /// Whether the name is shared.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl Deref for ObjectName {
    type Target = NameParts;

    fn deref(&self) -> &NameParts {
        &self.0
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NameParts { namespace, name } = &**self;
        f.debug_struct("ObjectName").field("namespace", namespace).field("name", name).finish()
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Error for a text that is not the name of a namespaced object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected NAMESPACE/NAME")]
pub struct ParseObjectNameError;

/// The reverse of `Display`.
impl FromStr for ObjectName {
    type Err = ParseObjectNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (namespace, name) = text.split_once('/').ok_or(ParseObjectNameError)?;
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err(ParseObjectNameError);
        }
        Ok(Self::new(namespace, name))
    }
}

/// Identity of one object. Displays as `HTTPRoute shop/cart` or `GatewayClass pingsix`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The kind.
    pub kind: Kind,
    /// Namespace and name; the namespace is empty for cluster-scoped kinds.
    pub name: ObjectName,
}

impl ObjectKey {
    /// The key of a namespaced object; for a cluster-scoped kind pass an empty namespace.
    pub fn new(kind: Kind, namespace: impl Into<Arc<str>>, name: impl AsRef<str>) -> Self {
        Self { kind, name: ObjectName::new(namespace, name) }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name.name)
        } else {
            write!(f, "{} {}", self.kind, self.name)
        }
    }
}

/// Alphabetical order of `namespace/name` as one text, which differs from comparing the two parts in turn:
/// `a-b/x` comes before `a/x`. Of two kinds with one name, which the specification has nothing to say about, the one
/// declared first in [`Kind`] comes first.
fn compare_slashed(left: &ObjectKey, right: &ObjectKey) -> Ordering {
    fn text(key: &ObjectKey) -> impl Iterator<Item = u8> {
        key.name.namespace.bytes().chain([b'/']).chain(key.name.name.bytes())
    }
    if left.name.namespace == right.name.namespace {
        return left.name.name.cmp(&right.name.name).then(left.kind.cmp(&right.kind));
    }
    text(left).cmp(text(right))
}

/// The order of two objects in a conflict: the older one first, then by `namespace/name` (GEP-713, conflict
/// resolution).
pub(crate) fn compare_age(
    (left_age, left): (Age, &ObjectKey),
    (right_age, right): (Age, &ObjectKey),
) -> Ordering {
    left_age.cmp(&right_age).then_with(|| compare_slashed(left, right))
}

/// Age of an object, for conflict resolution. Older compares less.
///
/// An object without `creationTimestamp` (never stored by an API server) counts as newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age(i64);

impl Age {
    /// Reads the age of an object.
    pub(crate) fn of(metadata: &kube::core::ObjectMeta) -> Self {
        Self(metadata.creation_timestamp.as_ref().map_or(i64::MAX, |time| time.0.as_second()))
    }

    /// The creation time, if an API server has stored the object.
    pub(crate) fn created(self) -> Option<Time> {
        Timestamp::from_second(self.0).ok().map(Time)
    }
}
