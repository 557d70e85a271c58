//! Polls the status pages of PingSIX instances.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use pingsix_sink::backoff::doubled;
use pingsix_translate::DataPlaneKey;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, sleep};

use super::poll_targets::{PageKey, PollTarget, StatusPages, TargetsByOwner};
use super::request_limits::{RequestLimits, RequestSemaphores};
use super::tasks::Tasks;
use crate::delivery::Instances;
use crate::delivery::status_page::{
    InstancePages, PageError, StatusClient, StatusPage, StatusPageError, StatusUrl,
};

/// The interval of polls while a confirmation is pending.
const FAST_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The interval of the first polls while a change waits for the confirmation of an earlier one.
const HURRIED_POLL_INTERVAL: Duration = Duration::from_millis(4);

/// The interval of polls while a confirmation is pending for a long time. An unreachable instance, or an instance of
/// another replica, may never confirm.
const SLOW_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The interval of polls is the time since the publication, divided by this number.
const POLLS_PER_WAIT: u32 = 10;

/// The interval of polls after all confirmations.
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(10);

/// The poll results of a data plane.
pub(super) type Pages = (DataPlaneKey, Instances);

/// Polls the status pages at every replica: the leader reports publications, and each replica searches for refusals of
/// its own readers. Each data plane has its own interval, so a silent instance delays only its own data plane, and is
/// polled less and less often. [`RequestLimits`] limits concurrent requests. The pages may change at any time.
pub(super) fn start(
    targets: watch::Receiver<TargetsByOwner>,
    client: &StatusClient,
    tasks: &mut Tasks,
) -> mpsc::Receiver<Pages> {
    let (answers, receiver) = mpsc::channel(16);
    let (client, for_strangers) = (client.clone(), StatusClient::for_strangers());
    let polls = Polls { client, for_strangers, limits: RequestLimits::default(), answers };
    tasks.spawn(polls.follow(targets));
    receiver
}

/// One poll for each data plane.
struct Polls {
    client: StatusClient,
    for_strangers: StatusClient,
    limits: RequestLimits,
    answers: mpsc::Sender<Pages>,
}

impl Polls {
    /// Runs with its polls until it is dropped.
    async fn follow(mut self, mut targets: watch::Receiver<TargetsByOwner>) {
        let mut tasks: JoinSet<()> = JoinSet::new();
        let mut running: BTreeMap<DataPlaneKey, (PollTarget, AbortHandle)> = BTreeMap::new();
        loop {
            let wanted: BTreeMap<DataPlaneKey, PollTarget> = {
                let targets = targets.borrow_and_update();
                targets.values().flatten().map(|(plane, target)| (plane.clone(), target.clone())).collect()
            };
            running.retain(|data_plane, (target, poll)| {
                let stays = wanted.get(data_plane).is_some_and(|wanted| wanted.is(target));
                if !stays {
                    poll.abort();
                }
                stays
            });
            for (data_plane, target) in wanted {
                if let Entry::Vacant(place) = running.entry(data_plane) {
                    let poll = tasks.spawn(self.poll(place.key().clone(), target.clone()).run());
                    place.insert((target, poll));
                }
            }
            tokio::select! {
                changed = targets.changed() => if changed.is_err() {
                    // The pages stay as they are.
                    while let Some(ended) = tasks.join_next().await { resume_panic(ended) }
                    return;
                },
                Some(ended) = tasks.join_next() => resume_panic(ended),
            }
        }
    }

    fn poll(&mut self, data_plane: DataPlaneKey, target: PollTarget) -> Poll {
        let PollTarget { pages: StatusPages { urls, coming, key }, published } = target;
        let owner = data_plane.owner();
        let (client, semaphores, shows_cause) = match key {
            PageKey::None => (self.for_strangers.clone(), self.limits.of(&owner), false),
            PageKey::OfOptions => (self.client.clone(), self.limits.of_administrators(&owner), true),
            PageKey::Own(key) => (self.client.with_key(key.to_header()), self.limits.of(&owner), true),
        };
        let options = PollOptions { client, semaphores, shows_cause };
        let answers = self.answers.clone();
        Poll { data_plane, urls, coming, options, results: BTreeMap::new(), published, answers }
    }
}

