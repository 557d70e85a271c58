//! The parts of snapshots, which are compared and exchanged one by one.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::endpoint_slice::EndpointSlice;
use super::metadata::Identified;
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::shared_map::{Change, SharedMap};

/// A part of a snapshot: an object, or all EndpointSlices of a Service.
pub(crate) trait Part: Clone {
    /// Whether both are the same pointers.
    fn is_same(&self, other: &Self) -> bool;

    /// Whether both have equal content. One of them may be a new reading.
    fn has_equal_content(&self, other: &Self) -> bool;

    /// The content as a text, equal for equal content in every process. The text may be secret.
    fn text(&self) -> String;
}

impl<K: Identified> Part for Arc<K> {
    fn is_same(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other)
    }

    fn has_equal_content(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other) || K::has_equal_content(self, other)
    }

    fn text(&self) -> String {
        K::text(self)
    }
}

/// Declares the objects of some kinds as one type.
macro_rules! any_of {
    ($(#[$doc:meta])* $any:ident { $($kind:ident)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $any {
            $(#[doc = concat!("One of kind `", stringify!($kind), "`.")] $kind(Arc<$kind>),)+
        }

        $(
            impl From<Arc<$kind>> for $any {
                fn from(object: Arc<$kind>) -> Self {
                    Self::$kind(object)
                }
            }
        )+

        impl $any {
            /// An object as one of these kinds, if it is one.
            pub fn of(object: Object) -> Option<Self> {
                #[allow(clippy::wildcard_enum_match_arm, reason = "no other kind is one of these")]
                match object {
                    $(Object::$kind(object) => Some(Self::$kind(object)),)+
                    _ => None,
                }
            }

            /// The kind.
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)+ }
            }

            /// The identity.
            pub fn key(&self) -> ObjectKey {
                let name = match self { $(Self::$kind(object) => object.name(),)+ };
                ObjectKey { kind: self.kind(), name }
            }

            /// The content as a text, which is equal for all versions with the same content.
            pub fn text(&self) -> String {
                match self { $(Self::$kind(object) => object.text(),)+ }
            }
        }

        impl Part for $any {
            fn is_same(&self, other: &Self) -> bool {
                match (self, other) {
                    $((Self::$kind(one), Self::$kind(other)) => Arc::ptr_eq(one, other),)+
                    _ => false,
                }
            }

            fn has_equal_content(&self, other: &Self) -> bool {
                match (self, other) {
                    $((Self::$kind(one), Self::$kind(other)) => Part::has_equal_content(one, other),)+
                    _ => false,
                }
            }

            fn text(&self) -> String {
                self.text()
            }
        }
    };
}

pub(super) use any_of;

impl Part for Vec<Arc<EndpointSlice>> {
    fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| one.is_same(other))
    }

    fn has_equal_content(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| one.has_equal_content(other))
    }

    fn text(&self) -> String {
        self.iter().map(Part::text).collect::<Vec<_>>().join(" ")
    }
}

impl<P: Part> Part for Option<P> {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.is_same(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    fn has_equal_content(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.has_equal_content(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    fn text(&self) -> String {
        self.as_ref().map(Part::text).unwrap_or_default()
    }
}

/// The name of a part in its map.
pub(super) trait PartName: Ord + Clone {
    fn of(name: &ObjectName) -> Self;

    fn key(&self, kind: Kind) -> ObjectKey;
}

impl PartName for ObjectName {
    fn of(name: &ObjectName) -> Self {
        name.clone()
    }

    fn key(&self, kind: Kind) -> ObjectKey {
        ObjectKey { kind, name: self.clone() }
    }
}

/// The name of a Namespace.
impl PartName for Arc<str> {
    fn of(name: &ObjectName) -> Self {
        name.name.clone().into()
    }

    fn key(&self, kind: Kind) -> ObjectKey {
        ObjectKey::new(kind, "", self.clone())
    }
}

/// The names of parts that differ in content.
pub(super) fn differing<'m, N: Ord, P: Part>(
    now: &'m SharedMap<N, P>,
    before: &'m SharedMap<N, P>,
) -> impl Iterator<Item = &'m N> {
    now.changes(before).into_iter().filter_map(|change| match change {
        Change::Replaced(_, before, now) if now.has_equal_content(before) => None,
        Change::Replaced(..) | Change::Added(..) | Change::Removed(..) => Some(change.key()),
    })
}

/// Adds the keys of parts that differ in content.
pub(super) fn add_differing<N: PartName, P: Part>(
    keys: &mut BTreeSet<ObjectKey>,
    kind: Kind,
    now: &SharedMap<N, P>,
    before: &SharedMap<N, P>,
) {
    keys.extend(differing(now, before).map(|name| name.key(kind)));
}

/// Copies a part from another map, or removes a part that the other map lacks.
pub(super) fn copy<N: Ord + Clone, P: Clone>(into: &mut SharedMap<N, P>, from: &SharedMap<N, P>, name: &N) {
    match from.get(name) {
        Some(part) => into.insert(name.clone(), part.clone()),
        None => into.remove(name),
    };
}

/// The text of a part; `None` for an absent part.
pub(super) fn text_at<N: Ord, P: Part>(map: &SharedMap<N, P>, name: &N) -> Option<String> {
    map.get(name).map(Part::text)
}
