//! PingSIX's `data_encryption`: encrypted secrets in etcd (`src/utils/encryption.rs` of PingSIX).
//!
//! The envelope is `$pingsix-enc:v1$` and the base64 of a nonce of 12 bytes, the ciphertext and a tag of 16 bytes, by
//! AES-256-GCM without associated data. Each key is derived from an entry of the keyring by Argon2id with the
//! parameters that are the default of its crate (19 MiB, two passes, one lane) and the salt
//! `pingsix::data_encryption::v1`.
//!
//! PingSIX draws its nonces at random. Here a nonce is a function of the key, the name of the document and the
//! plaintext. An unchanged document therefore has the same bytes at every write: another publication writes nothing,
//! and several controllers write the same. Two plaintexts share a nonce only by chance, as rarely as with random
//! nonces. An observer learns only that a secret is unchanged.

use std::fmt;
use std::sync::Arc;

use argon2::Argon2;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use serde_json::{Map, Value};

use super::ResourceKind;
use super::secret::{ENVELOPE, Extent, visit};
use crate::document::Document;

/// The prefix of an envelope of version 1, the only version.
const ENVELOPE_V1: &str = "$pingsix-enc:v1$";

/// The salt of all keys.
const SALT: &[u8] = b"pingsix::data_encryption::v1";

/// The label for deriving the key of nonces.
const NONCE_LABEL: &[u8] = b"pingsix-sink::nonce::v1";

/// The keys of PingSIX's `data_encryption.keyring`: the first one encrypts, all decrypt.
#[derive(Clone)]
pub struct Keyring {
    keys: Arc<[Derived]>,
}

/// A derived entry.
struct Derived {
    cipher: LessSafeKey,
    /// Derives nonces from plaintexts.
    nonces: hmac::Key,
}

/// A keyring cannot be used. Messages never contain an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyringError {
    /// There is no entry.
    #[error("the keyring has no entry")]
    Empty,
    /// An entry is invalid.
    #[error("entry {number} of the keyring {problem}")]
    Entry {
        /// The number of the entry, from 1.
        number: usize,
        /// The error.
        problem: &'static str,
    },
}

impl Keyring {
    /// Derives the keys, each in some 20 ms, from entries in the form of PingSIX's configuration.
    ///
    /// # Errors
    /// [`KeyringError`] when there is no entry, or an empty one.
    pub fn new<'s>(entries: impl IntoIterator<Item = &'s str>) -> Result<Self, KeyringError> {
        let derived = |(number, entry): (usize, &str)| {
            Derived::of(entry).map_err(|problem| KeyringError::Entry { number, problem })
        };
        let keys: Arc<[Derived]> = (1..).zip(entries).map(derived).collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(KeyringError::Empty) } else { Ok(Self { keys }) }
    }

    /// [`new`](Self::new) from a text with an entry on each line; the first one encrypts. Empty lines are ignored.
    ///
    /// # Errors
    /// [`KeyringError::Empty`].
    pub fn parse(text: &str) -> Result<Self, KeyringError> {
        Self::new(text.lines().filter(|line| !line.is_empty()))
    }

    /// The value of a document with every secret encrypted that PingSIX decrypts; `None` without such a secret. Equal
    /// documents give equal values.
    pub fn seal(&self, document: &Document) -> Option<Bytes> {
        replace(document, |secret| self.encrypted(document.key.as_str(), secret))
    }

    /// The value of a document with every secret decrypted for which the keyring has the key; `None` without such a
    /// secret.
    pub fn open(&self, document: &Document) -> Option<Bytes> {
        replace(document, |secret| self.decrypted(secret))
    }

    fn encrypted(&self, document: &str, secret: &str) -> Option<String> {
        // PingSIX treats any value with this prefix as encrypted.
        if secret.starts_with(ENVELOPE) {
            return None;
        }
        let key = self.keys.first()?;
        let mut tag = hmac::Context::with_key(&key.nonces);
        tag.update(document.as_bytes());
        tag.update(&[0]);
        tag.update(secret.as_bytes());
        let tag = tag.sign();
        let nonce: [u8; NONCE_LEN] = *tag.as_ref().first_chunk()?;
        let mut sealed = secret.as_bytes().to_vec();
        key.cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed)
            .ok()?;
        Some(format!("{ENVELOPE_V1}{}", STANDARD.encode([&nonce[..], &sealed].concat())))
    }

    fn decrypted(&self, secret: &str) -> Option<String> {
        let packed = STANDARD.decode(secret.strip_prefix(ENVELOPE_V1)?).ok()?;
        let (nonce, sealed) = packed.split_first_chunk::<NONCE_LEN>()?;
        self.keys.iter().find_map(|key| {
            let mut opened = sealed.to_vec();
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let plain = key.cipher.open_in_place(nonce, Aad::empty(), &mut opened).ok()?;
            String::from_utf8(plain.to_vec()).ok()
        })
    }
}

