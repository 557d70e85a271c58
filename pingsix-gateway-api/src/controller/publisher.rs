//! Publications, beside the task that owns the picture.
//!
//! A target may take its time, or not answer at all. So each data plane has a lane of its own: at most one publication of
//! it is under way, and at most one waits behind that, which is the newest; what came between is not worth publishing any
//! more. A lane that is stuck keeps no other one waiting, as long as there is [room](Feed::concurrency).
//!
//! What a target takes at once (the embedded server does) is published before [`Publisher::submit`] returns, without the
//! detour of a task.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::FutureExt as _;
use pingsix_sink::{Desired, Published, SinkError};
use pingsix_translate::DataPlaneKey;
use tokio::task::{JoinError, JoinSet};
use tracing::{Instrument as _, info_span};

use super::Feed;
use crate::reconcile::Publication;

/// Which of the publications of a data plane: the newer, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// How a publication ended.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) data_plane: DataPlaneKey,
    pub(super) ticket: Ticket,
    pub(super) result: Result<Published, SinkError>,
}

/// Publishes, one after the other for each data plane and the newest only.
pub(super) struct Publisher<F> {
    feed: Arc<F>,
    /// Data planes of which a publication is under way, or waits for room.
    lanes: BTreeMap<DataPlaneKey, Lane>,
    /// Those that wait for room, the longest waiting first.
    waiting: VecDeque<DataPlaneKey>,
    running: JoinSet<Attempt>,
    submitted: u64,
}

#[derive(Debug, Default)]
struct Lane {
    next: Option<(Ticket, Desired)>,
}

