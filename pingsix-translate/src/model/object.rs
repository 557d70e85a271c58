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

impl ObjectKey {
    /// The object in a message to the readers of another object. Readers of a namespace need not be allowed to know the
    /// objects of other namespaces, so these are not named.
    pub(crate) fn named_to(&self, reader: &Self) -> String {
        if self.is_known_to(reader) {
            return self.to_string();
        }
        let kind = self.kind.as_str();
        // An Ingress, an HTTPRoute; a UDPRoute.
        let article = if kind.starts_with(['A', 'E', 'H', 'I', 'O']) { "an" } else { "a" };
        format!("{article} {kind} of another namespace")
    }

    /// As [`named_to`](Self::named_to), for the beginning of a sentence.
    pub(crate) fn introduced_to(&self, reader: &Self) -> String {
        let mut name = self.named_to(reader);
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        name
    }

    /// Whether the readers of another object may know this one: both have the same namespace, or one has none.
    pub(crate) fn is_known_to(&self, reader: &Self) -> bool {
        let (own, of_reader) = (&self.name.namespace, &reader.name.namespace);
        own == of_reader || own.is_empty() || of_reader.is_empty()
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

/// Whether a text has the form of a DNS label: lower-case letters, digits and dashes, without a dash at an end. The length
/// is a limit of its own.
pub fn is_dns_label(text: &str) -> bool {
    let is_end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| is_end(byte) || byte == b'-')
        && text.bytes().next().is_some_and(is_end)
        && text.bytes().next_back().is_some_and(is_end)
}

/// Whether Kubernetes admits the name of an object: a DNS subdomain.
pub fn is_dns_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_dns_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_objects_are_lower_case_labels() {
        for good in ["a", "0", "cart-1", "a.b-c.0"] {
            assert!(is_dns_subdomain(good), "{good}");
        }
        for bad in ["", ".", "a.", "a..b", "-a", "a-", "a.-b", "A", "a_b", "ä", "*.a", &"a".repeat(254)] {
            assert!(!is_dns_subdomain(bad), "{bad}");
        }
        assert!(is_dns_label("cart-1") && !is_dns_label("a.b"));
    }

    #[test]
    fn objects_of_other_namespaces_are_not_named() {
        let route = ObjectKey::new(Kind::HttpRoute, "shop", "cart");
        let reader = |namespace: &str| ObjectKey::new(Kind::GrpcRoute, namespace, "calls");
        assert_eq!(route.named_to(&reader("shop")), "HTTPRoute shop/cart");
        assert_eq!(route.named_to(&reader("bank")), "an HTTPRoute of another namespace");
        assert_eq!(route.introduced_to(&reader("bank")), "An HTTPRoute of another namespace");
        assert_eq!(
            ObjectKey::new(Kind::UdpRoute, "shop", "dns").named_to(&reader("bank")),
            "a UDPRoute of another namespace"
        );
        // Everybody may know the objects without a namespace, and their readers all others.
        let class = ObjectKey::new(Kind::IngressClass, "", "pingsix");
        assert_eq!(class.named_to(&reader("bank")), "IngressClass pingsix");
        assert_eq!(route.named_to(&class), "HTTPRoute shop/cart");
    }
}
