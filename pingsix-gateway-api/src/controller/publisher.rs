//! Publications to targets, outside of the engine's task.
//!
//! A target may be slow or silent, so each target of each data plane has its own lane. A lane has at most one running
//! publication and one waiting publication. A newer publication replaces the waiting one. A stuck lane delays no other
//! lane. A publication has ended when it has ended in all lanes.
//!
//! [`Publisher::submit`] completes an immediate publication, such as one to the embedded server, before it returns,
//! without a task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt as _;
use pingsix_sink::{Desired, Published, SinkError};
use pingsix_translate::DataPlaneKey;
use tokio::task::{JoinError, JoinSet};
use tracing::{Instrument as _, Span, info_span};

use super::SinkRouter;
use super::sinks_failed::joined;
use crate::reconcile::Publication;

/// The number of a publication of a data plane; a newer one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// The outcome or the progress of a publication.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) data_plane: DataPlaneKey,
    pub(super) ticket: Ticket,
    /// The targets that have the documents or will never accept them.
    pub(super) settled: BTreeSet<usize>,
    pub(super) stage: Stage,
}

/// The progress of a publication.
#[derive(Debug)]
pub(super) enum Stage {
    /// The target that the data plane reads from has the documents; another target lacks them.
    Primary(Published),
    /// Another target has the documents; the target that the data plane reads from lacks them.
    Secondary,
    /// One target has failed, and another one has not ended.
    Failing {
        /// The error.
        why: String,
        /// Whether a retry may succeed.
        is_retryable: bool,
    },
    /// The publication has ended.
    Ended(Result<Published, SinkError>),
}

/// Publishes the newest documents to each target of each data plane, one publication at a time.
pub(super) struct Publisher {
    sinks: Arc<SinkRouter>,
    /// The lanes with a running publication.
    lanes: BTreeMap<LaneKey, Lane>,
    running: JoinSet<LaneResult>,
    /// The newest publication of each data plane that has not ended.
    unfinished: BTreeMap<DataPlaneKey, UnfinishedPublication>,
    submitted: u64,
}

/// A data plane, and the index of one of its [targets](SinkRouter::targets).
type LaneKey = (DataPlaneKey, usize);

#[derive(Debug, Default)]
struct Lane {
    next: Option<QueuedPublication>,
}

/// A publication for one target that has not begun.
#[derive(Debug)]
struct QueuedPublication {
    ticket: Ticket,
    desired: Desired,
    /// The parent span.
    cause: Span,
}

/// The result of a publication at one target.
#[derive(Debug)]
struct LaneResult {
    lane: LaneKey,
    ticket: Ticket,
    result: Result<Published, SinkError>,
}

/// A publication that is still running at some target.
#[derive(Debug)]
struct UnfinishedPublication {
    ticket: Ticket,
    /// The results by target.
    results: BTreeMap<usize, Option<Result<Published, SinkError>>>,
}

impl Publisher {
    pub(super) fn new(sinks: Arc<SinkRouter>) -> Self {
        Self {
            sinks,
            lanes: BTreeMap::new(),
            running: JoinSet::new(),
            unfinished: BTreeMap::new(),
            submitted: 0,
        }
    }

    /// Publishes documents at each target, after the running publication of the same lane, and in the place of the
    /// waiting one. Each publication ends with an [`Attempt`] that carries its ticket, unless a newer one replaces
    /// it. Attempts of immediate publications are returned; all others come from [`ended`](Self::ended). Attempts
    /// that report progress come likewise.
    pub(super) fn submit(&mut self, publication: Publication) -> (Ticket, Vec<Attempt>) {
        let Publication { data_plane, desired } = publication;
        self.submitted += 1;
        let ticket = Ticket(self.submitted);
        let targets = self.sinks.targets(desired.scope());
        // Leadership may have changed since the lookup; then the first target reports the error.
        let targets = if targets.is_empty() { vec![0] } else { targets };
        let results = targets.iter().map(|target| (*target, None)).collect();
        self.unfinished.insert(data_plane.clone(), UnfinishedPublication { ticket, results });
        let mut attempts = Vec::new();
        for target in targets {
            let lane = (data_plane.clone(), target);
            let queued = QueuedPublication { ticket, desired: desired.clone(), cause: Span::current() };
            if let Some(result) = self.begin(lane, queued) {
                let attempt = self.record_result(result);
                if matches!(attempt, Some(Attempt { stage: Stage::Ended(_), .. })) {
                    // The newest attempt contains the earlier ones.
                    attempts.clear();
                }
                attempts.extend(attempt);
            }
        }
        (ticket, attempts)
    }

