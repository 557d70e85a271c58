//! Problems as Kubernetes Events, which `kubectl describe` shows to authors.

mod board;
mod note;
mod writer;

pub use board::EventBoard;
pub(crate) use note::NAMESPACE_OF_CLUSTER_EVENTS;
pub use writer::{EventOptions, EventWriter};