/// The options of requests to status pages.
struct PollOptions {
    client: StatusClient,
    semaphores: RequestSemaphores,
    /// Whether errors contain the cause.
    shows_cause: bool,
}

impl PollOptions {
    async fn read(&self, url: &StatusUrl) -> Result<StatusPage, PageError> {
        let _permits = self.semaphores.take().await;
        let read = self.client.read(url).await;
        read.map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &StatusPageError) -> PageError {
        if self.shows_cause { PageError::Shown(error.to_string()) } else { PageError::Withheld }
    }
}

/// The last result of an instance.
struct InstanceState {
    page: Result<StatusPage, PageError>,
    /// The number of failures in a row.
    failures: u32,
    /// The earliest time of the next poll.
    due: Instant,
}

/// Passes on the panic of a poll.
fn resume_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// Polls the instances of one data plane.
struct Poll {
    data_plane: DataPlaneKey,
    urls: BTreeSet<StatusUrl>,
    coming: BTreeSet<StatusUrl>,
    options: PollOptions,
    results: BTreeMap<StatusUrl, InstanceState>,
    published: watch::Receiver<Option<i64>>,
    answers: mpsc::Sender<Pages>,
}

impl Poll {
    /// Runs until the senders of revisions, or the receiver of results, are dropped.
    async fn run(mut self) {
        // The awaited revision, and the time since when.
        let mut awaited: Option<(Option<i64>, Instant)> = None;
        // A revision whose confirmation later changes wait for.
        let mut overtaken: Option<i64> = None;
        loop {
            let Ok(revision) = self.published.wait_for(Option::is_some).await.map(|revision| *revision)
            else {
                return;
            };
            overtaken = overtaken.or_else(|| awaited.filter(|(last, _)| *last != revision)?.0);
            self.ask().await;
            let counts = |url: &StatusUrl, page: &Result<StatusPage, PageError>| {
                self.urls.contains(url) || page.as_ref().is_ok_and(|page| page.refusal().is_some())
            };
            let results = self.results.iter().filter(|(url, result)| counts(url, &result.page));
            let read: InstancePages =
                results.map(|(url, result)| (url.clone(), result.page.clone())).collect();
            let is_behind = |page: &StatusPage| Some(page.published_revision) < revision;
            let (now, is_confirmed) =
                (Instant::now(), read.values().all(|page| page.as_ref().is_ok_and(|page| !is_behind(page))));
            let since = awaited.filter(|(last, _)| *last == revision).map_or(now, |(_, since)| since);
            awaited = (!is_confirmed).then_some((revision, since));
            let confirms = |page: &StatusPage| Some(page.published_revision) >= overtaken;
            if read.values().flatten().all(confirms) {
                overtaken = None;
            }
            let pause = if read.values().flatten().any(is_behind) {
                poll_interval(now - since, overtaken.is_some())
            } else {
                // Only unreadable pages are awaited.
                let failed = self.results.values().filter(|result| result.failures > 0);
                failed.map(|result| result.due - now).fold(IDLE_POLL_INTERVAL, Duration::min)
            };
            let instances = Instances::Pages(read);
            if self.answers.send((self.data_plane.clone(), instances)).await.is_err() {
                return;
            }
            let other = self.published.wait_for(|published| *published != revision);
            tokio::select! {
                () = sleep(pause) => {}
                other = other => if other.is_err() { return },
            }
        }
    }

    /// Polls the instances that are due.
    async fn ask(&mut self) {
        let now = Instant::now();
        let is_due = |url: &&StatusUrl| self.results.get(*url).is_none_or(|result| result.due <= now);
        let due: Vec<&StatusUrl> = self.urls.union(&self.coming).filter(is_due).collect();
        let pages = join_all(due.iter().map(|url| self.options.read(url))).await;
        let now = Instant::now();
        for (url, page) in due.into_iter().cloned().zip(pages) {
            let before = self.results.get(&url).map_or(0, |result| result.failures);
            let failures = if page.is_ok() { 0 } else { before.saturating_add(1) };
            self.results.insert(url, InstanceState { page, failures, due: now + back_off(failures) });
        }
    }
}

