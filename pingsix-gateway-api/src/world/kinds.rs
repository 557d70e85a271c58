//! A generic function over kinds, called for a kind that is known at run time.

use pingsix_translate::{Kind, for_each_kind, snapshot};

use super::{Stored, World};

/// A function that is generic over a kind.
pub(crate) trait KindVisitor {
    /// The result.
    type Output;

    /// The call for one kind.
    fn run<K: Stored>(&self, world: &World) -> Self::Output;
}

macro_rules! with_kind {
    ($($kind:ident in $field:ident $facts:tt)+) => {
        /// Calls a visitor for a kind.
        pub(crate) fn with_kind<V: KindVisitor>(visitor: &V, kind: Kind, world: &World) -> V::Output {
            match kind { $(Kind::$kind => visitor.run::<snapshot::$kind>(world),)+ }
        }
    };
}

for_each_kind! { with_kind }