impl Derived {
    fn of(entry: &str) -> Result<Self, &'static str> {
        if entry.is_empty() {
            return Err("is empty");
        }
        let mut key = [0; 32];
        let derived = Argon2::default().hash_password_into(entry.as_bytes(), SALT, &mut key);
        derived.map_err(|_| "cannot be derived from")?;
        let cipher = UnboundKey::new(&AES_256_GCM, &key).map_err(|_| "gives no key")?;
        let label = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), NONCE_LABEL);
        let nonces = hmac::Key::new(hmac::HMAC_SHA256, label.as_ref());
        Ok(Self { cipher: LessSafeKey::new(cipher), nonces })
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("keys", &self.keys.len()).finish()
    }
}

/// The value of a document with replaced secrets; `None` without a replacement.
fn replace(document: &Document, with: impl Fn(&str) -> Option<String>) -> Option<Bytes> {
    let (kind, _) = ResourceKind::of(&document.key).ok()?;
    if !may_hold_secrets(kind, &document.value) {
        return None;
    }
    let mut fields: Map<String, Value> = serde_json::from_slice(&document.value).ok()?;
    let mut is_changed = false;
    visit(Extent::Decrypted, kind, &mut fields, &mut |secret| {
        if let Some(text) = secret.as_str().and_then(&with) {
            *secret = text.into();
            is_changed = true;
        }
    });
    is_changed.then(|| Value::Object(fields).to_string().into())
}