    /// Begins a publication at one target. Returns its result if it is immediate.
    fn begin(&mut self, lane: LaneKey, queued: QueuedPublication) -> Option<LaneResult> {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.next = Some(queued);
            return None;
        }
        let mut attempt = Box::pin(self.attempt(lane.clone(), queued));
        // A poll outside of the task is safe: a task polls its future when it starts, and registers its own waker.
        let result = attempt.as_mut().now_or_never();
        if result.is_none() {
            self.lanes.insert(lane, Lane::default());
            self.running.spawn(attempt);
        }
        result
    }

    /// Records the result of a target. Returns the attempt to report.
    fn record_result(&mut self, result: LaneResult) -> Option<Attempt> {
        let LaneResult { lane: (data_plane, target), ticket, result } = result;
        let publication =
            self.unfinished.get_mut(&data_plane).filter(|publication| publication.ticket == ticket);
        let Some(publication) = publication else {
            // A newer publication exists. The end of this one matters to counters and to waiting callers alone.
            let settled = is_settled(&result).then_some(target).into_iter().collect();
            return Some(Attempt { data_plane, ticket, settled, stage: Stage::Ended(result) });
        };
        let stage = match &result {
            Ok(published) if target == 0 => Stage::Primary(*published),
            Ok(_) => Stage::Secondary,
            Err(error) => Stage::Failing { why: error.to_string(), is_retryable: error.is_retryable() },
        };
        publication.results.insert(target, Some(result));
        let results = publication.results.iter();
        let settled = results.filter(|(_, result)| result.as_ref().is_some_and(is_settled));
        let settled = settled.map(|(target, _)| *target).collect();
        if publication.results.values().any(Option::is_none) {
            return Some(Attempt { data_plane, ticket, settled, stage });
        }
        let results =
            self.unfinished.remove(&data_plane).map(|publication| publication.results).unwrap_or_default();
        let stage = Stage::Ended(joined(results.into_values().flatten())?);
        Some(Attempt { data_plane, ticket, settled, stage })
    }

    /// Waits for the end of a publication, or for ever if no publication runs. Cancel safe.
    ///
    /// # Errors
    ///
    /// A publication panicked.
    pub(super) async fn ended(&mut self) -> Result<Attempt, JoinError> {
        loop {
            let Some(result) = self.running.join_next().await else {
                return std::future::pending().await;
            };
            let result = result?;
            match self.lanes.get_mut(&result.lane).and_then(|lane| lane.next.take()) {
                Some(queued) => {
                    let attempt = self.attempt(result.lane.clone(), queued);
                    self.running.spawn(attempt);
                }
                None => {
                    self.lanes.remove(&result.lane);
                }
            }
            if let Some(attempt) = self.record_result(result) {
                return Ok(attempt);
            }
        }
    }

    /// Data planes with an unfinished publication.
    pub(super) fn pending(&self) -> impl Iterator<Item = &DataPlaneKey> {
        let mut last = None;
        self.lanes.keys().map(|(data_plane, _)| data_plane).filter(move |data_plane| {
            let is_other = last != Some(*data_plane);
            last = Some(*data_plane);
            is_other
        })
    }

    fn attempt(
        &self,
        lane: LaneKey,
        queued: QueuedPublication,
    ) -> impl Future<Output = LaneResult> + Send + use<> {
        let QueuedPublication { ticket, desired, cause } = queued;
        let sinks = Arc::clone(&self.sinks);
        let span =
            info_span!(parent: cause, "publish", data_plane = %lane.0, documents = desired.documents().len());
        async move {
            let result = sinks.publish_to(lane.1, &desired).await;
            LaneResult { lane, ticket, result }
        }
        .instrument(span)
    }
}