impl<F: Feed + 'static> Publisher<F> {
    pub(super) fn new(feed: Arc<F>) -> Self {
        Self { feed, lanes: BTreeMap::new(), waiting: VecDeque::new(), running: JoinSet::new(), submitted: 0 }
    }

    /// Has something published, as soon as what is under way for the same data plane has ended. It takes the place of
    /// what waits for that. An [`Attempt`] with the ticket tells how it ended, unless a newer one takes its place: here
    /// when it has ended already, from [`ended`](Self::ended) otherwise.
    pub(super) fn submit(&mut self, publication: Publication) -> (Ticket, Option<Attempt>) {
        let Publication { data_plane, desired } = publication;
        self.submitted += 1;
        let ticket = Ticket(self.submitted);
        if let Some(lane) = self.lanes.get_mut(&data_plane) {
            lane.next = Some((ticket, desired));
        } else if self.has_room() {
            let mut attempt = Box::pin(self.attempt(data_plane.clone(), ticket, desired));
            // Whatever it waits for wakes the task that it goes on in: a task looks at its future when it starts.
            if let Some(made) = attempt.as_mut().now_or_never() {
                return (ticket, Some(made));
            }
            self.lanes.insert(data_plane, Lane::default());
            self.running.spawn(attempt);
        } else {
            self.waiting.push_back(data_plane.clone());
            self.lanes.insert(data_plane, Lane { next: Some((ticket, desired)) });
        }
        (ticket, None)
    }

    /// Waits for the end of a publication, for ever when none is under way. Nothing is lost when this is dropped.
    ///
    /// # Errors
    ///
    /// A publication panicked.
    pub(super) async fn ended(&mut self) -> Result<Attempt, JoinError> {
        let Some(attempt) = self.running.join_next().await else {
            return std::future::pending().await;
        };
        let attempt = attempt?;
        match self.lanes.get(&attempt.data_plane) {
            Some(lane) if lane.next.is_some() => self.waiting.push_back(attempt.data_plane.clone()),
            Some(_) | None => {
                self.lanes.remove(&attempt.data_plane);
            }
        }
        while self.has_room()
            && let Some(data_plane) = self.waiting.pop_front()
        {
            let next = self.lanes.get_mut(&data_plane).and_then(|lane| lane.next.take());
            if let Some((ticket, desired)) = next {
                let attempt = self.attempt(data_plane, ticket, desired);
                self.running.spawn(attempt);
            }
        }
        Ok(attempt)
    }

    /// Data planes of which something is not published yet.
    pub(super) fn pending(&self) -> impl Iterator<Item = &DataPlaneKey> {
        self.lanes.keys()
    }

    fn has_room(&self) -> bool {
        self.running.len() < self.feed.concurrency().max(1)
    }

    fn attempt(
        &self,
        data_plane: DataPlaneKey,
        ticket: Ticket,
        desired: Desired,
    ) -> impl Future<Output = Attempt> + Send + use<F> {
        let feed = Arc::clone(&self.feed);
        let span = info_span!("publish", %data_plane, documents = desired.documents().len());
        async move {
            let result = feed.publish(&desired).await;
            Attempt { data_plane, ticket, result }
        }
        .instrument(span)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pingsix_sink::{Document, DocumentSet, Key, OrderHint, Owner, Scope};
    use pingsix_translate::ObjectName;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::controller::slow_feed::{Fate, SlowFeed};

    const SLOW: Duration = Duration::from_secs(5);

    fn plane(name: &str) -> DataPlaneKey {
        DataPlaneKey::Gateway { gateway: ObjectName::new("infra", name), port: None }
    }

    /// With so many documents.
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

    fn publisher(feed: SlowFeed, fates: &[(&str, Fate)]) -> Publisher<SlowFeed> {
        for (name, fate) in fates {
            feed.fate(&plane(name).prefix("/pingsix"), *fate);
        }
        Publisher::new(Arc::new(feed))
    }

    /// Has something published that takes a while.
    fn submit(publisher: &mut Publisher<SlowFeed>, name: &str, documents: usize) -> Ticket {
        let (ticket, attempt) = publisher.submit(publication(name, documents));
        assert!(attempt.is_none(), "{attempt:?}");
        ticket
    }

    async fn ended(publisher: &mut Publisher<SlowFeed>) -> (DataPlaneKey, Ticket, bool) {
        let attempt = publisher.ended().await.unwrap();
        (attempt.data_plane, attempt.ticket, attempt.result.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_quick_is_published_at_once_and_nothing_is_left_of_it() {
        let mut publisher = publisher(SlowFeed::default(), &[]);
        for documents in [2, 3] {
            let (ticket, attempt) = publisher.submit(publication("web", documents));
            let attempt = attempt.unwrap();
            assert_eq!((attempt.data_plane, attempt.ticket), (plane("web"), ticket));
            assert_eq!(attempt.result.unwrap().changed.created, if documents == 2 { 2 } else { 1 });
        }
        assert_eq!(publisher.pending().count(), 0);
        assert!(timeout(SLOW, publisher.ended()).await.is_err(), "there is nothing to wait for");
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_is_published_after_the_one_under_way_and_none_between() {
        let mut publisher = publisher(SlowFeed::default(), &[("web", Fate::Slow(SLOW))]);
        let first = submit(&mut publisher, "web", 1);
        tokio::task::yield_now().await;
        submit(&mut publisher, "web", 2);
        submit(&mut publisher, "web", 3);
        let last = submit(&mut publisher, "web", 4);
        let from = Instant::now();
        assert_eq!(ended(&mut publisher).await, (plane("web"), first, true));
        assert_eq!(ended(&mut publisher).await, (plane("web"), last, true));
        assert_eq!(from.elapsed(), SLOW * 2);
        assert_eq!(publisher.pending().count(), 0);
        let begun: Vec<usize> = publisher.feed.begun().into_iter().map(|(_, documents)| documents).collect();
        assert_eq!(begun, [1, 4]);
        assert_eq!(publisher.feed.held("/pingsix/infra/web"), Some(4));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_slow_stuck_or_fails_keeps_nobody_waiting() {
        let fates =
            [("slow", Fate::Slow(SLOW)), ("stuck", Fate::Stuck), ("failing", Fate::Failing(SLOW / 2))];
        let mut publisher = publisher(SlowFeed::default(), &fates);
        let [slow, _, failing] = fates.map(|(name, _)| submit(&mut publisher, name, 1));
        let from = Instant::now();
        assert!(publisher.submit(publication("quick", 1)).1.is_some_and(|attempt| attempt.result.is_ok()));
        assert_eq!(from.elapsed(), Duration::ZERO);
        assert_eq!(ended(&mut publisher).await, (plane("failing"), failing, false));
        assert_eq!(ended(&mut publisher).await, (plane("slow"), slow, true));
        assert!(publisher.submit(publication("quick", 2)).1.is_some());
        assert!(timeout(SLOW, publisher.ended()).await.is_err());
        assert_eq!(publisher.pending().collect::<Vec<_>>(), [&plane("stuck")]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_under_way_than_there_is_room_for_and_all_get_their_turn() {
        let feed = SlowFeed { concurrency: Some(2), ..SlowFeed::default() };
        let names = ["a", "b", "c", "d", "e"];
        let mut publisher = publisher(feed, &names.map(|name| (name, Fate::Slow(SLOW))));
        for name in names {
            submit(&mut publisher, name, 1);
        }
        // One that changes all the time does not push the others back, and is pushed back by nobody.
        submit(&mut publisher, "a", 2);
        submit(&mut publisher, "e", 2);
        let (mut order, from) = (Vec::new(), Instant::now());
        while publisher.pending().next().is_some() {
            assert!(publisher.running.len() <= 2);
            order.push(ended(&mut publisher).await.0.to_string());
        }
        order[..2].sort();
        order[2..4].sort();
        order[4..].sort();
        assert_eq!(order, ["infra/a", "infra/b", "infra/c", "infra/d", "infra/a", "infra/e"]);
        assert_eq!(from.elapsed(), SLOW * 3);
        assert_eq!(publisher.feed.held("/pingsix/infra/e"), Some(2), "it was replaced while it waited");
    }
}
