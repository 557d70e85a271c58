//! The promises of every sink, checked against each of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/documents.rs"]
mod documents;

use documents::{desired, scope};
use pingsix_sink::{Changed, Desired, DocumentSet, EmbeddedEtcd, MemorySink, Scope, Sink};

/// A sink whose target can be read back.
trait Readable: Sink {
    fn held(&self, scope: &Scope) -> Option<DocumentSet>;
}

impl Readable for MemorySink {
    fn held(&self, scope: &Scope) -> Option<DocumentSet> {
        self.documents(scope)
    }
}

impl Readable for EmbeddedEtcd {
    fn held(&self, scope: &Scope) -> Option<DocumentSet> {
        self.documents(scope)
    }
}

async fn keeps_the_contract(sink: impl Readable) {
    let web = desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]);
    let api = desired("/p/api", &[("routes/r", "api")]);

    let first = sink.publish(&web).await.unwrap();
    assert_eq!(first.changed, Changed { created: 2, updated: 0, deleted: 0 });
    assert_eq!(sink.held(web.scope()).unwrap(), *web.documents());

    let other = sink.publish(&api).await.unwrap();
    assert!(other.revision > first.revision, "revisions grow over all scopes");
    assert_eq!(sink.held(web.scope()).unwrap(), *web.documents(), "a scope is not touched by another");

    let same = sink.publish(&web).await.unwrap();
    assert!(same.changed.is_empty(), "equal content publishes nothing");
    assert_eq!(same.revision, first.revision, "and reports the revision that brought it");

    let web = desired("/p/web", &[("upstreams/u", "2"), ("routes/s", "1")]);
    let third = sink.publish(&web).await.unwrap();
    assert_eq!(third.changed, Changed { created: 1, updated: 1, deleted: 1 });
    assert!(third.revision > other.revision);
    assert_eq!(sink.held(web.scope()).unwrap(), *web.documents());

    let empty = sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(empty.changed.deleted, 2);
    assert!(sink.held(web.scope()).unwrap().is_empty(), "an emptied scope is remembered");

    for overlapping in ["/p", "/p/web/inner"] {
        let error = sink.publish(&Desired::empty(scope(overlapping))).await.unwrap_err();
        assert_eq!(error.category(), "scope_overlap", "{overlapping}");
        assert!(!error.is_retryable());
    }
    sink.publish(&Desired::empty(scope("/p/webinar"))).await.unwrap();
}

#[tokio::test]
async fn the_memory_sink_keeps_the_contract() {
    keeps_the_contract(MemorySink::new()).await;
}

#[tokio::test]
async fn the_embedded_server_keeps_the_contract() {
    keeps_the_contract(EmbeddedEtcd::builder().start().await.unwrap()).await;
}
