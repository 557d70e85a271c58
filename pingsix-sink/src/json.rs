//! Publications as lines of JSON, for pipelines.

use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use crate::desired::{Desired, DocumentSet};
use crate::error::SinkError;
use crate::ledger::Ledger;
use crate::plan::plan;
use crate::{Effect, Published, Sink};

/// Writes each publication that changes something as one line of JSON.
///
/// ```json
/// {"scope":"/pingsix/shop/web","revision":1,"documents":[{"key":"routes/a","owner":"HTTPRoute shop/cart","value":{}}]}
/// ```
///
/// A line holds the whole of a scope, its documents sorted by key, so the last line of a scope is what it shall hold.
/// What was said to earlier readers is not known: the first publication of a scope is always written.
/// A value is written as the bytes it has, and must be JSON without line ends.
///
/// # Security
///
/// Values are written in full, private keys among them.
/// Choosing this sink is choosing to print them; a terminal, a log or a file then holds them.
pub struct JsonSink<W> {
    state: Mutex<State<W>>,
}

struct State<W> {
    out: W,
    /// A line may have been begun and not ended.
    torn: bool,
    ledger: Ledger<DocumentSet>,
}

#[derive(Serialize)]
struct Line<'a> {
    scope: &'a str,
    revision: i64,
    documents: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    key: &'a str,
    owner: String,
    value: &'a RawValue,
}

impl<W: AsyncWrite + Unpin + Send> JsonSink<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W) -> Self {
        Self { state: Mutex::new(State { out, torn: false, ledger: Ledger::default() }) }
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.state.into_inner().out
    }
}

impl<W> fmt::Debug for JsonSink<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonSink").finish_non_exhaustive()
    }
}

impl<W: AsyncWrite + Unpin + Send> Sink for JsonSink<W> {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let mut state = self.state.lock().await;
        let State { out, torn, ledger } = &mut *state;
        let scope = desired.scope();
        ledger.admit(scope)?;
        let held = ledger.get(scope);
        let changed = match held {
            Some((_, documents)) => plan(documents, desired.documents()),
            None => plan(&DocumentSet::default(), desired.documents()),
        }
        .changed();
        if let Some((revision, _)) = held
            && changed.is_empty()
        {
            return Ok(Published { revision: *revision, changed });
        }
        let revision = ledger.next();
        let mut line = render(desired, revision.get())?;
        line.push(b'\n');
        if *torn {
            // The broken line ends here, and this one is whole.
            line.insert(0, b'\n');
        }
        *torn = true;
        out.write_all(&line).await.map_err(SinkError::Output)?;
        out.flush().await.map_err(SinkError::Output)?;
        *torn = false;
        ledger.note(scope.clone(), revision, desired.documents().clone());
        Ok(Published { revision, changed })
    }

    fn effect(&self) -> Effect {
        Effect::Unknown
    }
}

fn render(desired: &Desired, revision: i64) -> Result<Vec<u8>, SinkError> {
    let mut documents = Vec::with_capacity(desired.documents().len());
    for document in desired.documents() {
        let value = str::from_utf8(&document.value).ok().filter(|text| !text.contains(['\n', '\r']));
        let value = value.and_then(|text| serde_json::from_str(text).ok());
        let Some(value) = value else {
            return Err(SinkError::NotJson { key: document.key.clone(), owner: document.owner.clone() });
        };
        documents.push(Entry { key: document.key.as_str(), owner: document.owner.to_string(), value });
    }
    let line = Line { scope: desired.scope().as_str(), revision, documents };
    serde_json::to_vec(&line).map_err(|error| SinkError::Output(error.into()))
}
