//! The key of the status page.

use std::fmt;
use std::path::Path;

use anyhow::{Context as _, ensure};
use http::HeaderMap;
use subtle::ConstantTimeEq as _;

/// The header with the key, as for status pages of PingSIX.
const HEADER: &str = "x-api-key";

/// A key that readers of `/status/config` need.
#[derive(Clone)]
pub(crate) struct StatusKey(Box<[u8]>);

impl fmt::Debug for StatusKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StatusKey")
    }
}

impl StatusKey {
    /// Reads the first line of a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or has no key.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let line = text.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        ensure!(!line.is_empty(), "{} has no key in its first line", path.display());
        Ok(Self(line.into()))
    }

    /// Whether a request has the key. The time of the comparison reveals only the length of the key.
    pub(crate) fn is_in(&self, headers: &HeaderMap) -> bool {
        headers.get(HEADER).is_some_and(|value| value.as_bytes().ct_eq(&self.0).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_first_line_and_opens_nothing_else() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(StatusKey::read(file.path()).is_err());
        std::fs::write(file.path(), "sesame\r\nmore").unwrap();
        let key = StatusKey::read(file.path()).unwrap();
        let with = |value: &'static str| {
            HeaderMap::from_iter([(
                http::HeaderName::from_static(HEADER),
                http::HeaderValue::from_static(value),
            )])
        };
        assert!(key.is_in(&with("sesame")));
        for other in ["", "sesam", "sesame ", "SESAME"] {
            assert!(!key.is_in(&with(other)), "{other}");
        }
        assert!(!key.is_in(&HeaderMap::new()));
        assert!(!format!("{key:?}").contains("sesame"));
    }
}
