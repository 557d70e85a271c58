//! Targets of the promises.

use std::collections::BTreeMap;
use std::io::Write as _;

use crate::desired::Scope;
use crate::sink::Sink;

/// The keys and values of a scope, without the scope prefix and without keys that readers ignore.
pub type Contents = BTreeMap<String, String>;

/// An ability that some targets lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ability {
    /// The target holds several scopes.
    HasSeveralScopes,
    /// A restarted sink knows the revision of the last change.
    RemembersRevisions,
    /// The documents outlive the sink.
    IsPersistent,
    /// Other writers can write to the target.
    HasOtherWriters,
    /// The target can fail in the middle of a publication.
    CanFail,
    /// The target can write and lose its response.
    LosesResponses,
    /// The target can stop responding.
    CanStall,
}

/// The [missing](TestTarget::MISSING) abilities of a target in memory that nothing else changes and that does not fail.
pub const UNDISTURBED: &[(Ability, &str)] = &[
    (Ability::RemembersRevisions, "the sink counts revisions itself"),
    (Ability::IsPersistent, "the documents end with the sink"),
    (Ability::HasOtherWriters, "the target has one writer"),
    (Ability::CanFail, "the target does not fail"),
    (Ability::LosesResponses, "the target does not lose responses"),
    (Ability::CanStall, "the target always responds"),
];

/// A place that a sink writes to. A test can also read the place and, with more [abilities](Ability), change it as another
/// writer or make it fail.
#[allow(async_fn_in_trait, reason = "the promises run in the task of their test")]
pub trait TestTarget: Sized {
    /// The sink.
    type Sink: Sink + std::fmt::Debug;

    /// The missing abilities with reasons. Assertions that need them are skipped.
    const MISSING: &'static [(Ability, &'static str)];

    /// An empty target; `None`, with a message, if a program is missing.
    async fn start() -> Option<Self>;

    /// A new sink, as after a restart of its program.
    async fn open(&self) -> Self::Sink;

    /// The present contents of a scope.
    async fn read(&self, scope: &Scope) -> Contents;

    /// Every state that a reader could have seen since the start, oldest first, without foreign keys.
    async fn states(&self, scope: &Scope) -> Vec<Contents>;

    /// Writes or deletes a key as another writer. Needs [`Ability::HasOtherWriters`].
    async fn write_foreign(&self, _scope: &Scope, _key: &str, _value: Option<&str>) {
        unreachable!("the target has no other writer");
    }

    /// Fails after so many more writes, each with as few steps as possible; `None` ends the failure. Needs
    /// [`Ability::CanFail`].
    fn fail_after(&self, _writes: Option<usize>) {
        unreachable!("it cannot fail");
    }

    /// Writes everything, but loses the responses after so many more; `None` ends the failure. Needs
    /// [`Ability::LosesResponses`].
    fn lose_responses_after(&self, _writes: Option<usize>) {
        unreachable!("its answers are not lost");
    }

    /// Stops responding, or resumes. Needs [`Ability::CanStall`].
    fn stall(&self, _is_stalled: bool) {
        unreachable!("it cannot stall");
    }

    /// Whether the target has the ability; prints the reason if not.
    fn can(ability: Ability) -> bool {
        match Self::MISSING.iter().find(|(lacked, _)| *lacked == ability) {
            None => true,
            Some((_, why)) => {
                not_run(why);
                false
            }
        }
    }
}

/// Prints why a promise, or a part of it, did not run; past the capture of the test harness.
fn not_run(why: &str) {
    let current = std::thread::current();
    let test = current.name().unwrap_or("a test");
    let _ = std::io::stderr().write_all(format!("\n{test}: NOT RUN: a promise, since {why}\n").as_bytes());
}
