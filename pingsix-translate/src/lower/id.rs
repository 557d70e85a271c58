//! Ids of documents: short, deterministic, and a function of the document's own attributes.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::packed::pack;

/// Hands out ids, and sees to it that no two documents get the same one.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// By the bits that a short id shows, the last ones that the long form shows.
    taken: BTreeMap<u64, u64>,
    /// Whether some id has its long form, so that it depends on the order in which ids were asked for.
    collided: bool,
}

/// Bytes of the digest that a short id shows, but for the last four bits: 60 bits in twelve characters. With
/// 30,000 documents, the odds of any collision are one in two thousand million.
const SHORT: usize = 8;

/// Bytes of the digest in an id whose short form is taken: 24 characters.
const LONG: usize = 15;

impl Ids {
    /// The id of the document with a name. A longer digest resolves a collision of the short one, so that other ids
    /// stay.
    pub(crate) fn assign(&mut self, name: &Name) -> String {
        let (shown, rest) = (name.shown(), name.rest());
        let is_first = *self.taken.entry(shown).or_insert(rest) == rest;
        self.collided |= !is_first;
        if is_first { name.short() } else { name.text(LONG) }
    }

    /// Shrinks the allocation to the content.
    pub(crate) fn pack(&mut self) {
        pack(&mut self.taken);
    }

    /// Whether ids depend on the order in which they were asked for.
    pub(crate) const fn collided(&self) -> bool {
        self.collided
    }

    /// Releases an id. An id of another form was not assigned here.
    pub(crate) fn release(&mut self, id: &str) {
        if let Some(shown) = id.get(1..).and_then(read_base32) {
            self.taken.remove(&shown);
        }
    }
}

/// The attributes of a document, which its id stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    prefix: char,
    digest: [u8; 32],
}

impl Name {
    /// The name of the document with these attributes.
    pub(crate) fn new(prefix: char, attributes: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for attribute in attributes {
            digest.update(attribute.as_bytes());
            // No attribute holds this character.
            digest.update([0]);
        }
        Self { prefix, digest: digest.finalize().into() }
    }

    /// The id that shows as little of the digest as possible.
    pub(crate) fn short(&self) -> String {
        self.text(SHORT)
    }

    fn text(&self, bytes: usize) -> String {
        let mut id = String::with_capacity(1 + bytes * 8 / 5);
        id.push(self.prefix);
        push_base32(&self.digest[..bytes], &mut id);
        id
    }

    /// The bits that the short id shows.
    fn shown(&self) -> u64 {
        number(&self.digest[..SHORT]) >> 4
    }

    /// The last bits that the long id shows; together with the others, all of them.
    fn rest(&self) -> u64 {
        number(&self.digest[LONG - SHORT..LONG])
    }
}

/// The number that bytes are, the greatest first.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// The bits of a short id from its text without the prefix; `None` for another text.
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

/// Lower-case base32 without padding and incomplete characters: valid in PingSIX's keys and easy to read aloud.
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
        let first = ids.assign(&Name::new('r', &["a", "b"]));
        let second = ids.assign(&Name::new('r', &["ab", ""]));
        assert_ne!(first, second);
        assert_eq!(Ids::default().assign(&Name::new('r', &["ab", ""])), second);
        assert_eq!(ids.assign(&Name::new('r', &["a", "b"])), first);
        assert_eq!(first.len(), 13);
    }

    #[test]
    fn an_id_that_was_given_up_is_free_again() {
        let mut ids = Ids::default();
        let id = ids.assign(&Name::new('r', &["a", "b"]));
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
        let short = ids.assign(&Name::new('r', &["a"]));
        for digest in ids.taken.values_mut() {
            *digest = 0;
        }
        let longer = ids.assign(&Name::new('r', &["a"]));
        assert!(longer.starts_with(&short) && longer.len() == 25 && ids.collided());
    }
}