/// The delay of the next poll after this number of failures in a row.
fn back_off(failures: u32) -> Duration {
    if failures == 0 { Duration::ZERO } else { doubled(FAST_POLL_INTERVAL, failures, IDLE_POLL_INTERVAL) }
}

/// The interval of polls after this time. While a change waits for a confirmation, polls are frequent at first.
fn poll_interval(waited: Duration, is_hurried: bool) -> Duration {
    if is_hurried && waited < FAST_POLL_INTERVAL {
        (waited / 2).max(HURRIED_POLL_INTERVAL)
    } else {
        (waited / POLLS_PER_WAIT).clamp(FAST_POLL_INTERVAL, SLOW_POLL_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

    use axum::Router;
    use axum::routing::get;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use pingsix_sink::Revision;

    use super::super::poll_targets::{PagesByPlane, PollTargets};
    use super::super::request_limits::MAX_REQUESTS_PER_NAMESPACE;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::operations::server::serve;

    /// An instance that is at a revision.
    #[derive(Clone, Default)]
    struct Instance {
        revision: Arc<AtomicI64>,
        asked: Arc<AtomicUsize>,
    }

    impl Instance {
        async fn start(&self, stop: &CancellationToken) -> StatusUrl {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let this = self.clone();
            let page = async move || {
                this.asked.fetch_add(1, Ordering::Relaxed);
                format!("{{\"published_revision\": {}}}", this.revision.load(Ordering::Relaxed))
            };
            let router = Router::new().route("/status/config", get(page));
            tokio::spawn(serve("test", listener, router, stop.clone()));
            format!("http://{address}").parse().unwrap()
        }
    }

    fn plane(name: &str) -> DataPlaneKey {
        DataPlaneKey::Gateway { gateway: pingsix_translate::ObjectName::new("infra", name), port: None }
    }

    /// Has the instances of a Gateway asked.
    fn ask(targets: &mut PollTargets, name: &str, asked: StatusPages) {
        targets.set(&plane(name).owner(), PagesByPlane::from([(plane(name), asked)]));
    }

    fn publish(targets: &PollTargets, name: &str, revision: i64) {
        targets.publish(&plane(name), Revision::new(revision).unwrap());
    }

    fn pages(urls: impl IntoIterator<Item = StatusUrl>) -> StatusPages {
        StatusPages::of_options(urls.into_iter().collect())
    }

    #[tokio::test]
    async fn pages_come_and_go_while_it_runs() {
        let stop = CancellationToken::new();
        let _ends = stop.clone().drop_guard();
        let (one, other) = (Instance::default(), Instance::default());
        let (one_url, other_url) = (one.start(&stop).await, other.start(&stop).await);
        let mut targets = PollTargets::default();
        let mut tasks = Tasks::new(&stop);
        let mut answers = start(targets.subscribe(), &StatusClient::new(None), &mut tasks);
        for (url, instance, before) in [(&one_url, &one, &other), (&other_url, &other, &one)] {
            let asked_before = before.asked.load(Ordering::Relaxed);
            ask(&mut targets, "a", pages([url.clone()]));
            publish(&targets, "a", 1);
            timeout(Duration::from_secs(10), async {
                loop {
                    let (_, answer) = answers.recv().await.unwrap();
                    let Instances::Pages(answer) = answer else { panic!("pages were asked") };
                    if answer.contains_key(url) {
                        return;
                    }
                }
            })
            .await
            .unwrap();
            assert!(instance.asked.load(Ordering::Relaxed) > 0);
            // At most the question that was under way.
            assert!(before.asked.load(Ordering::Relaxed) <= asked_before + 1);
        }
        targets.set(&plane("a").owner(), PagesByPlane::new());
        sleep(FAST_POLL_INTERVAL).await;
        let count = other.asked.load(Ordering::Relaxed);
        sleep(FAST_POLL_INTERVAL * 4).await;
        assert_eq!(other.asked.load(Ordering::Relaxed), count, "nobody is asked any more");
        stop.cancel();
        tasks.all_ended().await.unwrap();
    }

    #[test]
    fn an_instance_that_never_confirms_is_asked_less_often() {
        let seconds = |seconds: u64| Duration::from_secs(seconds);
        for is_hurried in [false, true] {
            assert_eq!(poll_interval(seconds(2), is_hurried), FAST_POLL_INTERVAL);
            assert_eq!(poll_interval(seconds(10), is_hurried), seconds(1));
            assert_eq!(poll_interval(seconds(3_600), is_hurried), SLOW_POLL_INTERVAL);
        }
        assert_eq!(poll_interval(Duration::ZERO, false), FAST_POLL_INTERVAL);
        assert_eq!(poll_interval(Duration::ZERO, true), HURRIED_POLL_INTERVAL);
        assert_eq!(poll_interval(Duration::from_millis(40), true), Duration::from_millis(20));
    }

    #[tokio::test]
    async fn instances_that_serve_nothing_yet_need_not_confirm() {
        let stop = CancellationToken::new();
        let _ends = stop.clone().drop_guard();
        let (old, new) = (Instance::default(), Instance::default());
        old.revision.store(7, Ordering::Relaxed);
        let (old_url, new_url) = (old.start(&stop).await, new.start(&stop).await);
        let mut targets = PollTargets::default();
        let mut tasks = Tasks::new(&stop);
        let mut answers = start(targets.subscribe(), &StatusClient::new(None), &mut tasks);
        let mut await_pages = async |asked: StatusPages, count: usize, revision: i64| {
            ask(&mut targets, "a", asked);
            publish(&targets, "a", 7);
            let awaited = async {
                loop {
                    let (_, answer) = answers.recv().await.unwrap();
                    let is_all = matches!(&answer, Instances::Pages(pages) if pages.len() == count);
                    if is_all && is_at(&answer, revision) {
                        return;
                    }
                }
            };
            timeout(Duration::from_secs(10), awaited).await.unwrap();
        };
        // The absence of pages is reported, too.
        await_pages(pages([]), 0, 7).await;
        await_pages(StatusPages { coming: [new_url.clone()].into(), ..pages([old_url.clone()]) }, 1, 7).await;
        new.revision.store(7, Ordering::Relaxed);
        await_pages(pages([old_url, new_url]), 2, 7).await;
    }

    fn is_at(pages: &Instances, revision: i64) -> bool {
        let Instances::Pages(pages) = pages else { return false };
        pages.values().all(|page| page.as_ref().is_ok_and(|page| page.published_revision == revision))
    }

    #[test]
    fn an_instance_without_an_answer_is_asked_less_and_less_often() {
        assert_eq!(back_off(0), Duration::ZERO);
        assert_eq!(
            [1, 2, 3].map(back_off),
            [FAST_POLL_INTERVAL, FAST_POLL_INTERVAL * 2, FAST_POLL_INTERVAL * 4]
        );
        assert_eq!([7, 100, u32::MAX].map(back_off), [IDLE_POLL_INTERVAL; 3]);
    }

    /// Servers that take connections and never answer, and how many they have taken.
    #[derive(Clone, Default)]
    struct SilentServer {
        taken: Arc<AtomicUsize>,
    }

    impl SilentServer {
        async fn start(&self) -> StatusUrl {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
            let this = self.clone();
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    this.taken.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(async move {
                        // The connection stays open until the client gives up.
                        let mut buffer = [0; 1024];
                        while matches!(stream.read(&mut buffer).await, Ok(1..)) {}
                    });
                }
            });
            url
        }
    }

    #[tokio::test]
    async fn requests_without_an_answer_are_bounded_and_reported_alike() {
        let stop = CancellationToken::new();
        let _ends = stop.clone().drop_guard();
        let silent = SilentServer::default();
        let mut targets = PollTargets::default();
        for gateway in 0..4 {
            let mut urls = BTreeSet::new();
            for _ in 0..MAX_REQUESTS_PER_NAMESPACE / 2 {
                urls.insert(silent.start().await);
            }
            if gateway == 0 {
                // No process listens at this port; the error is left out.
                urls.insert(format!("http://{}", pingsix_test_programs::free_address()).parse().unwrap());
            }
            let asked = StatusPages { urls, coming: BTreeSet::new(), key: PageKey::None };
            ask(&mut targets, &format!("g{gateway}"), asked);
            publish(&targets, &format!("g{gateway}"), 1);
        }
        let neighbour = Instance::default();
        neighbour.revision.store(1, Ordering::Relaxed);
        let beside =
            DataPlaneKey::Gateway { gateway: pingsix_translate::ObjectName::new("beside", "g"), port: None };
        let asked = StatusPages { key: PageKey::None, ..pages([neighbour.start(&stop).await]) };
        targets.set(&beside.owner(), PagesByPlane::from([(beside.clone(), asked)]));
        targets.publish(&beside, Revision::new(1).unwrap());
        let mut tasks = Tasks::new(&stop);
        let mut answers = start(targets.subscribe(), &StatusClient::new(None), &mut tasks);
        let bound = async {
            while silent.taken.load(Ordering::SeqCst) < MAX_REQUESTS_PER_NAMESPACE {
                sleep(Duration::from_millis(10)).await;
            }
            sleep(FAST_POLL_INTERVAL).await;
        };
        timeout(Duration::from_secs(10), bound).await.unwrap();
        assert_eq!(
            silent.taken.load(Ordering::SeqCst),
            MAX_REQUESTS_PER_NAMESPACE,
            "the others wait for their semaphores"
        );
        let (mut planes, mut first) = (BTreeSet::new(), None);
        let all = async {
            while planes.len() < 5 {
                let (plane, answer) = answers.recv().await.unwrap();
                let Instances::Pages(answer) = answer else { panic!("pages were asked") };
                first.get_or_insert(plane.clone());
                if plane != beside {
                    let is_withheld = |page: Result<_, _>| page == Err(PageError::Withheld);
                    assert!(answer.into_values().all(is_withheld), "one message for all");
                }
                planes.insert(plane);
            }
        };
        timeout(Duration::from_mins(1), all).await.unwrap();
        assert_eq!(first, Some(beside), "a neighbour does not wait for them");
    }

    #[tokio::test]
    async fn an_instance_that_does_not_answer_keeps_no_other_data_plane_waiting() {
        let stop = CancellationToken::new();
        let _ends = stop.clone().drop_guard();
        let instance = Instance::default();
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent_url = format!("http://{}", silent.local_addr().unwrap()).parse().unwrap();
        let mut targets = PollTargets::default();
        ask(&mut targets, "a", pages([silent_url]));
        ask(&mut targets, "b", pages([instance.start(&stop).await]));
        let mut tasks = Tasks::new(&stop);
        let mut answers = start(targets.subscribe(), &StatusClient::new(None), &mut tasks);
        // No poll starts before the first publication.
        sleep(FAST_POLL_INTERVAL * 2).await;
        assert_eq!(instance.asked.load(Ordering::Relaxed), 0);
        for revision in 1..5 {
            let from = Instant::now();
            publish(&targets, "a", revision);
            publish(&targets, "b", revision);
            instance.revision.store(revision, Ordering::Relaxed);
            let confirmed = async {
                loop {
                    let (data_plane, pages) = answers.recv().await.unwrap();
                    if data_plane == plane("b") && is_at(&pages, revision) {
                        return;
                    }
                }
            };
            timeout(Duration::from_secs(2), confirmed).await.unwrap();
            assert!(from.elapsed() < Duration::from_secs(2), "{:?}", from.elapsed());
        }
        // All instances have confirmed, and changes of other data planes cause no new poll.
        sleep(FAST_POLL_INTERVAL).await;
        let asked = instance.asked.load(Ordering::Relaxed);
        for revision in 5..50 {
            publish(&targets, "a", revision);
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(instance.asked.load(Ordering::Relaxed), asked);
        stop.cancel();
        tasks.all_ended().await.unwrap();
    }
}
