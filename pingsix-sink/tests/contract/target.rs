//! What the promises are checked on.

use std::collections::BTreeMap;

use pingsix_sink::proto::etcdserverpb::{RangeResponse, WatchResponse};
use pingsix_sink::proto::mvccpb::event::EventType;
use pingsix_sink::{Scope, Sink};

use crate::wire::Watcher;

/// What a reader finds under a scope: keys without the scope, and values. Without what no reader looks at.
pub(crate) type Contents = BTreeMap<String, String>;

/// Something that not every target can do or suffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "a sink yet to come may lack what all have now")]
pub(crate) enum Ability {
    /// It holds several scopes.
    HoldsScopes,
    /// It knows after a restart of the sink which revision brought its content.
    RemembersRevisions,
    /// It keeps what was written when the sink is gone.
    Outlives,
    /// Others can write to it.
    HasOtherWriters,
    /// It can fail in the middle of a publication.
    Fails,
    /// It can do what it was asked for, and its answer be lost.
    LosesAnswers,
    /// It can stop answering.
    Stalls,
}

/// A place that a sink writes to.
pub(crate) trait Target: Sized {
    type Sink: Sink + std::fmt::Debug;

    /// What it cannot do, and why. Promises about that are not checked.
    const LACKS: &'static [(Ability, &'static str)];

    /// One that holds nothing; `None`, with a message, if this machine has none.
    async fn start() -> Option<Self>;

    /// A new sink, such as a program that was restarted makes.
    async fn open(&self) -> Self::Sink;

    async fn read(&self, scope: &Scope) -> Contents;

    /// Every state that a reader could have seen since the beginning, oldest first, but for others' keys.
    async fn states(&self, scope: &Scope) -> Vec<Contents>;

    /// Writes a key, or deletes it, as somebody else does. Needs [`Ability::HasOtherWriters`].
    async fn write_foreign(&self, _scope: &Scope, _key: &str, _value: Option<&str>) {
        unreachable!("nobody else can write");
    }

    /// Fails when so many writes more were taken, each of which has as few steps as can be; `None`: is well again.
    /// Needs [`Ability::Fails`].
    fn fail_after(&self, _writes: Option<usize>) {
        unreachable!("it cannot fail");
    }

    /// Makes all writes, and tells nobody of those after so many more; `None`: is well again. Needs
    /// [`Ability::LosesAnswers`].
    fn lose_answers_after(&self, _writes: Option<usize>) {
        unreachable!("its answers are not lost");
    }

    /// Stops to answer, and goes on. Needs [`Ability::Stalls`].
    fn stall(&self, _is_stalled: bool) {
        unreachable!("it cannot stall");
    }

    /// Whether it can; says why not.
    fn can(ability: Ability) -> bool {
        match Self::LACKS.iter().find(|(lacked, _)| *lacked == ability) {
            None => true,
            Some((_, why)) => {
                pingsix_test_programs::skipped(&format!("a promise, since {why}"));
                false
            }
        }
    }
}

/// What a list of etcd's protocol says to PingSIX, which looks at no key whose last segment starts with a dot.
pub(crate) fn contents(list: &RangeResponse, scope: &Scope) -> Contents {
    let pairs = list.kvs.iter().filter_map(|kv| Some((read_key(&kv.key, scope)?, text(&kv.value))));
    pairs.collect()
}

/// The states that a watch from the beginning shows, up to the response that is the last one.
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
