//! A plain collection of objects.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::metadata::{Identified, OfKind};
use crate::for_each_kind;
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::shared_map::{Change, SharedMap};

/// A type of objects of one kind, in an [`Object`].
pub trait FromObject: OfKind {
    /// The object, if it is of the kind.
    fn from_object(object: Object) -> Option<Arc<Self>>;
}

macro_rules! objects {
    ($($kind:ident in $field:ident $facts:tt)+) => {
        $(impl OfKind for super::$kind {
            const KIND: Kind = Kind::$kind;
        })+

        $(impl FromObject for super::$kind {
            fn from_object(object: Object) -> Option<Arc<Self>> {
                if let Object::$kind(object) = object { Some(object) } else { None }
            }
        })+

        /// One object of a kind that translation reads. Its `Debug` text is its key, because it may be a Secret.
        #[derive(Clone)]
        pub enum Object {
            $(#[doc = concat!("A `", stringify!($kind), "`.")] $kind(Arc<super::$kind>),)+
        }

        impl Object {
            /// The kind.
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)+ }
            }

            /// The identity.
            pub fn key(&self) -> ObjectKey {
                match self {
                    $(Self::$kind(object) => ObjectKey { kind: Kind::$kind, name: object.name() },)+
                }
            }
        }

        /// A plain collection of objects, the source of snapshots. Tools without a cluster use it. The controller builds
        /// snapshots from indexed stores instead. A copy shares its objects with the original, as
        /// a copy of a [`SharedMap`] does. The `Debug` text has the keys of the objects.
        #[derive(Clone, Default)]
        pub struct Objects { $(pub(super) $field: SharedMap<ObjectName, Arc<super::$kind>>,)+ }

        impl Objects {
            /// Adds an object, or replaces the one with the same key. Returns whether one was replaced.
            pub fn insert(&mut self, object: Object) -> bool {
                let ObjectKey { name, .. } = object.key();
                match object { $(Object::$kind(object) => self.$field.insert(name, object),)+ }
            }

            /// Removes the object with a key. Returns whether it was there.
            pub fn remove(&mut self, key: &ObjectKey) -> bool {
                match key.kind { $(Kind::$kind => self.$field.remove(&key.name),)+ }
            }

            /// Whether the collection has an object with this key.
            pub fn contains(&self, key: &ObjectKey) -> bool {
                match key.kind { $(Kind::$kind => self.$field.contains_key(&key.name),)+ }
            }

            /// The object with this key.
            pub fn get(&self, key: &ObjectKey) -> Option<Object> {
                match key.kind { $(Kind::$kind => self.$field.get(&key.name).cloned().map(Object::$kind),)+ }
            }

            /// The objects that differ from those of an earlier copy: new ones, removed ones, and those that are not the same
            /// [`Arc`]s. The parts that both copies share are not read.
            pub fn changes(&self, before: &Self) -> BTreeSet<ObjectKey> {
                let mut changed = BTreeSet::new();
                $(
                    let changes = self.$field.changes(&before.$field).into_iter();
                    changed.extend(changes.filter_map(|change| match change {
                        Change::Replaced(_, before, now) if Arc::ptr_eq(before, now) => None,
                        Change::Replaced(..) | Change::Added(..) | Change::Removed(..) => {
                            Some(ObjectKey { kind: Kind::$kind, name: change.key().clone() })
                        }
                    }));
                )+
                changed
            }

            /// Every object of a kind, by name.
            pub fn of_kind(&self, kind: Kind) -> Box<dyn Iterator<Item = Object> + '_> {
                match kind { $(Kind::$kind => Box::new(self.$field.values().cloned().map(Object::$kind)),)+ }
            }

            $(
                #[doc = concat!("Every `", stringify!($kind), "`, by name.")]
                pub fn $field(&self) -> impl Iterator<Item = (&ObjectName, &Arc<super::$kind>)> {
                    self.$field.iter()
                }
            )+
        }
    };
}

for_each_kind! { objects }

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Kind::ALL.iter().flat_map(|kind| self.of_kind(*kind))).finish()
    }
}

#[cfg(test)]
mod tests {
    use kube::Resource;

    use super::*;

    fn assert_named_as_in_the_table<K: Identified>() {
        let kind = K::KIND;
        assert_eq!(K::Wire::group(&()), kind.group(), "{kind}");
        assert_eq!(K::Wire::version(&()), kind.version(), "{kind}");
        assert_eq!(K::Wire::kind(&()), kind.as_str());
    }

    macro_rules! types {
        ($($kind:ident in $field:ident $facts:tt)+) => {
            #[test]
            fn each_type_has_the_names_of_its_kind() {
                $(assert_named_as_in_the_table::<super::super::$kind>();)+
            }
        };
    }

    for_each_kind! { types }
}
