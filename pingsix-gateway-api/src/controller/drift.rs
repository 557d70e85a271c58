//! Repairs of drift by another publication.
//!
//! The first repair of a scope is immediate. Two publishers of one scope would undo each other's changes for ever, so each
//! further repair waits for twice as long as the one before.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pingsix_sink::{Scope, Sink as _};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::attached_sinks::{OpenSinks, SinkId};
use super::tasks::Tasks;

/// The shortest time between two repairs of one scope.
const MIN_REPAIR_INTERVAL: Duration = Duration::from_secs(1);

/// The longest time between two repairs of one scope.
const MAX_REPAIR_INTERVAL: Duration = Duration::from_mins(1);

/// The number of pauses without drift after which the pause starts anew.
const CALM_INTERVALS: u32 = 3;

/// Follows the drift of sinks, and of the open sinks of parameters, until it is stopped. The receiver gets each scope to
/// publish again.
pub(super) fn start(
    sources: Vec<watch::Receiver<BTreeSet<Scope>>>,
    attached: watch::Receiver<OpenSinks>,
    tasks: &mut Tasks,
) -> mpsc::Receiver<Scope> {
    let (scopes, receiver) = mpsc::channel(16);
    for source in sources {
        tasks.spawn(follow(source, scopes.clone()));
    }
    tasks.spawn(follow_attached(attached, scopes));
    receiver
}

/// Follows the open sinks of parameters.
async fn follow_attached(mut attached: watch::Receiver<OpenSinks>, scopes: mpsc::Sender<Scope>) {
    let mut tasks: JoinSet<()> = JoinSet::new();
    let mut followed: BTreeMap<SinkId, Option<AbortHandle>> = BTreeMap::new();
    loop {
        let open = attached.borrow_and_update().clone();
        followed.retain(|id, task| {
            let stays = open.contains_key(id);
            if let Some(task) = task.as_ref().filter(|_| !stays) {
                task.abort();
            }
            stays
        });
        for (id, sink) in open {
            if let Entry::Vacant(place) = followed.entry(id) {
                let drifted = sink.sink().drifted();
                place.insert(drifted.map(|source| tasks.spawn(follow(source, scopes.clone()))));
            }
        }
        tokio::select! {
            changed = attached.changed() => if changed.is_err() { return },
            Some(ended) = tasks.join_next() => if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                // A bug of theirs is one of this task.
                std::panic::resume_unwind(panic);
            },
        }
    }
}

/// When a scope was repaired last, and how long the next repair waits after that.
#[derive(Clone, Copy, Debug)]
struct Repair {
    at: Instant,
    pause: Duration,
}

