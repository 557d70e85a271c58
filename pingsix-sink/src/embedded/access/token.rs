//! Tokens: a name and an expiry, signed with the key of that user.
//!
//! A token has three fields in hexadecimal digits, separated by points: the name, the expiry in seconds since 1970,
//! and the signature of both.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use ring::hmac;

/// Length limit of a token.
const MAX_LENGTH: usize = 1_024;

/// A parsed token before verification.
#[derive(Debug)]
pub(super) struct UnverifiedToken<'a> {
    pub(super) name: String,
    expires: u64,
    signed: &'a str,
    signature: Vec<u8>,
}

/// A token for `name` that expires `lifetime` after `now`.
pub(super) fn issue(name: &str, key: &hmac::Key, now: SystemTime, lifetime: Duration) -> String {
    let expires = seconds(now).saturating_add(lifetime.as_secs());
    let signed = format!("{}.{expires:x}", hex(name.as_bytes()));
    let signature = hmac::sign(key, &message(&signed));
    format!("{signed}.{}", hex(signature.as_ref()))
}

impl<'a> UnverifiedToken<'a> {
    pub(super) fn read(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.').filter(|_| token.len() <= MAX_LENGTH)?;
        let (name, expires) = signed.split_once('.')?;
        let name = String::from_utf8(from_hex(name)?).ok()?;
        let expires = u64::from_str_radix(expires, 16).ok()?;
        Some(Self { name, expires, signed, signature: from_hex(signature)? })
    }

    /// Verifies the signature in constant time.
    pub(super) fn is_signed_with(&self, key: &hmac::Key) -> bool {
        hmac::verify(key, &message(self.signed), &self.signature).is_ok()
    }

    pub(super) fn has_expired(&self, now: SystemTime) -> bool {
        self.expires <= seconds(now)
    }
}

/// The signed message; the proof of the password is another message.
fn message(signed: &str) -> Vec<u8> {
    [b"pingsix-sink token ", signed.as_bytes()].concat()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(password: &str) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, password.as_bytes())
    }

    #[test]
    fn a_token_is_good_for_its_user_until_it_expires() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let token = issue("web", &key("s3cret"), now, Duration::from_mins(1));
        let unverified = UnverifiedToken::read(&token).unwrap();
        assert_eq!(unverified.name, "web");
        assert!(unverified.is_signed_with(&key("s3cret")) && !unverified.is_signed_with(&key("other")));
        assert!(!unverified.has_expired(now + Duration::from_secs(59)));
        assert!(unverified.has_expired(now + Duration::from_mins(1)));

        let (name, rest) = token.split_once('.').unwrap();
        let forged = [format!("{}.{rest}", hex(b"api")), format!("{name}.f{rest}"), format!("{token}00")];
        for forged in forged {
            assert!(
                UnverifiedToken::read(&forged).is_none_or(|token| !token.is_signed_with(&key("s3cret"))),
                "{forged}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_token_of_any_text_is_read_or_refused(text in ".{0,40}", name in ".{0,20}") {
            prop_assert!(UnverifiedToken::read(&text).is_none_or(|token| !token.is_signed_with(&key("s3cret"))));
            let token = issue(&name, &key("s3cret"), SystemTime::UNIX_EPOCH, Duration::MAX);
            prop_assert!(token.is_ascii());
            let token = UnverifiedToken::read(&token).unwrap();
            prop_assert_eq!(&token.name, &name);
            prop_assert!(token.is_signed_with(&key("s3cret")));
        }
    }
}
