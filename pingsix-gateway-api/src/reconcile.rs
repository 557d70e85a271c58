//! From changes to publications and verdicts.
//!
//! ```text
//! Input ──► World ──► owners ──► Queue (deduplicated, paced) ──► Reconciler::reconcile
//!                                                                    │ cut, translate, bridge
//!                                        Publication per data plane ◄┴► what to tell about each object
//! ```
//!
//! [`Reconciler`] is a plain value: inputs go in, publications and verdicts come out; it does not wait, read a clock or
//! talk to anybody. So a test can drive it through any history, and what it holds depends on the objects alone: whatever
//! the order of the events, the result is that of a translation of everything from scratch.

mod held;
mod queue;
mod reconciler;
#[cfg(test)]
mod tests;
mod verdicts;
mod waits;

pub use queue::{Pace, Queue};
pub use reconciler::{Publication, Reconciled, Reconciler, Standing};
