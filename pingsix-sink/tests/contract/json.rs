//! Lines of JSON, of which the last one of a scope says what it holds.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use pingsix_sink::{JsonSink, Scope};
use serde_json::Value;
use tokio::io::AsyncWrite;

use crate::resources::{Resources, from_resource, text};
use crate::target::{Ability, Contents, Target};

#[derive(Default)]
pub(crate) struct Json(Out);

/// What was written so far.
#[derive(Clone, Default)]
pub(crate) struct Out(Arc<Mutex<Vec<u8>>>);

impl AsyncWrite for Out {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Target for Json {
    type Sink = Resources<JsonSink<Out>>;

    const LACKS: &'static [(Ability, &'static str)] = &[
        (Ability::Outlives, "a stream does not tell what was written to it"),
        (Ability::HasOtherWriters, "a stream has one writer"),
        (Ability::Fails, "a publication is one line"),
        (Ability::LosesAnswers, "a stream gives no answers"),
        (Ability::Stalls, "a stream may take as long as its reader"),
    ];

    async fn start() -> Option<Self> {
        Some(Self::default())
    }

    async fn open(&self) -> Self::Sink {
        Resources(JsonSink::new(self.0.clone()))
    }

    async fn read(&self, scope: &Scope) -> Contents {
        self.states(scope).await.pop().unwrap()
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        let out = self.0.0.lock().clone();
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
        let own = lines.filter(|line| line["scope"] == scope.as_str());
        [Contents::new()].into_iter().chain(own.map(|line| contents(&line))).collect()
    }
}

fn contents(line: &Value) -> Contents {
    let documents = line["documents"].as_array().unwrap().iter();
    documents
        .map(|document| (from_resource(document["key"].as_str().unwrap()), text(&document["value"])))
        .collect()
}
