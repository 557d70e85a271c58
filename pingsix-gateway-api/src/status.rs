//! Statuses and Events at the API server.
//!
//! ```text
//! reconcile ──► StatusBoard: wanted status of each object, latest wins ──► StatusWriter ──► PATCH …/status
//! world     ──►      touched, removed                           stores ──►      │
//!                                                                               └── the leader alone
//! reconcile ──► EventBoard: problems by owner ──► EventWriter ──► events.k8s.io
//! ```
//!
//! - A status is written if it differs from the live object. The event of the controller's own write causes no further
//!   write, and a foreign change of our entries is reverted.
//! - Foreign entries, conditions and fields stay byte for byte. Every write carries the `resourceVersion` of the merged
//!   object; after a conflict, the writer reads the newest version and merges again.
//! - Each object has one write in flight at a time, with the newest wanted status. Rapid changes are combined: the
//!   first is written at once, later ones at growing intervals, the last within a second.
//! - A failed write is retried with growing delays, and delays no other object.
//! - The leader alone writes. A new leader checks all objects once.
//!
//! A verdict on an older generation than the live object's is written: its `observedGeneration` has the judged
//! generation, and a newer verdict follows. A verdict of another replica on a newer generation is never overwritten.

mod board;
mod events;
mod live;
mod pace;
#[cfg(test)]
mod tests;
mod wanted;
mod writer;

pub use board::StatusBoard;
pub(crate) use events::NAMESPACE_OF_CLUSTER_EVENTS;
pub use events::{EventBoard, EventOptions, EventWriter};
pub use live::Readers;
pub(crate) use pace::Pace;
pub(crate) use pace::Pacing;
pub use wanted::Wanted;
pub use writer::{StatusCounts, StatusWriter, WriterOptions};
