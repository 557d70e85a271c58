//! Digests that make names differ.

use sha2::{Digest as _, Sha256};

/// Sixteen hexadecimal digits.
pub(crate) fn short_digest(text: &str) -> String {
    let mut first = [0; 8];
    for (byte, digest) in first.iter_mut().zip(Sha256::digest(text)) {
        *byte = digest;
    }
    format!("{:016x}", u64::from_be_bytes(first))
}
