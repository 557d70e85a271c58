//! A plain collection of objects with the reverse of their references.

use std::collections::{BTreeMap, BTreeSet};

use super::edges::{Direction, Edges, Target};
use super::source::{Changed, ObjectSource};
use crate::for_each_kind;
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::snapshot::{Object, Objects, service_of_slice};

/// [`Objects`] with the reverse of their references.
#[derive(Clone, Debug, Default)]
pub struct IndexedObjects {
    objects: Objects,
    /// The objects that concern a target, and those that depend on it.
    members: Referrers,
    dependents: Referrers,
}

type Referrers = BTreeMap<Target, BTreeSet<ObjectKey>>;

macro_rules! edges {
    ($($kind:ident in $field:ident $facts:tt)+) => {
        /// Calls a function for each reference of an object.
        fn for_each_reference(object: &Object, function: &mut dyn FnMut(Direction, Target)) {
            let name = object.key().name;
            match object {
                $(Object::$kind(object) => {
                    for edge in <crate::snapshot::$kind as Edges>::EDGES {
                        let mut targets = Vec::new();
                        (edge.targets)(object, &name, &mut targets);
                        for target in targets {
                            function(edge.direction, target);
                        }
                    }
                })+
            }
        }
    };
}

for_each_kind! { edges }

impl From<Objects> for IndexedObjects {
    fn from(objects: Objects) -> Self {
        let mut indexed = Self::default();
        indexed.update(objects);
        indexed
    }
}

impl IndexedObjects {
    /// Takes other objects, and returns the changes. The cost is that of the changes, if one collection is a changed copy
    /// of the other.
    pub fn update(&mut self, objects: Objects) -> Changed {
        let mut changed = Changed { objects: objects.changes(&self.objects), ..Changed::default() };
        for key in &changed.objects {
            let (before, after) = (self.objects.get(key), objects.get(key));
            for object in before.iter().chain(&after) {
                if let Object::EndpointSlice(slice) = object {
                    changed.sliced.extend(service_of_slice(slice));
                }
            }
            if let Some(before) = before {
                for_each_reference(&before, &mut |direction, target| {
                    let referrers = self.referrers(direction);
                    if let Some(keys) = referrers.get_mut(&target) {
                        keys.remove(key);
                        if keys.is_empty() {
                            referrers.remove(&target);
                        }
                    }
                });
            }
            if let Some(after) = after {
                for_each_reference(&after, &mut |direction, target| {
                    self.referrers(direction).entry(target).or_default().insert(key.clone());
                });
            }
        }
        self.objects = objects;
        changed
    }

    fn referrers(&mut self, direction: Direction) -> &mut Referrers {
        match direction {
            Direction::Concerns => &mut self.members,
            Direction::DependsOn => &mut self.dependents,
        }
    }

    /// The existing and the absent objects to which others refer: Services, Secrets, ConfigMaps and PingsixProxies among
    /// others.
    pub fn dependencies(&self) -> impl Iterator<Item = &ObjectKey> {
        self.dependents.keys().filter_map(|target| match target {
            Target::Object(key) => Some(key),
            Target::CrossNamespaceReference(_) | Target::DefaultIngressClass => None,
        })
    }
}

/// The referrers of a kind.
fn of_kind<'r>(
    referrers: &'r Referrers,
    kind: Kind,
    target: &Target,
) -> impl Iterator<Item = &'r ObjectName> {
    let first = ObjectKey::new(kind, "", "");
    let keys = referrers.get(target).into_iter().flat_map(move |keys| keys.range(first.clone()..));
    keys.take_while(move |key| key.kind == kind).map(|key| &key.name)
}

impl ObjectSource for IndexedObjects {
    fn object(&self, key: &ObjectKey) -> Option<Object> {
        self.objects.get(key)
    }

    fn members(&self, kind: Kind, target: &Target) -> Vec<ObjectName> {
        of_kind(&self.members, kind, target).cloned().collect()
    }

    fn has_dependent(&self, kind: Kind, target: &Target, is_one: &dyn Fn(&ObjectName) -> bool) -> bool {
        of_kind(&self.dependents, kind, target).any(is_one)
    }
}
