//! The promises.

use std::collections::BTreeSet;
use std::time::Duration;

use super::documents::{desired, document, scope};
use super::graph::{assert_closed, graph};
use super::target::{Ability, Contents, TestTarget};
use crate::desired::{Desired, DocumentSet};
use crate::error::SinkError;
use crate::plan::Changed;
use crate::revision::Revision;
use crate::sink::Sink as _;

/// Timeout of all waits, longer than any of them takes.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The contents of the target in the desired state.
fn expected_contents(desired: &Desired) -> Contents {
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    desired.documents().iter().map(|document| (document.key.to_string(), text(&document.value))).collect()
}

/// Whether the error has this category.
fn has_category(error: &SinkError, category: &str) -> bool {
    error.category() == category
}

/// Number of documents that differ from the desired ones.
fn missing(held: &Contents, desired: &Desired) -> usize {
    let expected_contents = expected_contents(desired);
    let gone = held.keys().filter(|key| !expected_contents.contains_key(*key)).count();
    gone + expected_contents.iter().filter(|(key, value)| held.get(*key) != Some(*value)).count()
}

/// After a publication, the target holds its documents and no earlier ones.
pub async fn holds_exactly_what_was_published<T: TestTarget>(target: T) {
    let sink = target.open().await;
    let web = desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]);
    let first = sink.publish(&web).await.unwrap();
    assert_eq!(first.changed, Changed { created: 2, updated: 0, deleted: 0 });
    assert_eq!(target.read(web.scope()).await, expected_contents(&web));

    let web = desired("/p/web", &[("upstreams/u", "2"), ("routes/s", "1")]);
    let second = sink.publish(&web).await.unwrap();
    assert_eq!(second.changed, Changed { created: 1, updated: 1, deleted: 1 });
    assert!(second.revision > first.revision);
    assert_eq!(target.read(web.scope()).await, expected_contents(&web));

    let empty = sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(empty.changed, Changed { created: 0, updated: 0, deleted: 2 });
    assert!(empty.revision > second.revision);
    assert_eq!(target.read(web.scope()).await, Contents::new());

    let again = sink.publish(&web).await.unwrap();
    assert!(again.revision > empty.revision);
    assert_eq!(
        target.read(web.scope()).await,
        expected_contents(&web),
        "an emptied scope can be filled again"
    );
}

/// A publication changes its scope alone, and revisions grow over all scopes.
pub async fn touches_no_other_scope<T: TestTarget>(target: T) {
    if !T::can(Ability::HasSeveralScopes) {
        return;
    }
    let sink = target.open().await;
    let scopes = ["/p/web", "/p/webinar", "/p/web:80", "/p/web.old"];
    let mut last = None;
    for prefix in scopes {
        let published = sink.publish(&desired(prefix, &[("routes/r", prefix)])).await.unwrap();
        assert!(Some(published.revision) > last, "revisions grow over all scopes");
        last = Some(published.revision);
    }
    sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(target.read(&scope("/p/web")).await, Contents::new());
    for prefix in &scopes[1..] {
        let held = desired(prefix, &[("routes/r", prefix)]);
        assert_eq!(target.read(held.scope()).await, expected_contents(&held));
        assert!(sink.publish(&held).await.unwrap().changed.is_empty());
    }
}

/// A scope inside of another one is refused for good.
pub async fn refuses_a_scope_inside_another<T: TestTarget>(target: T) {
    if !T::can(Ability::HasSeveralScopes) {
        return;
    }
    let sink = target.open().await;
    sink.publish(&desired("/p/web", &[("routes/r", "1")])).await.unwrap();
    for overlapping in ["/p", "/p/web/inner"] {
        let error = sink.publish(&Desired::empty(scope(overlapping))).await.unwrap_err();
        assert!(has_category(&error, "scope_overlap"), "{overlapping}: {error}");
        assert!(!error.is_retryable());
    }
    sink.publish(&desired("/p/webinar", &[("routes/r", "1")])).await.unwrap();
}

/// Equal content changes nothing, and has the revision that brought the content.
pub async fn writes_nothing_for_equal_content<T: TestTarget>(target: T) {
    let sink = target.open().await;
    let states = [
        desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]),
        desired("/p/web", &[("upstreams/u", "1")]),
        Desired::empty(scope("/p/web")),
    ];
    for web in states {
        let first = sink.publish(&web).await.unwrap();
        if T::can(Ability::HasSeveralScopes) {
            let api = desired("/p/api", &[("routes/r", &first.revision.to_string())]);
            assert!(sink.publish(&api).await.unwrap().revision > first.revision);
        }
        let history = target.states(web.scope()).await;
        let equal =
            DocumentSet::new(web.documents().iter().map(|one| document(one.key.as_str(), one.value.clone())));
        for _ in 0..3 {
            let same =
                sink.publish(&Desired::new(web.scope().clone(), equal.as_ref().unwrap().clone())).await;
            let same = same.unwrap();
            assert!(same.changed.is_empty());
            assert_eq!(same.revision, first.revision, "the revision that brought the content");
        }
        if T::can(Ability::IsPersistent) {
            let same = target.open().await.publish(&web).await.unwrap();
            assert!(same.changed.is_empty());
            if T::can(Ability::RemembersRevisions) {
                assert_eq!(same.revision, first.revision, "also after a restart");
            }
        }
        assert_eq!(target.states(web.scope()).await, history);
    }
}

