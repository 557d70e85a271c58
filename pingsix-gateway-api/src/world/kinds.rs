//! One piece of work for a kind that is chosen while running.

use pingsix_translate::{Kind, for_each_kind, snapshot};

use super::{Stored, World};

/// Work on the objects of one kind.
pub(crate) trait PerKind {
    /// The result.
    type Output;

    /// Does it.
    fn run<K: Stored>(&self, world: &World) -> Self::Output;
}

macro_rules! with_kind {
    ($($kind:ident in $field:ident $facts:tt)+) => {
        /// Does a piece of work on the objects of a kind.
        pub(crate) fn with_kind<W: PerKind>(work: &W, kind: Kind, world: &World) -> W::Output {
            match kind { $(Kind::$kind => work.run::<snapshot::$kind>(world),)+ }
        }
    };
}

for_each_kind! { with_kind }
