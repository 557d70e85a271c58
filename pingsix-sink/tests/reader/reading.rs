//! Waits for content.

use std::net::SocketAddr;
use std::time::Duration;

use pingsix_sink::Scope;
use pingsix_sink::etcd::{Builder, EtcdError, EtcdReader, KeyValues};

use pingsix_sink::contract::documents::scope;

/// Timeout of all waits, longer than any of them takes.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// The scope that is read.
pub(crate) fn web() -> Scope {
    scope("/s/web")
}

/// A reader in plaintext.
pub(crate) fn builder(address: SocketAddr) -> Builder {
    builder_of(&address.to_string())
}

/// A reader.
pub(crate) fn builder_of(endpoint: &str) -> Builder {
    Builder::new([endpoint]).timeout(Duration::from_secs(2))
}

pub(crate) async fn next(reader: &mut EtcdReader) -> Result<KeyValues, EtcdError> {
    let changed = tokio::time::timeout(WAIT_TIMEOUT, reader.changed()).await;
    changed.expect("it is read in time").cloned()
}

/// The next content, without an error before it.
pub(crate) async fn content(reader: &mut EtcdReader) -> (i64, Vec<(String, String)>) {
    shown(&next(reader).await.unwrap())
}

/// Reads until the content has these keys and values, over errors. Returns the categories of the errors.
pub(crate) async fn until(reader: &mut EtcdReader, expected: &[(&str, &str)]) -> Vec<&'static str> {
    use pingsix_sink::error::SinkErrorSource as _;
    let mut errors = Vec::new();
    loop {
        match next(reader).await {
            Ok(content) if shown(&content).1 == owned(expected) => return errors,
            Ok(_) => {}
            Err(error) => errors.push(error.category()),
        }
    }
}

pub(crate) fn shown(content: &KeyValues) -> (i64, Vec<(String, String)>) {
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    (content.revision, content.by_key.iter().map(|(key, value)| (key.clone(), text(value))).collect())
}

pub(crate) fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
