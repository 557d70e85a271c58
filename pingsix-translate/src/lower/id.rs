//! Ids of documents: short, deterministic, and a function of the document's own attributes.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

/// Hands out ids, and sees to it that no two documents get the same one.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// By the bits that a short id shows, the digest it stands for.
    taken: BTreeMap<u64, [u8; 32]>,
}

/// Bytes of the digest that a short id shows, but for the last four bits: 60 bits in twelve characters. With
/// 30,000 documents, the odds of any collision are one in two thousand million.
const SHORT: usize = 8;

/// Bytes of the digest in an id whose short form is taken: 24 characters.
const LONG: usize = 15;

impl Ids {
    /// The id of the document with these attributes. A collision of the short digest is resolved by a longer
    /// one, so that it does not matter for anybody else.
    pub(crate) fn assign(&mut self, prefix: char, attributes: &[&str]) -> String {
        let mut digest = Sha256::new();
        for attribute in attributes {
            digest.update(attribute.as_bytes());
            // No attribute holds this character.
            digest.update([0]);
        }
        let digest: [u8; 32] = digest.finalize().into();
        let length = if *self.taken.entry(shown(&digest)).or_insert(digest) == digest { SHORT } else { LONG };
        let mut id = String::with_capacity(2 * LONG);
        id.push(prefix);
        push_base32(&digest[..length], &mut id);
        id
    }
}

/// The bits that a short id shows.
fn shown(digest: &[u8; 32]) -> u64 {
    digest[..SHORT].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)) >> 4
}

/// Lower-case, without padding and without what does not fill a character: fits PingSIX's keys and is easy to read
/// aloud.
fn push_base32(bytes: &[u8], text: &mut String) {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let (mut buffer, mut bits) = (0_u32, 0_u32);
    for byte in bytes {
        buffer = buffer << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[(buffer >> bits & 31) as usize]));
        }
        buffer &= (1 << bits) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_the_attributes_alone() {
        let mut ids = Ids::default();
        let first = ids.assign('r', &["a", "b"]);
        let second = ids.assign('r', &["ab", ""]);
        assert_ne!(first, second);
        assert_eq!(Ids::default().assign('r', &["ab", ""]), second);
        assert_eq!(ids.assign('r', &["a", "b"]), first);
        assert_eq!(first.len(), 13);
    }

    #[test]
    fn a_collision_gets_a_longer_id() {
        let mut ids = Ids::default();
        let short = ids.assign('r', &["a"]);
        for digest in ids.taken.values_mut() {
            *digest = [0; 32];
        }
        let longer = ids.assign('r', &["a"]);
        assert!(longer.starts_with(&short) && longer.len() == 25);
    }
}