/// No visible document refers to a missing one, at any step.
pub async fn is_closed_under_reference_at_every_step<T: TestTarget>(target: T) {
    let sink = target.open().await;
    let mut last = None;
    for seed in 0..12 {
        let graph = graph(seed);
        let published = sink.publish(&graph).await.unwrap();
        assert!(Some(published.revision) > last);
        last = Some(published.revision);
        assert_eq!(target.read(graph.scope()).await, expected_contents(&graph));
    }
    let states = target.states(&scope("/p/web")).await;
    assert!(states.len() > 12, "the target saw steps");
    for state in &states {
        assert_closed(state);
    }
}

/// A repetition writes the documents that a failed publication left, and has a new revision.
async fn completes<T: TestTarget>(target: &T, sink: &T::Sink, after: &Desired, last: Revision) {
    let rest = missing(&target.read(after.scope()).await, after);
    let repeated = sink.publish(after).await.unwrap();
    assert_eq!(repeated.changed.total(), rest, "the rest of the plan");
    assert!(repeated.revision > last);
    assert_eq!(target.read(after.scope()).await, expected_contents(after));
}

/// A repeated publication completes a failed one.
pub async fn completes_a_failed_publication_when_repeated<T: TestTarget>(target: T) {
    if !T::can(Ability::CanFail) {
        return;
    }
    let sink = target.open().await;
    let (before, after) = (graph(1), graph(2));
    let mut writes = 0;
    loop {
        let first = sink.publish(&before).await.unwrap();
        let history = target.states(before.scope()).await.len();
        target.fail_after(Some(writes));
        let Err(error) = sink.publish(&after).await else { break };
        assert!(error.is_retryable(), "{error}");
        assert!(sink.publish(&after).await.is_err(), "it still fails");
        target.fail_after(None);
        assert_eq!(target.states(before.scope()).await.len(), history + writes, "a prefix of the plan");

        completes(&target, &sink, &after, first.revision).await;
        writes += 1;
    }
    assert!(writes > 5, "it was interrupted");
    for state in target.states(before.scope()).await {
        assert_closed(&state);
    }
}

/// A client without a response does not know the outcome of its write: a repetition finds out.
pub async fn completes_a_publication_with_a_lost_response<T: TestTarget>(target: T) {
    if !T::can(Ability::LosesResponses) {
        return;
    }
    let sink = target.open().await;
    let (before, after) = (graph(1), graph(2));
    let mut writes = 0;
    loop {
        let first = sink.publish(&before).await.unwrap();
        let history = target.states(before.scope()).await.len();
        target.lose_responses_after(Some(writes));
        let lost = sink.publish(&after).await;
        target.lose_responses_after(None);
        let Err(error) = lost else { break };
        assert!(error.is_retryable(), "{error}");
        assert_eq!(
            target.states(before.scope()).await.len(),
            history + writes + 1,
            "one more than was answered"
        );

        completes(&target, &sink, &after, first.revision).await;
        writes += 1;
    }
    assert!(writes > 5, "answers were lost");
    for state in target.states(before.scope()).await {
        assert_closed(&state);
    }
}

/// After a restart, documents of the last and the next publication stay visible.
pub async fn withdraws_nothing_when_it_is_restarted_after_any_step<T: TestTarget>(target: T) {
    if !T::can(Ability::CanFail) || !T::can(Ability::IsPersistent) {
        return;
    }
    let (before, after) = (graph(3), graph(4));
    let in_both: BTreeSet<String> = expected_contents(&before)
        .into_keys()
        .filter(|key| expected_contents(&after).contains_key(key))
        .collect();
    assert!(!in_both.is_empty());
    let mut writes = 0;
    loop {
        target.open().await.publish(&before).await.unwrap();
        let history = target.states(before.scope()).await.len();
        target.fail_after(Some(writes));
        let is_complete = target.open().await.publish(&after).await.is_ok();
        target.fail_after(None);
        if is_complete {
            break;
        }

        // The next publication continues, or goes back to the previous state.
        let next = if writes % 2 == 0 { &after } else { &before };
        target.open().await.publish(next).await.unwrap();
        assert_eq!(target.read(next.scope()).await, expected_contents(next));
        let states = target.states(before.scope()).await;
        for state in &states[history..] {
            assert_closed(state);
            assert!(in_both.iter().all(|key| state.contains_key(key)), "withdrawn in {state:?}");
        }
        writes += 1;
    }
    assert!(writes > 5, "it was interrupted");
}

