//! Ids of documents: short, deterministic, and a function of the document's own attributes.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

/// Hands out ids, and sees to it that no two documents get the same one.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// By the bits that a short id shows, the digest it stands for.
    taken: BTreeMap<u64, [u8; 32]>,
    /// Whether some id has its long form, so that it depends on the order in which ids were asked for.
    collided: bool,
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
        let is_first = *self.taken.entry(shown(&digest)).or_insert(digest) == digest;
        self.collided |= !is_first;
        let length = if is_first { SHORT } else { LONG };
        let mut id = String::with_capacity(2 * LONG);
        id.push(prefix);
        push_base32(&digest[..length], &mut id);
        id
    }

    /// Whether ids depend on the order in which they were asked for.
    pub(crate) const fn collided(&self) -> bool {
        self.collided
    }

    /// Gives an id up. One that was not handed out as a short one is none of ours to keep.
    pub(crate) fn release(&mut self, id: &str) {
        if let Some(shown) = id.get(1..).and_then(read_base32) {
            self.taken.remove(&shown);
        }
    }
}

/// The bits that a short id shows, from its text without the prefix; `None` for what is no short id.
fn read_base32(text: &str) -> Option<u64> {
    if text.len() != SHORT * 8 / 5 {
        return None;
    }
    text.bytes().try_fold(0, |bits, character| {
        let value = ALPHABET.iter().position(|known| *known == character)?;
        Some(bits << 5 | u64::try_from(value).ok()?)
    })
}

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The bits that a short id shows.
fn shown(digest: &[u8; 32]) -> u64 {
    digest[..SHORT].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)) >> 4
}

/// Lower-case, without padding and without what does not fill a character: fits PingSIX's keys and is easy to read
/// aloud.
fn push_base32(bytes: &[u8], text: &mut String) {
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
    fn an_id_that_was_given_up_is_free_again() {
        let mut ids = Ids::default();
        let id = ids.assign('r', &["a", "b"]);
        assert_eq!(ids.taken.len(), 1);
        for other in ["nowhere", "status-404", "redirect", "r", ""] {
            ids.release(other);
        }
        assert_eq!(ids.taken.len(), 1);
        ids.release(&id);
        assert!(ids.taken.is_empty() && !ids.collided());
    }

    #[test]
    fn a_collision_gets_a_longer_id() {
        let mut ids = Ids::default();
        let short = ids.assign('r', &["a"]);
        for digest in ids.taken.values_mut() {
            *digest = [0; 32];
        }
        let longer = ids.assign('r', &["a"]);
        assert!(longer.starts_with(&short) && longer.len() == 25 && ids.collided());
    }
}
