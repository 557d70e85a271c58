//! The promises of every [`Sink`](crate::Sink) as tests, for sinks of other crates, too.
//!
//! A sink comes with a [`TestTarget`], and [`contract_tests!`](crate::contract_tests) makes a test of each promise. The
//! feature `contract` belongs to the dev-dependencies:
//!
//! ```toml
//! [dev-dependencies]
//! pingsix-sink = { version = "0.1", features = ["contract"] }
//! tokio = { version = "1", features = ["macros", "rt", "time"] }
//! ```
//!
//! [`PlannedTarget`] is the target of a [`StepWriter`](crate::StepWriter), and [`TestWriter`] starts the writer. Other sinks
//! implement [`TestTarget`]:
//!
//! ```
//! use pingsix_sink::contract::{Ability, Contents, TestTarget, UNDISTURBED};
//! use pingsix_sink::{MemorySink, Scope};
//!
//! struct Memory(MemorySink);
//!
//! impl TestTarget for Memory {
//!     type Sink = MemorySink;
//!     const MISSING: &'static [(Ability, &'static str)] = UNDISTURBED;
//!
//!     async fn start() -> Option<Self> {
//!         Some(Self(MemorySink::new()))
//!     }
//!
//!     async fn open(&self) -> MemorySink {
//!         self.0.clone()
//!     }
//!
//!     async fn read(&self, scope: &Scope) -> Contents {
//!         let contents = self.0.contents(scope).into_iter();
//!         contents.map(|(key, value)| (key.to_string(), String::from_utf8_lossy(&value).into_owned())).collect()
//!     }
//!
//!     async fn states(&self, scope: &Scope) -> Vec<Contents> {
//!         vec![self.read(scope).await]
//!     }
//! }
//!
//! pingsix_sink::contract_tests! { memory: Memory; }
//! # fn main() {}
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a promise that is broken, or a test that cannot go on, fails by a panic"
)]

pub mod documents;
pub mod graph;
mod planned;
mod suite;
mod target;

pub use planned::{PLANNED_MISSING, PlannedTarget, TestWriter};
pub use suite::*;
pub use target::{Ability, Contents, TestTarget, UNDISTURBED};

/// A module of tests for each sink, with a test for each promise: `name: TestTarget;`. The tests need tokio with the features
/// `macros`, `rt` and `time`.
#[macro_export]
macro_rules! contract_tests {
    ($($sink:ident: $target:ty;)+) => {$(
        mod $sink {
            #[allow(unused_imports, reason = "the target may have an absolute path")]
            use super::*;

            $crate::contract_tests! { @promises $target:
                holds_exactly_what_was_published
                touches_no_other_scope
                refuses_a_scope_inside_another
                writes_nothing_for_equal_content
                is_closed_under_reference_at_every_step
                completes_a_failed_publication_when_repeated
                completes_a_publication_with_a_lost_response
                withdraws_nothing_when_it_is_restarted_after_any_step
                keeps_foreign_documents
                reverts_foreign_changes_of_its_documents
                takes_over_a_desired_key
                fails_in_time_on_a_silent_target
                never_shows_a_value
            }
        }
    )+};
    (@promises $target:ty: $($promise:ident)+) => {$(
        #[tokio::test]
        async fn $promise() {
            if let Some(target) = <$target as $crate::contract::TestTarget>::start().await {
                $crate::contract::$promise(target).await;
            }
        }
    )+};
}
