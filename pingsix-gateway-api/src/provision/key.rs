//! The keys of status pages.

use std::fmt;
use std::fmt::Write as _;

use http::HeaderValue;
use pingsix_translate::ObjectKey;
use sha2::{Digest as _, Sha256};

/// The shortest secret of an installation, in bytes.
const MIN_SECRET_BYTES: usize = 32;

/// The block of SHA-256, in bytes.
const SHA256_BLOCK_BYTES: usize = 64;

/// The secret from which the keys of status pages are derived. All replicas of an installation share the secret, so
/// each computes every key without storage.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct InstallationKey(Vec<u8>);

impl InstallationKey {
    /// The key from secret random bytes; `None` for fewer than 32.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= MIN_SECRET_BYTES).then(|| Self(bytes.to_vec()))
    }

    /// The key of the status pages of an owner. It stays the same when the owner is made anew: Pods of both are never there
    /// at the same time.
    pub(crate) fn diagnostics(&self, owner: &ObjectKey) -> DiagnosticsKey {
        let mut text = String::with_capacity(64);
        for byte in hmac(&self.0, format!("diagnostics {owner}").as_bytes()) {
            let _ = write!(text, "{byte:02x}");
        }
        DiagnosticsKey(text)
    }
}

impl fmt::Debug for InstallationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InstallationKey").finish_non_exhaustive()
    }
}

/// The key of the status pages of an owner.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DiagnosticsKey(String);

impl DiagnosticsKey {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// As a request has it; `None` never, since it is hexadecimal.
    pub(crate) fn to_header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.0).ok()
    }
}

impl fmt::Debug for DiagnosticsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DiagnosticsKey").finish_non_exhaustive()
    }
}

/// HMAC-SHA-256 (RFC 2104).
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let digest;
    let key = if key.len() > SHA256_BLOCK_BYTES {
        digest = Sha256::digest(key);
        digest.as_slice()
    } else {
        key
    };
    let mut padded = [0; SHA256_BLOCK_BYTES];
    padded.iter_mut().zip(key).for_each(|(byte, key)| *byte = *key);
    let with = |mark: u8| padded.map(|byte| byte ^ mark);
    let inner = Sha256::new().chain_update(with(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(with(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use pingsix_translate::Kind;

    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    #[test]
    fn it_is_the_hmac_of_the_standard() {
        // RFC 4231, cases 2 and 6.
        let short = hmac(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(hex(&short), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let long = hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First");
        assert_eq!(hex(&long), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }

    #[test]
    fn each_owner_has_a_key_of_its_own_and_none_is_shown() {
        let owner = |name: &str| ObjectKey::new(Kind::Gateway, "infra", name);
        let installation = InstallationKey::new(b"sesame, and 25 bytes more of it!").unwrap();
        let key = installation.diagnostics(&owner("a"));
        assert_eq!(key, installation.diagnostics(&owner("a")));
        assert_ne!(key, installation.diagnostics(&owner("b")));
        let other = InstallationKey::new(&[7; 32]).unwrap();
        assert_ne!(key, other.diagnostics(&owner("a")));
        assert_eq!(key.to_header().unwrap().len(), 64);
        assert!(!format!("{installation:?}{key:?}").contains(key.as_str()));
        assert!(!format!("{installation:?}").contains("115"));
        assert_eq!(InstallationKey::new(&[7; 31]), None);
    }
}