/// Foreign documents stay.
pub async fn keeps_foreign_documents<T: TestTarget>(target: T) {
    if !T::can(Ability::HasOtherWriters) {
        return;
    }
    let foreign =
        [("routes/manual", "m"), ("routes/.note", "n"), ("consumers/c", "c"), ("upstreams/zz", "z")];
    let web = desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]);
    let outside = scope("/p/other");
    target.write_foreign(&outside, "routes/r", Some("o")).await;
    for (key, value) in &foreign[..2] {
        target.write_foreign(web.scope(), key, Some(value)).await;
    }
    let sink = target.open().await;
    sink.publish(&web).await.unwrap();
    for (key, value) in &foreign[2..] {
        target.write_foreign(web.scope(), key, Some(value)).await;
    }
    let before = target.read(&scope("/p/web")).await;
    for state in [desired("/p/web", &[("upstreams/u", "2")]), web, Desired::empty(scope("/p/web"))] {
        sink.publish(&state).await.unwrap();
        target.open().await.publish(&state).await.unwrap();
        let held = target.read(state.scope()).await;
        for (key, value) in foreign.iter().filter(|(key, _)| before.contains_key(*key)) {
            assert_eq!(held.get(*key).map(String::as_str), Some(*value), "{key}");
        }
        let others = held.keys().filter(|key| foreign.iter().any(|(foreign, _)| foreign == key)).count();
        assert_eq!(held.len(), others + state.documents().len());
    }
    assert_eq!(target.read(&outside).await, Contents::from([("routes/r".to_owned(), "o".to_owned())]));
}

/// The next publication reverts foreign changes of its documents.
pub async fn reverts_foreign_changes_of_its_documents<T: TestTarget>(target: T) {
    if !T::can(Ability::HasOtherWriters) {
        return;
    }
    let web = desired("/p/web", &[("upstreams/u", "1"), ("services/s", "1"), ("routes/r", "1")]);
    let sink = target.open().await;
    sink.publish(&web).await.unwrap();
    for (key, value) in [("upstreams/u", Some("hacked")), ("services/s", None), ("routes/r", Some("1 "))] {
        target.write_foreign(web.scope(), key, value).await;
        // A sink with a watch may learn of the change a little later.
        tokio::time::timeout(WAIT_TIMEOUT, async {
            while target.read(web.scope()).await != expected_contents(&web) {
                sink.publish(&web).await.unwrap();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .expect("it is repaired");
    }
    for key in ["upstreams/u", "services/s"] {
        target.write_foreign(web.scope(), key, None).await;
    }
    if T::can(Ability::IsPersistent) {
        let repaired = target.open().await.publish(&web).await.unwrap();
        assert_eq!(repaired.changed.total(), 2);
        assert_eq!(target.read(web.scope()).await, expected_contents(&web));
        target.write_foreign(web.scope(), "routes/r", Some("hacked")).await;
        let gone = target.open().await.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
        assert_eq!(gone.changed.deleted, 3, "an edited document still belongs to the sink");
        assert_eq!(target.read(web.scope()).await, Contents::new());
    }
}

/// A desired document replaces a foreign one.
pub async fn takes_over_a_desired_key<T: TestTarget>(target: T) {
    if !T::can(Ability::HasOtherWriters) {
        return;
    }
    let web = desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]);
    target.write_foreign(web.scope(), "upstreams/u", Some("1")).await;
    target.write_foreign(web.scope(), "routes/r", Some("other")).await;
    let sink = target.open().await;
    assert_eq!(sink.publish(&web).await.unwrap().changed.created, 2);
    assert_eq!(target.read(web.scope()).await, expected_contents(&web));
    assert_eq!(sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap().changed.deleted, 2);
    assert_eq!(target.read(web.scope()).await, Contents::new());
}

/// A publication to a silent target fails in time, and a later one succeeds.
pub async fn fails_in_time_on_a_silent_target<T: TestTarget>(target: T) {
    if !T::can(Ability::CanStall) {
        return;
    }
    let sink = target.open().await;
    let first = sink.publish(&desired("/p/web", &[("routes/r", "1")])).await.unwrap();
    let web = desired("/p/web", &[("routes/r", "2"), ("routes/s", "1")]);
    target.stall(true);
    for _ in 0..2 {
        let answer = tokio::time::timeout(WAIT_TIMEOUT, sink.publish(&web)).await.expect("it gives up");
        assert!(answer.unwrap_err().is_retryable());
    }
    target.stall(false);
    let second = tokio::time::timeout(WAIT_TIMEOUT, async {
        loop {
            match sink.publish(&web).await {
                Ok(published) => return published,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        }
    })
    .await
    .expect("it comes back");
    assert!(second.revision > first.revision);
    assert_eq!(target.read(web.scope()).await, expected_contents(&web));
}

/// No value is in a `Debug` text or an error.
pub async fn never_shows_a_value<T: TestTarget>(target: T) {
    const SECRET: &str = "-----BEGIN PRIVATE KEY-----";
    let sink = target.open().await;
    let web = desired("/p/web", &[("ssls/s", SECRET), ("routes/r", SECRET)]);
    let published = sink.publish(&web).await.unwrap();
    assert!(!format!("{sink:?} {published:?}").contains("BEGIN"));
    if T::can(Ability::CanFail) {
        target.fail_after(Some(0));
        let error = sink.publish(&desired("/p/web", &[("ssls/t", SECRET)])).await.unwrap_err();
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            assert!(!format!("{error} {error:?}").contains("BEGIN"));
            cause = error.source();
        }
    }
}