/// Whether decoding is worth it: a certificate always has a key, and other kinds have a field with the name of a
/// secret.
fn may_hold_secrets(kind: ResourceKind, value: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] = [b"\"key\"", b"\"keys\"", b"\"client_key\"", b"\"password\"", b"\"secret\""];
    kind == ResourceKind::Ssl
        || NAMES.iter().any(|name| value.windows(name.len()).any(|window| window == *name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::document::{Key, OrderHint, Owner};
    use crate::resource::secret::tests::{plugins, tls};

    fn document(key: &str, value: &Value) -> Document {
        Document {
            key: Key::new(key).unwrap(),
            value: value.to_string().into(),
            order: OrderHint(0),
            owner: Owner::new("test"),
        }
    }

    fn keyring(entries: &[&str]) -> Keyring {
        Keyring::new(entries.iter().copied()).unwrap()
    }

    fn with(document: &Document, value: Bytes) -> Document {
        Document { value, ..document.clone() }
    }

    #[test]
    fn exactly_the_secrets_that_pingsix_decrypts_are_sealed_and_opened() {
        let (tls, plugins) = (tls(), plugins());
        let keyring = keyring(&["new", "old"]);
        for (key, value, secrets) in [
            ("ssls/a", json!({"cert": "c", "key": "sesame", "snis": ["a"]}), 1),
            ("upstreams/a", json!({"key": "uri", "tls": tls}), 1),
            ("routes/a", json!({"upstream": {"tls": tls}, "plugins": plugins}), 7),
            ("global_rules/a", json!({"plugins": plugins}), 6),
        ] {
            let plain = document(key, &value);
            let sealed = with(&plain, keyring.seal(&plain).unwrap());
            let text = str::from_utf8(&sealed.value).unwrap();
            assert!(!text.contains("sesame"), "{text}");
            assert_eq!(text.matches(ENVELOPE_V1).count(), secrets, "{text}");
            assert_eq!(keyring.open(&sealed).unwrap(), plain.value);
            // A sealed secret stays as it is.
            assert_eq!(keyring.seal(&sealed), None);
            assert_eq!(keyring.open(&plain), None);
        }
        // PingSIX reads these as they are.
        let split = json!({"plugins": {"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream": {"tls": tls}}]}]}}});
        assert_eq!(keyring.seal(&document("routes/a", &split)), None);
        for key in ["stream_routes/a", "routes/a"] {
            assert_eq!(keyring.seal(&document(key, &json!({"uri": "/a", "name": "key"}))), None, "{key}");
        }
    }

    #[test]
    fn equal_documents_have_equal_envelopes_and_different_ones_share_no_nonce() {
        let keyring = keyring(&["new"]);
        let nonce = |key: &str, secret: &str| {
            let sealed = keyring.seal(&document(key, &json!({"key": secret}))).unwrap();
            let sealed: Value = serde_json::from_slice(&sealed).unwrap();
            let packed = STANDARD.decode(&sealed["key"].as_str().unwrap()[ENVELOPE_V1.len()..]).unwrap();
            packed[..NONCE_LEN].to_vec()
        };
        assert_eq!(nonce("ssls/a", "sesame"), nonce("ssls/a", "sesame"));
        assert_ne!(nonce("ssls/a", "sesame"), nonce("ssls/b", "sesame"));
        assert_ne!(nonce("ssls/a", "sesame"), nonce("ssls/a", "sesame "));
    }

    #[test]
    fn a_rotated_keyring_reads_what_the_old_one_wrote_and_writes_it_anew() {
        let plain = document("ssls/a", &json!({"key": "sesame"}));
        let old = with(&plain, keyring(&["old"]).seal(&plain).unwrap());
        let rotated = keyring(&["new", "old"]);
        assert_eq!(rotated.open(&old).unwrap(), plain.value);
        assert_ne!(rotated.seal(&plain).unwrap(), old.value);
        assert_eq!(keyring(&["other"]).open(&old), None);
        // A wrong tag, and an unknown version.
        for damaged in [r#"{"key":"$pingsix-enc:v1$AAAA"}"#, r#"{"key":"$pingsix-enc:v9$AAAA"}"#] {
            assert_eq!(rotated.open(&with(&plain, damaged.into())), None);
        }
    }

    /// An envelope by another implementation of the format: Argon2id by the reference implementation in C,
    /// AES-256-GCM by OpenSSL.
    #[test]
    fn an_envelope_of_another_implementation_is_opened() {
        let sealed = document("ssls/a", &json!({"key": FOREIGN}));
        let opened = keyring(&["primary-secret"]).open(&sealed).unwrap();
        assert_eq!(opened, json!({"key": "open sesame"}).to_string());
    }

    const FOREIGN: &str = "$pingsix-enc:v1$AQIDBAUGBwgJCgsMU7RqYDpWg+nQDLsyXcPzLirAC0tg7gYs9mOD";

    #[test]
    fn a_keyring_without_a_key_is_refused_and_none_is_shown() {
        assert_eq!(Keyring::parse("\n\n").unwrap_err(), KeyringError::Empty);
        let error = Keyring::new(["sesame", ""]).unwrap_err();
        assert_eq!(error.to_string(), "entry 2 of the keyring is empty");
        assert_eq!(format!("{:?}", keyring(&["sesame"])), "Keyring { keys: 1 }");
    }
}
