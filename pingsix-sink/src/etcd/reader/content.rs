//! The content of a prefix, within a limit of bytes.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

use crate::desired::Scope;
use crate::etcd::error::EtcdError;
use crate::proto::etcdserverpb::RangeResponse;
use crate::proto::mvccpb::Event;
use crate::proto::mvccpb::event::EventType;

/// The bytes that a key costs beside its name and its value.
const KEY_OVERHEAD: usize = 96;

/// The keys below a prefix and their values as of a revision. `Debug` shows no values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyValues {
    /// The revision of the list, or of the last change since; zero before the first list.
    pub revision: i64,
    /// The values by their key relative to the prefix, without a slash at the beginning.
    pub by_key: BTreeMap<String, Bytes>,
}

impl fmt::Debug for KeyValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyValues")
            .field("revision", &self.revision)
            .field("keys", &self.by_key.keys())
            .finish_non_exhaustive()
    }
}

/// Content and its bytes.
#[derive(Debug)]
pub(super) struct Counted {
    content: KeyValues,
    bytes: usize,
    max_bytes: usize,
}

impl Counted {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { content: KeyValues::default(), bytes: 0, max_bytes }
    }

    pub(super) const fn get(&self) -> &KeyValues {
        &self.content
    }

    pub(super) const fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// The content of a list.
    pub(super) fn of(scope: &Scope, max_bytes: usize, list: &RangeResponse) -> Result<Self, EtcdError> {
        let revision = list.header.as_ref().map(|header| header.revision).filter(|revision| *revision > 0);
        let revision = revision.ok_or_else(|| EtcdError::Protocol("a list has no revision".to_owned()))?;
        if list.more {
            return Err(EtcdError::Protocol("a list is incomplete".to_owned()));
        }
        let mut listed =
            Self { content: KeyValues { revision, ..KeyValues::default() }, bytes: 0, max_bytes };
        for kv in &list.kvs {
            let Some(key) = relative(scope, &kv.key)? else { continue };
            listed.bytes += cost(key, &kv.value);
            if listed.bytes > max_bytes {
                return Err(listed.too_large(scope));
            }
            // A slice would keep the whole message in memory.
            listed.content.by_key.insert(key.to_owned(), Bytes::copy_from_slice(&kv.value));
        }
        Ok(listed)
    }

    /// Applies the events of one response, all of them or, with an error, none. Returns whether there was a change.
    pub(super) fn apply(&mut self, scope: &Scope, events: &[Event]) -> Result<bool, EtcdError> {
        let mut changes = BTreeMap::new();
        let mut revision = self.content.revision;
        let mut is_new = false;
        for event in events {
            let kv = event.kv.as_ref();
            let kv = kv.ok_or_else(|| EtcdError::Protocol("an event of a watch has no key".to_owned()))?;
            let key = relative(scope, &kv.key)?;
            // Known from the list.
            if kv.mod_revision <= self.content.revision {
                continue;
            }
            if kv.mod_revision < revision {
                return Err(EtcdError::Protocol("the events of a watch are out of order".to_owned()));
            }
            revision = kv.mod_revision;
            is_new = true;
            let value = match event.r#type() {
                EventType::Put => Some(Bytes::copy_from_slice(&kv.value)),
                EventType::Delete => None,
            };
            if let Some(key) = key {
                changes.insert(key, value);
            }
        }
        let mut bytes = self.bytes;
        for (key, value) in &changes {
            bytes -= self.content.by_key.get(*key).map_or(0, |value| cost(key, value));
            bytes += value.as_ref().map_or(0, |value| cost(key, value));
        }
        if bytes > self.max_bytes {
            return Err(self.too_large(scope));
        }
        for (key, value) in changes {
            match value {
                Some(value) => self.content.by_key.insert(key.to_owned(), value),
                None => self.content.by_key.remove(key),
            };
        }
        self.bytes = bytes;
        self.content.revision = revision;
        Ok(is_new)
    }

    fn too_large(&self, scope: &Scope) -> EtcdError {
        EtcdError::TooLarge { scope: scope.clone(), max_bytes: self.max_bytes }
    }
}

fn cost(key: &str, value: &[u8]) -> usize {
    key.len() + value.len() + KEY_OVERHEAD
}

