//! The event of a watch, as one type for all kinds.

use kube_runtime::watcher;
use pingsix_translate::{Kind, for_each_kind, snapshot};

use super::object::Watched;

macro_rules! events {
    ($($kind:ident in $field:ident $facts:tt)+) => {
        /// An event of the watch of one kind.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum Event {
            $(
                #[doc = concat!("An event of the kind ", stringify!($kind), ".")]
                $kind(watcher::Event<Watched<snapshot::$kind>>),
            )+
        }

        $(
            impl From<watcher::Event<Watched<snapshot::$kind>>> for Event {
                fn from(event: watcher::Event<Watched<snapshot::$kind>>) -> Self {
                    Self::$kind(event)
                }
            }
        )+

        impl Event {
            /// Whether the event is part of a list, which takes effect at its end.
            pub const fn is_from_list(&self) -> bool {
                match self {
                    $(Self::$kind(
                        watcher::Event::Init | watcher::Event::InitApply(_) | watcher::Event::InitDone,
                    ) => true,
                    Self::$kind(watcher::Event::Apply(_) | watcher::Event::Delete(_)) => false,)+
                }
            }

            /// The kind of the object.
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)+ }
            }
        }
    };
}

for_each_kind! { events }