async fn follow(mut source: watch::Receiver<BTreeSet<Scope>>, scopes: mpsc::Sender<Scope>) {
    let mut repairs: BTreeMap<Scope, Repair> = BTreeMap::new();
    loop {
        let drifted = source.borrow_and_update().clone();
        let now = Instant::now();
        repairs.retain(|scope, repair| {
            drifted.contains(scope) || now.duration_since(repair.at) < repair.pause * CALM_INTERVALS
        });
        let mut next: Option<Instant> = None;
        for scope in drifted {
            let last = repairs.get(&scope).copied();
            let mut due = last.map_or(now, |last| last.at + last.pause);
            if due <= now {
                let pause = last.map_or(MIN_REPAIR_INTERVAL, |last| MAX_REPAIR_INTERVAL.min(last.pause * 2));
                repairs.insert(scope.clone(), Repair { at: now, pause });
                due = now + pause;
                if scopes.send(scope).await.is_err() {
                    return;
                }
            }
            next = Some(next.map_or(due, |next| next.min(due)));
        }
        let again = async {
            match next {
                Some(next) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = source.changed() => if changed.is_err() { return },
            () = again => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use pingsix_sink::{Desired, Published, SinkError};
    use pingsix_translate::ObjectName;
    use pingsix_translate::infrastructure::{SinkCredentials, SinkParameters};
    use tokio::time::{advance, timeout};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::controller::attached_sinks::AttachedSinks;
    use crate::controller::{SinkHandle, SinkOpener, SinkRouter};

    fn scope(name: &str) -> Scope {
        Scope::new(format!("/pingsix/{name}")).unwrap()
    }

    struct Rig {
        drift: watch::Sender<BTreeSet<Scope>>,
        repairs: mpsc::Receiver<Scope>,
        _tasks: Tasks,
    }

    impl Rig {
        fn start() -> Self {
            let (drift, mut tasks) =
                (watch::Sender::new(BTreeSet::new()), Tasks::new(&CancellationToken::new()));
            let none = watch::Sender::default();
            let repairs = start(vec![drift.subscribe()], none.subscribe(), &mut tasks);
            Self { drift, repairs, _tasks: tasks }
        }

        fn set(&self, name: &str, is_drifted: bool) {
            self.drift.send_modify(|scopes| {
                if is_drifted {
                    scopes.insert(scope(name))
                } else {
                    scopes.remove(&scope(name))
                };
            });
        }

        /// The delay until the next repair of a scope.
        async fn repaired(&mut self, name: &str) -> Duration {
            let from = Instant::now();
            let repaired =
                timeout(MAX_REPAIR_INTERVAL * 2, self.repairs.recv()).await.expect("nothing is repaired");
            assert_eq!(repaired, Some(scope(name)));
            from.elapsed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_foreign_change_is_repaired_at_once_and_repeated_ones_ever_later() {
        let mut rig = Rig::start();
        rig.set("a", true);
        assert_eq!(rig.repaired("a").await, Duration::ZERO);
        let mut waited = Vec::new();
        for _ in 0..8 {
            // The repair succeeds, and the other publisher changes the scope again.
            rig.set("a", false);
            tokio::task::yield_now().await;
            rig.set("a", true);
            waited.push(rig.repaired("a").await.as_secs());
            // Other scopes do not wait for this repair.
            rig.set("b", true);
            if waited.len() == 1 {
                assert_eq!(rig.repaired("b").await, Duration::ZERO);
            }
            rig.set("b", false);
            tokio::task::yield_now().await;
        }
        assert_eq!(waited, [1, 2, 4, 8, 16, 32, 60, 60]);
        rig.set("a", false);
        advance(MAX_REPAIR_INTERVAL * CALM_INTERVALS).await;
        rig.set("a", true);
        assert_eq!(rig.repaired("a").await, Duration::ZERO, "there is peace");
    }

    #[tokio::test(start_paused = true)]
    async fn a_repair_that_failed_is_asked_for_again() {
        let mut rig = Rig::start();
        rig.set("a", true);
        assert_eq!(rig.repaired("a").await, Duration::ZERO);
        assert_eq!(rig.repaired("a").await, MIN_REPAIR_INTERVAL);
        rig.set("a", false);
        assert!(
            timeout(MAX_REPAIR_INTERVAL * 9, rig.repairs.recv()).await.is_err(),
            "it is as it was published"
        );
    }

    /// A sink that reports changes by others.
    struct ReportingSink(watch::Receiver<BTreeSet<Scope>>);

    impl pingsix_sink::Sink for ReportingSink {
        async fn publish(&self, _: &Desired) -> Result<Published, SinkError> {
            std::future::pending().await
        }

        fn drifted(&self) -> Option<watch::Receiver<BTreeSet<Scope>>> {
            Some(self.0.clone())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sink_that_is_opened_while_it_runs_is_followed_until_it_is_closed() {
        let drift = watch::Sender::new(BTreeSet::from([scope("a")]));
        let told = drift.subscribe();
        let opener = SinkOpener::new(move |sink, _| {
            Ok(SinkHandle::shared("told", &*sink.url, ReportingSink(told.clone())))
        });
        let router = SinkRouter::default().with_attached(AttachedSinks::new(Some(opener)));
        let mut tasks = Tasks::new(&CancellationToken::new());
        let mut repairs = start(Vec::new(), router.attached().watch(), &mut tasks);
        assert!(timeout(MAX_REPAIR_INTERVAL, repairs.recv()).await.is_err(), "there is none yet");
        let sink = SinkParameters {
            proxy: ObjectName::new("infra", "edge"),
            url: "etcd://127.0.0.1".to_owned(),
            allow_plaintext: false,
            credentials: None,
        };
        let id = router.attached().open(&sink, SinkCredentials::default()).unwrap();
        router.attach(&scope("a"), Some(id));
        assert_eq!(timeout(MAX_REPAIR_INTERVAL, repairs.recv()).await.unwrap(), Some(scope("a")));
        router.attach(&scope("a"), None);
        // Events on their way may still arrive.
        tokio::task::yield_now().await;
        while repairs.try_recv().is_ok() {}
        assert!(timeout(MAX_REPAIR_INTERVAL * 3, repairs.recv()).await.is_err(), "it is closed");
    }
}
