//! From changes to publications and verdicts.
//!
//! ```text
//! Input ──► World ──► owners ──► Queue (deduplicated, paced, fair) ──► Reconciler::prepare: extracted, drafted
//!                                                                          │ Job::run, on any thread: translate, bridge
//!                                                                      Reconciler::finish
//!                                             Publication per data plane ◄┴► what to tell about each object
//! ```
//!
//! [`Reconciler::reconcile`] is the three in a row.
//!
//! [`Reconciler`] is a plain value: inputs go in, publications and verdicts come out; it does not wait, read a clock or
//! talk to anybody. So a test can drive it through any history, and what it holds depends on the objects alone: whatever
//! the order of the events, the result is that of a translation of everything from scratch.

mod held;
mod job;
mod owner_entry;
mod queue;
mod reconciler;
mod slots;
#[cfg(test)]
mod tests;
mod turn;
mod verdicts;
mod waits;

pub(crate) use job::{Job, JobResult};
pub(crate) use queue::{Capacity, Turn};
pub use queue::{Pace, Queue};
pub use reconciler::Reconciler;
pub(crate) use slots::JobSlots;
pub(crate) use turn::NextStep;
pub use turn::{Publication, ReconcileOutcome, Reconciled};
