//! Verdicts to the API server.
//!
//! ```text
//! reconcile ──► StatusBoard: what each status should say, latest wins ──► StatusWriter ──► PATCH …/status
//! world     ──►      touched, removed                          stores ──►      │
//!                                                                              └── the leader alone
//! reconcile ──► EventBoard: what is wrong, by owner ──► EventWriter ──► events.k8s.io
//! ```
//!
//! - A status is written when, and only when, the live object does not say what it should: our own write comes back as
//!   an event and leads to nothing, and an object that someone else changed is put right.
//! - Entries, conditions and fields of others stay as they are, to the byte. Every write carries the `resourceVersion`
//!   of what it was merged into; when that is not the newest, the newest is read and merged into instead.
//! - Of one object one write is on its way at a time, with what the board says at that moment. Changes in quick succession
//!   are written as one: the first at once, the others at growing intervals, the last within a second.
//! - A fault concerns the object it happened to, which is tried again with growing waits; all others are written.
//! - Replicas that do not lead write nothing. One that comes to lead looks at everything once.
//!
//! A verdict on an older generation than the live object's is written: its `observedGeneration` says which one was judged,
//! and a better one is on its way. It is not written over a verdict on a newer one, which some other replica has given.

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
pub use pace::Pacing;
pub use wanted::Wanted;
pub use writer::{StatusCounts, StatusWriter, WriterOptions};
