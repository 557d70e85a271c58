//! The source of a selection.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::edges::Target;
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::shared_map::SharedMap;
use crate::snapshot::{EndpointSlice, FromObject, Object, ReferenceGrant, default_ingress_classes};

/// Objects, and the reverse of their references.
pub trait ObjectSource {
    /// The object with this key, if it exists and is decodable.
    fn object(&self, key: &ObjectKey) -> Option<Object>;

    /// The objects of a kind that concern a target, by name.
    fn members(&self, kind: Kind, target: &Target) -> Vec<ObjectName>;

    /// Whether a predicate holds for an object of a kind that depends on a target.
    fn has_dependent(&self, kind: Kind, target: &Target, is_one: &dyn Fn(&ObjectName) -> bool) -> bool;

    /// The object of a kind with a name, if it exists and is decodable.
    fn get<K: FromObject>(&self, name: &ObjectName) -> Option<Arc<K>> {
        K::from_object(self.object(&ObjectKey { kind: K::KIND, name: name.clone() })?)
    }

    /// The policies that concern a target, by kind, then by name.
    fn policies_of(&self, target: &Target) -> Vec<ObjectKey> {
        let of_kind = |kind| {
            let names = self.members(kind, target).into_iter();
            names.map(move |name| ObjectKey { kind, name })
        };
        Kind::policies().flat_map(of_kind).collect()
    }

    /// The EndpointSlices of a Service, by name.
    fn slices_of(&self, service: &ObjectName) -> Vec<Arc<EndpointSlice>> {
        let names = self.members(Kind::EndpointSlice, &Target::service(service));
        let mut slices: Vec<Arc<EndpointSlice>> = names.iter().filter_map(|name| self.get(name)).collect();
        // There is such a list for each Service, and most have one.
        slices.shrink_to_fit();
        slices
    }

    /// The ReferenceGrants that permit objects of a kind to refer from one namespace into another.
    fn grants(
        &self,
        kind: Kind,
        from: &Arc<str>,
        into: &Arc<str>,
    ) -> SharedMap<ObjectName, Arc<ReferenceGrant>> {
        let crossing = Target::crossing(kind, from.clone(), into.clone());
        existing(self, self.members(Kind::ReferenceGrant, &crossing))
    }

    /// The classes with the mark of the default, in the order of precedence.
    fn default_classes(&self) -> Vec<Arc<str>> {
        let marked = self.members(Kind::IngressClass, &Target::DefaultIngressClass);
        let marked: Vec<_> = marked.iter().filter_map(|name| self.get(name)).collect();
        default_ingress_classes(marked.iter().map(AsRef::as_ref))
    }
}

/// The objects that came, went or changed since an extract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// The changed objects.
    pub objects: BTreeSet<ObjectKey>,
    /// Services with a new, changed or deleted EndpointSlice, in its old or its new version.
    pub sliced: BTreeSet<ObjectName>,
}

/// The existing objects with these names.
pub(super) fn existing<K: FromObject, S: ObjectSource + ?Sized>(
    source: &S,
    names: impl IntoIterator<Item = ObjectName>,
) -> SharedMap<ObjectName, Arc<K>> {
    names.into_iter().filter_map(|name| source.get(&name).map(|object| (name, object))).collect()
}
