//! What is wrong, by who found it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pingsix_translate::ObjectKey;
use pingsix_translate::status::Problem;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What is wrong, by who found it. Cheap to clone: all clones are one board.
///
/// A problem is new when nobody had it before, and then it is to be told, once however many Gateways find it. As long as it
/// stands, it is to be told again from time to time: API servers forget Events.
#[derive(Clone, Debug, Default)]
pub struct EventBoard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    content: Mutex<Content>,
    changed: Notify,
}

/// Who finds problems.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Finder {
    /// The translation of a Gateway or an IngressClass, or the judgement of a GatewayClass.
    Owner(ObjectKey),
    /// The watch that brought an object.
    Watch(ObjectKey),
    /// Whoever runs data planes.
    Provisioner(ObjectKey),
}

#[derive(Debug, Default)]
struct Content {
    /// What each found last.
    found: BTreeMap<Finder, BTreeSet<Arc<Problem>>>,
    /// Everything that is wrong.
    standing: BTreeMap<Arc<Problem>, EventState>,
    /// What is to be told, by the object at fault: first what is new, then what was told longest ago.
    untold: BTreeMap<ObjectKey, BTreeSet<Turn>>,
    /// What has been told and is not yet to be told again, the longest ago first.
    told: BTreeSet<(Instant, Arc<Problem>)>,
    /// Objects that got something to be told of.
    changed: BTreeSet<ObjectKey>,
}

/// When a problem was told last, if it was, and the problem.
type Turn = (Option<Instant>, Arc<Problem>);

#[derive(Debug, Default)]
struct EventState {
    /// How many find it.
    finders: usize,
    /// When it was told last.
    told: Option<Instant>,
}

/// What is to be told.
#[derive(Clone, Debug)]
pub(super) struct Untold {
    pub(super) problem: Arc<Problem>,
    /// It has been told before, and stands still.
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

    /// How many problems there are. For metrics.
    pub fn len(&self) -> usize {
        self.0.content.lock().standing.len()
    }

    /// Whether nothing is wrong.
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

    /// What is to be told next of an object.
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

    /// What was told no later than that is to be told again.
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
            // What is over before it was told need not be.
            self.forget(told, problem);
        }
    }

    fn told(&mut self, problem: &Arc<Problem>, now: Instant) {
        // It may be over by now.
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
