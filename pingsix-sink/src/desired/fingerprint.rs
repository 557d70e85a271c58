//! A digest of a set of documents.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::DocumentSet;
use crate::document::Document;

/// Digest of the keys and values of a set. Sets with different content have different digests, except by chance. The
/// digest does not resist an attacker who chooses the documents.
///
/// The digest is the sum of one digest per document, so an update costs only the difference to a set with a known
/// digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u128);

impl DocumentSet {
    /// The digest of the content.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint_after(&Self::default(), Fingerprint::default())
    }

    /// The digest, computed from the digest `fingerprint` of `before`. Documents that both sets share cost nothing.
    pub fn fingerprint_after(&self, before: &Self, fingerprint: Fingerprint) -> Fingerprint {
        let digest = |document: Option<&Document>| document.map_or(0, of);
        let changed = self.changes(before);
        Fingerprint(changed.fold(fingerprint.0, |sum, (before, after)| {
            sum.wrapping_sub(digest(before)).wrapping_add(digest(after))
        }))
    }
}

fn of(document: &Document) -> u128 {
    let key = document.key.as_str();
    let mut hash = Sha256::new();
    // A key has no control character, so the zero separates key and value.
    hash.update(key);
    hash.update([0]);
    hash.update(&document.value);
    let mut first = [0; 16];
    for (byte, digest) in first.iter_mut().zip(hash.finalize()) {
        *byte = digest;
    }
    u128::from_be_bytes(first)
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;

    use super::*;
    use crate::document::{Key, OrderHint, Owner};

    fn document(key: usize, value: &str, owner: &str) -> Document {
        Document {
            key: Key::new(format!("routes/{key:04}")).unwrap(),
            value: Bytes::from(value.to_owned()),
            order: OrderHint(1),
            owner: Owner::new(owner),
        }
    }

    #[test]
    fn a_fingerprint_depends_on_keys_and_values_alone() {
        let set = DocumentSet::new((0..1_000).map(|key| document(key, "a", "one"))).unwrap();
        let whole = set.fingerprint();
        let again = DocumentSet::new((0..1_000).map(|key| document(key, "a", "other"))).unwrap();
        assert_eq!(again.fingerprint(), whole);
        let (mut changed, mut fingerprint) = (set.clone(), whole);
        for (key, value) in [(3, Some("b")), (500, None), (5_000, Some("a"))] {
            let after = value.map(|value| document(key, value, "one"));
            let key = Key::new(format!("routes/{key:04}")).unwrap();
            let next = changed.with_changes(BTreeMap::from([(key, after)]));
            fingerprint = next.fingerprint_after(&changed, fingerprint);
            assert_ne!(fingerprint, whole);
            assert_eq!(fingerprint, next.fingerprint());
            changed = next;
        }
        assert_eq!(set.fingerprint_after(&changed, fingerprint), whole);
        assert_eq!(DocumentSet::default().fingerprint(), Fingerprint::default());
        assert_eq!(whole.to_string().len(), 32);
    }
}
