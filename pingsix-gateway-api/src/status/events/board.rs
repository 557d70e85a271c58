//! The problems, by finder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pingsix_translate::ObjectKey;
use pingsix_translate::status::Problem;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The problems, by finder. Clones are cheap and share one board.
///
/// A problem without an earlier finder is new, and is reported once for any number of Gateways. A standing problem is
/// reported again from time to time, because API servers delete Events.
#[derive(Clone, Debug, Default)]
pub struct EventBoard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    content: Mutex<Content>,
    changed: Notify,
}

/// The finder of problems.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Finder {
    /// The translation of a Gateway or an IngressClass, or the judgement of a GatewayClass.
    Owner(ObjectKey),
    /// The watch that brought an object.
    Watch(ObjectKey),
    /// The provisioner of data planes.
    Provisioner(ObjectKey),
}

#[derive(Debug, Default)]
struct Content {
    /// The last problems of each finder.
    found: BTreeMap<Finder, BTreeSet<Arc<Problem>>>,
    /// All standing problems.
    standing: BTreeMap<Arc<Problem>, EventState>,
    /// The problems to report, by the object at fault: new problems first, then by the time of the last report.
    untold: BTreeMap<ObjectKey, BTreeSet<Turn>>,
    /// The reported problems that are not due again, the oldest report first.
    told: BTreeSet<(Instant, Arc<Problem>)>,
    /// Objects that got something to be told of.
    changed: BTreeSet<ObjectKey>,
}

/// When a problem was told last, if it was, and the problem.
type Turn = (Option<Instant>, Arc<Problem>);

#[derive(Debug, Default)]
struct EventState {
    /// The number of finders.
    finders: usize,
    /// When it was told last.
    told: Option<Instant>,
}

/// The next report.
#[derive(Clone, Debug)]
pub(super) struct Untold {
    pub(super) problem: Arc<Problem>,
    /// The problem was reported before, and still stands.
    pub(super) is_known: bool,
}

impl EventBoard {
    /// Says what an owner (a Gateway, a GatewayClass, an IngressClass) finds wrong now; nothing, when it is gone.
    pub fn set(&self, owner: &ObjectKey, problems: Vec<Problem>) {
        self.find(Finder::Owner(owner.clone()), problems);
    }

    /// Says why an object cannot be decoded; `None` when it can, or when it is gone.
    pub fn undecodable(&self, object: &ObjectKey, problem: Option<Problem>) {
        self.find(Finder::Watch(object.clone()), problem);
    }

    /// Says that a rotation of the feed's authority waits for an owner; `None` when it does not.
    pub(crate) fn delays_rotation(&self, owner: &ObjectKey, problem: Option<Problem>) {
        self.find(Finder::Provisioner(owner.clone()), problem);
    }

    fn find(&self, finder: Finder, problems: impl IntoIterator<Item = Problem>) {
        let problems: BTreeSet<Arc<Problem>> = problems.into_iter().map(Arc::new).collect();
        let mut content = self.0.content.lock();
        let before = if problems.is_empty() {
            content.found.remove(&finder)
        } else {
            content.found.insert(finder, problems.clone())
        };
        let before = before.unwrap_or_default();
        // Gains first, so that what another one finds as well is never new in between.
        for problem in problems.difference(&before) {
            content.gain(problem);
        }
        for problem in before.difference(&problems) {
            content.lose(problem);
        }
        let has_changed = !content.changed.is_empty();
        drop(content);
        if has_changed {
            self.0.changed.notify_one();
        }
    }

    /// The number of problems. For metrics.
    pub fn len(&self) -> usize {
        self.0.content.lock().standing.len()
    }

    /// Whether no problem stands.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until there is something new.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Objects that have something new to be told of.
    pub(super) fn take_news(&self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut self.0.content.lock().changed)
    }

    /// Objects that have anything to be told of.
    pub(super) fn untold_objects(&self) -> Vec<ObjectKey> {
        self.0.content.lock().untold.keys().cloned().collect()
    }

    /// The next report of an object.
    pub(super) fn untold(&self, object: &ObjectKey) -> Option<Untold> {
        let content = self.0.content.lock();
        let (told, problem) = content.untold.get(object)?.first()?;
        Some(Untold { problem: problem.clone(), is_known: told.is_some() })
    }

    /// A problem has been told.
    pub(super) fn told(&self, problem: &Arc<Problem>, now: Instant) {
        self.0.content.lock().told(problem, now);
    }

    /// When the problem that was told longest ago was.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.0.content.lock().told.first().map(|(told, _)| *told)
    }

    /// Problems with a report no later than this time are due again.
    pub(super) fn renew(&self, told_until: Instant) {
        self.0.content.lock().renew(told_until);
    }
}

impl Content {
    fn gain(&mut self, problem: &Arc<Problem>) {
        let standing = self.standing.entry(problem.clone()).or_default();
        standing.finders += 1;
        if standing.finders == 1 {
            self.is_due(None, problem.clone());
        }
    }

    fn lose(&mut self, problem: &Arc<Problem>) {
        let Some(standing) = self.standing.get_mut(problem) else { return };
        standing.finders -= 1;
        if standing.finders == 0 {
            let told = standing.told;
            self.standing.remove(problem);
            // A problem that ends before its report needs none.
            self.forget(told, problem);
        }
    }

    fn told(&mut self, problem: &Arc<Problem>, now: Instant) {
        // The problem may have ended by now.
        let Some(standing) = self.standing.get_mut(problem) else { return };
        let before = standing.told.replace(now);
        self.forget(before, problem);
        self.told.insert((now, problem.clone()));
    }

    fn renew(&mut self, told_until: Instant) {
        while let Some((told, _)) = self.told.first()
            && *told <= told_until
            && let Some((told, problem)) = self.told.pop_first()
        {
            self.is_due(Some(told), problem);
        }
    }

    fn is_due(&mut self, told: Option<Instant>, problem: Arc<Problem>) {
        let object = ObjectKey::clone(&problem.object);
        self.untold.entry(object.clone()).or_default().insert((told, problem));
        self.changed.insert(object);
    }

    /// Takes out when it was told last, and that it is to be told.
    fn forget(&mut self, told: Option<Instant>, problem: &Arc<Problem>) {
        if let Some(told) = told {
            self.told.remove(&(told, problem.clone()));
        }
        let Some(untold) = self.untold.get_mut(&*problem.object) else { return };
        untold.remove(&(told, problem.clone()));
        if untold.is_empty() {
            self.untold.remove(&*problem.object);
            self.changed.remove(&*problem.object);
        }
    }
}
