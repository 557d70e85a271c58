//! Publications as lines of JSON.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/documents.rs"]
mod documents;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use documents::{desired, scope};
use pingsix_sink::{Desired, Effect, JsonSink, Sink};
use serde_json::{Value, json};
use tokio::io::AsyncWrite;

#[tokio::test]
async fn each_publication_that_changes_something_is_one_line() {
    let sink = JsonSink::new(Vec::new());
    assert_eq!(sink.effect(), Effect::Unknown);
    let state = desired("/p/web", &[("upstreams/u", r#"{"b":1,"a":2.0}"#), ("routes/r", r#"{"uri":"/"}"#)]);
    let first = sink.publish(&state).await.unwrap();
    assert_eq!(first.changed.created, 2);
    assert_eq!(sink.publish(&state).await.unwrap().revision, first.revision);
    sink.publish(&Desired::empty(scope("/p/api"))).await.unwrap();
    let error = sink.publish(&Desired::empty(scope("/p"))).await.unwrap_err();
    assert_eq!(error.category(), "scope_overlap");
    let last = sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(last.changed.deleted, 2);

    let text = String::from_utf8(sink.into_inner()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        r#"{"scope":"/p/web","revision":1,"documents":[{"key":"routes/r","owner":"test","value":{"uri":"/"}},{"key":"upstreams/u","owner":"test","value":{"b":1,"a":2.0}}]}"#,
        "sorted by key, values byte for byte"
    );
    assert_eq!(lines[1], r#"{"scope":"/p/api","revision":2,"documents":[]}"#);
    assert_eq!(lines[2], r#"{"scope":"/p/web","revision":3,"documents":[]}"#);
    assert_eq!(lines.len(), 3);
}

#[tokio::test]
async fn what_is_not_json_on_one_line_is_refused_and_nothing_is_written() {
    let sink = JsonSink::new(Vec::new());
    for value in ["sesame", "{\n}", "", "\u{feff}{}"] {
        let error = sink.publish(&desired("/p/web", &[("routes/r", value)])).await.unwrap_err();
        assert_eq!(error.to_string(), "the value of document routes/r of test is not JSON on one line");
    }
    assert!(sink.into_inner().is_empty());
}

/// Breaks off in the middle of the first line.
struct Breaking {
    out: Vec<u8>,
    broken: bool,
}

impl AsyncWrite for Breaking {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.broken || self.out.is_empty() {
            let half = if self.broken { bytes.len() } else { bytes.len() / 2 };
            self.out.extend_from_slice(&bytes[..half]);
            return Poll::Ready(Ok(half));
        }
        self.broken = true;
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_line_that_broke_off_does_not_spoil_the_next() {
    let sink = JsonSink::new(Breaking { out: Vec::new(), broken: false });
    let state = desired("/p/web", &[("routes/r", "{}")]);
    let error = sink.publish(&state).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    sink.publish(&state).await.unwrap();
    let text = String::from_utf8(sink.into_inner().out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(serde_json::from_str::<Value>(lines[0]).is_err());
    let whole: Value = serde_json::from_str(lines[1]).unwrap();
    assert_eq!(whole["documents"][0]["value"], json!({}));
}