/// The key relative to the scope; `None` for a key that is not content: it is no text, or its last segment starts with
/// a dot.
fn relative<'k>(scope: &Scope, key: &'k [u8]) -> Result<Option<&'k str>, EtcdError> {
    let Some(inside) = key.strip_prefix(scope.key_prefix().as_bytes()) else {
        return Err(EtcdError::Protocol(format!("a key outside of {scope}/ is in an answer about it")));
    };
    let text = std::str::from_utf8(inside).ok();
    Ok(text.filter(|key| !key.rsplit('/').next().is_some_and(|last| last.starts_with('.'))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SinkErrorSource as _;
    use crate::proto::etcdserverpb::ResponseHeader;
    use crate::proto::mvccpb::KeyValue;

    fn scope() -> Scope {
        Scope::new("/s/web").unwrap()
    }

    fn kv(key: &str, value: &str, mod_revision: i64) -> KeyValue {
        let (key, value) = (key.to_owned().into(), value.to_owned().into());
        KeyValue { key, value, mod_revision, ..KeyValue::default() }
    }

    fn event(key: &str, value: Option<&str>, revision: i64) -> Event {
        let mut event = Event { kv: Some(kv(key, value.unwrap_or_default(), revision)), ..Event::default() };
        event.set_type(if value.is_some() { EventType::Put } else { EventType::Delete });
        event
    }

    fn list(kvs: Vec<KeyValue>) -> RangeResponse {
        let header = Some(ResponseHeader { revision: 7, ..ResponseHeader::default() });
        RangeResponse { header, kvs, ..RangeResponse::default() }
    }

    fn listed(max_bytes: usize) -> Counted {
        let kvs = vec![kv("/s/web/.guard", "1", 3), kv("/s/web/a/1", "one", 4), kv("/s/web/a/2", "two", 5)];
        Counted::of(&scope(), max_bytes, &list(kvs)).unwrap()
    }

    fn shown(counted: &Counted) -> (i64, Vec<(&str, &[u8])>) {
        let content = counted.get();
        (content.revision, content.by_key.iter().map(|(key, value)| (key.as_str(), &**value)).collect())
    }

    #[test]
    fn a_list_has_the_keys_of_its_prefix_and_a_revision() {
        assert_eq!(shown(&listed(1000)), (7, vec![("a/1", &b"one"[..]), ("a/2", b"two")]));
        for (list, problem) in [
            (list(vec![kv("/s/webber/a", "1", 1)]), "outside of /s/web/"),
            (RangeResponse { more: true, ..list(Vec::new()) }, "incomplete"),
            (RangeResponse::default(), "no revision"),
        ] {
            let error = Counted::of(&scope(), 1000, &list).unwrap_err();
            assert_eq!((error.category(), error.is_retryable()), ("etcd_protocol", true));
            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    #[test]
    fn a_response_applies_as_a_whole() {
        let mut counted = listed(1000);
        let events = [
            event("/s/web/a/1", None, 8),
            event("/s/web/b", Some("new"), 8),
            event("/s/web/.guard", Some("2"), 9),
        ];
        assert!(counted.apply(&scope(), &events).unwrap());
        assert_eq!(shown(&counted), (9, vec![("a/2", &b"two"[..]), ("b", b"new")]));

        let garbage = [
            vec![event("/s/web/b", None, 10), Event::default()],
            vec![event("/s/web/b", None, 10), event("/elsewhere", None, 10)],
            vec![event("/s/web/b", None, 11), event("/s/web/c", None, 10)],
        ];
        for events in garbage {
            let error = counted.apply(&scope(), &events).unwrap_err();
            assert_eq!(error.category(), "etcd_protocol");
            assert_eq!(shown(&counted), (9, vec![("a/2", &b"two"[..]), ("b", b"new")]));
        }
        assert!(!counted.apply(&scope(), &[event("/s/web/a/2", None, 9)]).unwrap(), "it is known");
    }

    #[test]
    fn content_has_a_limit() {
        let two = 2 * KEY_OVERHEAD + 2 * 3 + 2 * 3;
        let mut counted = listed(two);
        let error = counted.apply(&scope(), &[event("/s/web/a/1", Some("more"), 8)]).unwrap_err();
        assert_eq!((error.category(), error.is_retryable()), ("etcd_too_large", true));
        assert!(error.to_string().contains("/s/web/"), "{error}");
        let replaced = [event("/s/web/a/1", None, 8), event("/s/web/a/3", Some("now"), 8)];
        assert!(counted.apply(&scope(), &replaced).unwrap());
        assert_eq!(counted.bytes, two);
        let error = Counted::of(&scope(), 10, &list(vec![kv("/s/web/a", "1", 1)])).unwrap_err();
        assert_eq!(error.category(), "etcd_too_large");
    }

    #[test]
    fn debug_shows_no_values() {
        let text = format!("{:?}", listed(1000));
        assert!(text.contains("a/1") && !text.contains("one") && !text.contains("111"), "{text}");
    }
}
