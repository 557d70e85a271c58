//! Contents that the protocol of etcd shows.

use pingsix_sink::Scope;
use pingsix_sink::contract::Contents;
use pingsix_test_programs::proto::etcdserverpb::{RangeResponse, WatchResponse};
use pingsix_test_programs::proto::mvccpb::event::EventType;

use crate::wire::Watcher;

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
