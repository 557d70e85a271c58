//! Ownership records of the keys of a scope.
//!
//! Ownership is written beside the documents, under keys whose last segment starts with a dot, which PingSIX does not
//! read: `<scope>/.pingsix_sink_owned.0` to `.f`. The digest of a key selects its mark, so a new or deleted document
//! rewrites a sixteenth of the records, in the transaction that puts or deletes it. A changed document rewrites none.
//!
//! A record has twelve bytes: eight of the SHA-256 of the key, and the order hint of its write. A restarted program
//! needs the hint to delete its predecessor's documents in descending order.
//!
//! A damaged or missing mark claims nothing: the next publication takes over the desired documents, and other
//! documents then count as foreign and stay.

use std::collections::BTreeMap;

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::document::{Digest, Key, OrderHint};

/// The number of marks in a scope: one for each hexadecimal digit.
pub(super) const MARK_COUNT: usize = 16;

/// The bytes of one record.
pub(super) const RECORD_LEN: usize = 12;

const NAME: &str = ".pingsix_sink_owned.";
const HEADER: &[u8] = b"pingsix-sink-owned/1\n";

/// The digest of a key in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyDigest([u8; 8]);

impl KeyDigest {
    pub(super) fn of(key: &Key) -> Self {
        let digest = Digest::of(key.as_str().as_bytes());
        let mut name = [0; 8];
        name.copy_from_slice(&digest.as_bytes()[..8]);
        Self(name)
    }

    /// The mark of this record.
    pub(super) fn mark(self) -> usize {
        usize::from(self.0[0]) % MARK_COUNT
    }
}

/// One sixteenth of the ownership records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark(BTreeMap<KeyDigest, OrderHint>);

impl Mark {
    /// The key of a mark inside its scope.
    pub(super) fn key(index: usize) -> String {
        format!("{NAME}{index:x}")
    }

    /// The index of the mark with this key.
    pub(super) fn index(key: &str) -> Option<usize> {
        let digit = key.strip_prefix(NAME)?;
        let index = usize::from_str_radix(digit, 16).ok()?;
        (index < MARK_COUNT && Self::key(index) == key).then_some(index)
    }

    /// Decodes a value; `None` when [`encode`](Self::encode) did not write it.
    pub(super) fn decode(value: &[u8]) -> Option<Self> {
        let (records, []) = value.strip_prefix(HEADER)?.as_chunks::<RECORD_LEN>() else { return None };
        let record = |bytes: &[u8; RECORD_LEN]| {
            let [name @ .., a, b, c, d] = *bytes;
            (KeyDigest(name), OrderHint(u32::from_be_bytes([a, b, c, d])))
        };
        Some(Self(records.iter().map(record).collect()))
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut value = BytesMut::with_capacity(self.size());
        value.put_slice(HEADER);
        for (name, order) in &self.0 {
            value.put_slice(&name.0);
            value.put_u32(order.0);
        }
        value.freeze()
    }

    /// The bytes of the value.
    pub(super) fn size(&self) -> usize {
        HEADER.len() + self.0.len() * RECORD_LEN
    }

    pub(super) fn order(&self, name: KeyDigest) -> Option<OrderHint> {
        self.0.get(&name).copied()
    }

    pub(super) fn insert(&mut self, name: KeyDigest, order: OrderHint) {
        self.0.insert(name, order);
    }

    pub(super) fn remove(&mut self, name: KeyDigest) {
        self.0.remove(&name);
    }

    /// Drops the records of keys that are absent.
    pub(super) fn retain(&mut self, is_there: impl Fn(KeyDigest) -> bool) {
        self.0.retain(|name, _| is_there(*name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: &str) -> KeyDigest {
        KeyDigest::of(&Key::new(key).unwrap())
    }

    #[test]
    fn encoding_round_trips() {
        let mut mark = Mark::default();
        assert_eq!(Mark::decode(&mark.encode()), Some(mark.clone()));
        mark.insert(name("upstreams/u"), OrderHint(0));
        mark.insert(name("ssls/s"), OrderHint(u32::MAX));
        assert_eq!(mark.encode().len(), mark.size());
        assert_eq!(Mark::decode(&mark.encode()), Some(mark.clone()));
        assert_eq!(mark.order(name("ssls/s")), Some(OrderHint(u32::MAX)));
        assert_eq!(mark.order(name("ssls/t")), None);
    }

    #[test]
    fn a_damaged_mark_claims_nothing() {
        let mut mark = Mark::default();
        mark.insert(name("upstreams/u"), OrderHint(0));
        let value = mark.encode();
        for damaged in [&b""[..], b"{}", b"pingsix-sink-owned/2\n", &value[..value.len() - 1], &value[1..]] {
            assert_eq!(Mark::decode(damaged), None, "{damaged:?}");
        }
    }

    #[test]
    fn keys_of_marks_are_recognised() {
        for index in 0..MARK_COUNT {
            assert_eq!(Mark::index(&Mark::key(index)), Some(index));
        }
        for other in [
            ".pingsix_sink_owned.",
            ".pingsix_sink_owned.10",
            ".pingsix_sink_owned.A",
            ".pingsix_sink_owned.+1",
            "routes/a",
        ] {
            assert_eq!(Mark::index(other), None, "{other}");
        }
    }
}
