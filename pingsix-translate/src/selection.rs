//! Selection: the objects that one Gateway or IngressClass may use.
//!
//! An [`ObjectSource`] answers which objects refer to a target. [`Extract::new`] selects the objects of an owner by these
//! answers, and [`Extract::refresh`] updates the selection after changes. The sources are [`IndexedObjects`] and the stores
//! of a controller, which both read the references of an object from its [`Edges`].

mod edges;
mod extract;
mod index;
mod refresh;
mod source;

pub use edges::{CrossNamespaceReference, Direction, Edge, Edges, Target};
pub use extract::Extract;
pub use index::IndexedObjects;
pub use source::{Changed, ObjectSource};
