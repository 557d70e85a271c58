//! From changes to publications and verdicts.
//!
//! ```text
//! Input ──► World ──► owners ──► Queue (deduplicated, paced, fair) ──► Reconciler::prepare: extracted, drafted
//!                                                                          │ Job::run, on any thread: translate, bridge
//!                                                                      Reconciler::finish
//!                                             Publication per data plane ◄┴► verdicts on each object
//! ```
//!
//! [`Reconciler::reconcile`] runs these three steps.
//!
//! [`Reconciler`] is a plain value: inputs go in, publications and verdicts come out. A reconciler has no waits, clock or
//! I/O, so a test drives it through any history. Its state depends on the objects alone: for every order of events, the
//! result equals a translation of all objects from scratch.

mod acceptance;
mod hold_back;
mod job;
mod owner_entry;
mod owner_index;
mod queue;
mod reconciler;
mod slots;
#[cfg(test)]
mod tests;
mod turn;
mod verdicts;
mod waits;

pub use job::Publication;
pub(crate) use job::{Job, JobResult};
pub(crate) use queue::{Capacity, Turn};
pub use queue::{Pace, Queue};
pub use reconciler::Reconciler;
pub(crate) use slots::JobSlots;
pub(crate) use turn::NextStep;
pub use turn::{ReconcileOutcome, Reconciled};
