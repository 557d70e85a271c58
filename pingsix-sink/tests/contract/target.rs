//! Targets of the contract.

use std::collections::BTreeMap;

use pingsix_sink::proto::etcdserverpb::{RangeResponse, WatchResponse};
use pingsix_sink::proto::mvccpb::event::EventType;
use pingsix_sink::{Scope, Sink};

use crate::wire::Watcher;

/// The keys and values of a scope, without the scope prefix and without keys that readers ignore.
pub(crate) type Contents = BTreeMap<String, String>;

/// An ability that some targets lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "a sink yet to come may lack what all have now")]
pub(crate) enum Ability {
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

/// A place that a sink writes to.
pub(crate) trait Target: Sized {
    type Sink: Sink + std::fmt::Debug;

    /// The missing abilities with reasons. Assertions that need them are skipped.
    const MISSING: &'static [(Ability, &'static str)];

    /// An empty target; `None`, with a message, if a program is missing.
    async fn start() -> Option<Self>;

    /// A new sink, as after a restart of its program.
    async fn open(&self) -> Self::Sink;

    async fn read(&self, scope: &Scope) -> Contents;

    /// Every state that a reader could have seen since the start, oldest first, without foreign keys.
    async fn states(&self, scope: &Scope) -> Vec<Contents>;

    /// Writes or deletes a key as another writer. Needs [`Ability::HasOtherWriters`].
    async fn write_foreign(&self, _scope: &Scope, _key: &str, _value: Option<&str>) {
        unreachable!("nobody else can write");
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
                pingsix_test_programs::skipped(&format!("a promise, since {why}"));
                false
            }
        }
    }
}

/// The contents of an etcd list as PingSIX reads them, without keys whose last segment starts with a dot.
pub(crate) fn contents(list: &RangeResponse, scope: &Scope) -> Contents {
    let pairs = list.kvs.iter().filter_map(|kv| Some((read_key(&kv.key, scope)?, text(&kv.value))));
    pairs.collect()
}

/// The states that a watch from the start shows, up to the last response.
pub(crate) async fn replay(
    watcher: &mut Watcher,
    scope: &Scope,
    is_last: impl Fn(&WatchResponse) -> bool,
) -> Vec<Contents> {
    let mut states = vec![Contents::new()];
    loop {
        let response = watcher.next().await;
        let (mut revision, mut state) = (0, states.last().unwrap().clone());
        for event in &response.events {
            let kv = event.kv.as_ref().unwrap();
            if revision != kv.mod_revision && revision != 0 {
                states.push(state.clone());
            }
            revision = kv.mod_revision;
            let Some(key) = read_key(&kv.key, scope) else { continue };
            match event.r#type() {
                EventType::Put => state.insert(key, text(&kv.value)),
                EventType::Delete => state.remove(&key),
            };
        }
        if revision != 0 {
            states.push(state);
        }
        if is_last(&response) {
            return states;
        }
    }
}

fn read_key(key: &[u8], scope: &Scope) -> Option<String> {
    let key = std::str::from_utf8(key).unwrap().strip_prefix(scope.key_prefix())?;
    let is_read = !key.rsplit('/').next().unwrap().starts_with('.');
    is_read.then(|| key.to_owned())
}

fn text(value: &[u8]) -> String {
    String::from_utf8(value.to_vec()).unwrap()
}