/// Whether the publication has ended.
fn is_settled(result: &Result<Published, SinkError>) -> bool {
    result.as_ref().err().is_none_or(|error| !error.is_retryable())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pingsix_sink::{Document, DocumentSet, Key, OrderHint, Owner, Scope};
    use pingsix_translate::ObjectName;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::controller::slow_feed::{Fate, SlowFeed, feeds};

    const SLOW_PUBLICATION: Duration = Duration::from_secs(5);

    fn plane(name: &str) -> DataPlaneKey {
        DataPlaneKey::Gateway { gateway: ObjectName::new("infra", name), port: None }
    }

    /// A publication of this many documents.
    fn publication(name: &str, documents: usize) -> Publication {
        let document = |index| Document {
            key: Key::new(format!("routes/{index}")).unwrap(),
            value: "{}".into(),
            order: OrderHint(0),
            owner: Owner::new(name),
        };
        let documents = DocumentSet::new((0..documents).map(document)).unwrap();
        let data_plane = plane(name);
        let scope = Scope::new(data_plane.prefix("/pingsix")).unwrap();
        Publication { data_plane, desired: Desired::new(scope, documents) }
    }

    fn publisher(fates: &[(&str, Fate)]) -> (Publisher, Arc<SlowFeed>) {
        let feed = Arc::<SlowFeed>::default();
        for (name, fate) in fates {
            feed.fate(&plane(name).prefix("/pingsix"), *fate);
        }
        (Publisher::new(Arc::new(Arc::clone(&feed).into())), feed)
    }

    fn publisher_to<const COUNT: usize>() -> (Publisher, [Arc<SlowFeed>; COUNT]) {
        let (router, feeds) = feeds();
        (Publisher::new(Arc::new(router)), feeds)
    }

    /// Begins a slow publication.
    fn submit(publisher: &mut Publisher, name: &str, documents: usize) -> Ticket {
        let (ticket, attempts) = publisher.submit(publication(name, documents));
        assert!(attempts.is_empty(), "{attempts:?}");
        ticket
    }

    /// Begins a publication that is immediate at the first target alone.
    fn submit_partly(publisher: &mut Publisher, documents: usize) -> Ticket {
        let (ticket, attempts) = publisher.submit(publication("web", documents));
        let [Attempt { stage: Stage::Primary(_), ticket: of, .. }] = &attempts[..] else {
            panic!("{attempts:?}")
        };
        assert_eq!(*of, ticket);
        ticket
    }

    async fn ended(publisher: &mut Publisher) -> (DataPlaneKey, Ticket, bool) {
        loop {
            let attempt = publisher.ended().await.unwrap();
            if !matches!(attempt.stage, Stage::Secondary) {
                return (attempt.data_plane, attempt.ticket, matches!(attempt.stage, Stage::Ended(Ok(_))));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_immediate_publication_ends_at_once() {
        let (mut publisher, _feed) = publisher(&[]);
        for documents in [2, 3] {
            let (ticket, mut attempts) = publisher.submit(publication("web", documents));
            let attempt = attempts.remove(0);
            assert_eq!((attempt.data_plane, attempt.ticket, attempts.len()), (plane("web"), ticket, 0));
            let Stage::Ended(Ok(outcome)) = attempt.stage else { panic!("{:?}", attempt.stage) };
            assert_eq!(outcome.changed.created, if documents == 2 { 2 } else { 1 });
        }
        assert_eq!(publisher.pending().count(), 0);
        assert!(timeout(SLOW_PUBLICATION, publisher.ended()).await.is_err(), "there is nothing to wait for");
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_is_published_after_the_one_under_way_and_none_between() {
        let (mut publisher, feed) = publisher(&[("web", Fate::Slow(SLOW_PUBLICATION))]);
        let first = submit(&mut publisher, "web", 1);
        tokio::task::yield_now().await;
        submit(&mut publisher, "web", 2);
        submit(&mut publisher, "web", 3);
        let last = submit(&mut publisher, "web", 4);
        let from = Instant::now();
        assert_eq!(ended(&mut publisher).await, (plane("web"), first, true));
        assert_eq!(ended(&mut publisher).await, (plane("web"), last, true));
        assert_eq!(from.elapsed(), SLOW_PUBLICATION * 2);
        assert_eq!(publisher.pending().count(), 0);
        let begun: Vec<usize> = feed.begun().into_iter().map(|(_, documents)| documents).collect();
        assert_eq!(begun, [1, 4]);
        assert_eq!(feed.held("/pingsix/infra/web"), Some(4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_stuck_or_failing_data_plane_delays_no_other() {
        let fates = [
            ("slow", Fate::Slow(SLOW_PUBLICATION)),
            ("stuck", Fate::Stuck),
            ("failing", Fate::Failing(SLOW_PUBLICATION / 2)),
        ];
        let (mut publisher, _feed) = publisher(&fates);
        let [slow, _, failing] = fates.map(|(name, _)| submit(&mut publisher, name, 1));
        let from = Instant::now();
        let quick = publisher.submit(publication("quick", 1)).1;
        assert!(matches!(quick[..], [Attempt { stage: Stage::Ended(Ok(_)), .. }]), "{quick:?}");
        assert_eq!(from.elapsed(), Duration::ZERO);
        assert_eq!(ended(&mut publisher).await, (plane("failing"), failing, false));
        assert_eq!(ended(&mut publisher).await, (plane("slow"), slow, true));
        assert_eq!(publisher.submit(publication("quick", 2)).1.len(), 1);
        assert!(timeout(SLOW_PUBLICATION, publisher.ended()).await.is_err());
        assert_eq!(publisher.pending().collect::<Vec<_>>(), [&plane("stuck")]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_that_is_stuck_keeps_the_others_of_its_data_plane_from_nothing() {
        let (mut publisher, feeds) = publisher_to::<3>();
        feeds[1].fate("/pingsix/infra/web", Fate::Stuck);
        for documents in 1..4 {
            let (ticket, attempts) = publisher.submit(publication("web", documents));
            let [
                Attempt { stage: Stage::Primary(outcome), .. },
                Attempt { stage: Stage::Secondary, settled, .. },
            ] = &attempts[..]
            else {
                panic!("{attempts:?}")
            };
            assert_eq!((attempts[1].ticket, outcome.changed.created), (ticket, 1));
            assert_eq!(*settled, BTreeSet::from([0, 2]));
            for (target, held) in [(0, Some(documents)), (1, None), (2, Some(documents))] {
                assert_eq!(feeds[target].held("/pingsix/infra/web"), held);
            }
        }
        assert!(timeout(SLOW_PUBLICATION, publisher.ended()).await.is_err(), "it has not ended everywhere");
        assert_eq!(publisher.pending().collect::<Vec<_>>(), [&plane("web")]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_that_fails_is_told_of_while_another_one_is_stuck() {
        let (mut publisher, [read, stuck]) = publisher_to();
        read.fate("/pingsix/infra/web", Fate::Failing(SLOW_PUBLICATION));
        stuck.fate("/pingsix/infra/web", Fate::Stuck);
        for documents in 1..4 {
            let ticket = submit(&mut publisher, "web", documents);
            let attempt = publisher.ended().await.unwrap();
            assert_eq!(attempt.ticket, ticket);
            assert!(matches!(attempt.stage, Stage::Failing { is_retryable: true, .. }), "{attempt:?}");
        }
        read.fate("/pingsix/infra/web", Fate::Quick);
        submit_partly(&mut publisher, 4);
        assert_eq!(read.held("/pingsix/infra/web"), Some(4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_publication_ends_at_its_last_target_and_slow_ones_get_the_newest() {
        let (mut publisher, [_read, slow, failing]) = publisher_to();
        slow.fate("/pingsix/infra/web", Fate::Slow(SLOW_PUBLICATION));
        failing.fate("/pingsix/infra/web", Fate::Failing(SLOW_PUBLICATION * 3));
        let first = submit_partly(&mut publisher, 1);
        tokio::task::yield_now().await;
        submit_partly(&mut publisher, 2);
        let last = submit_partly(&mut publisher, 3);
        let from = Instant::now();
        // An outdated publication reports its end, and does not count for the newest one.
        assert_eq!(ended(&mut publisher).await, (plane("web"), first, true));
        assert_eq!(ended(&mut publisher).await, (plane("web"), first, false));
        assert_eq!((slow.held("/pingsix/infra/web"), from.elapsed()), (Some(3), SLOW_PUBLICATION * 3));
        let attempt = publisher.ended().await.unwrap();
        assert_eq!((attempt.ticket, from.elapsed()), (last, SLOW_PUBLICATION * 6));
        assert_eq!(attempt.settled, BTreeSet::from([0, 1]), "the last may still take it");
        let Stage::Ended(Err(error)) = attempt.stage else { panic!("{:?}", attempt.stage) };
        assert!(error.to_string().contains("the target failed"));
        let begun: Vec<usize> = slow.begun().into_iter().map(|(_, held)| held).collect();
        assert_eq!(begun, [1, 3], "none between");
        assert_eq!(publisher.pending().count(), 0);
        assert!(publisher.unfinished.is_empty() && publisher.lanes.is_empty());
    }
}
