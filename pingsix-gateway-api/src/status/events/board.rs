//! The problems, by finder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pingsix_translate::ObjectKey;
use pingsix_translate::status::{Problem, ProblemChanges, Problems};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The problems, by finder. Clones are cheap and share one board.
///
/// A problem is reported once, although several Gateways may find it. A lasting problem is reported again periodically,
/// because API servers delete Events.
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
    /// The translation of a Gateway or an IngressClass, or the judgement of a GatewayClass, a PingsixProxy or a policy.
    Owner(ObjectKey),
    /// The watch that brought an object.
    Watch(ObjectKey),
    /// The provisioner of data planes.
    Provisioner(ObjectKey),
}

#[derive(Debug, Default)]
struct Content {
    /// The last problems of each finder.
    found: BTreeMap<Finder, Problems>,
    /// All current problems.
    current: BTreeMap<Arc<Problem>, EventState>,
    /// The problems to report, by the object at fault: new problems first, then by the time of the last report.
    pending: BTreeMap<ObjectKey, BTreeSet<PendingEntry>>,
    /// The reported problems before their next report, the oldest report first.
    reported: BTreeSet<(Instant, Arc<Problem>)>,
    /// Objects with new pending reports.
    changed: BTreeSet<ObjectKey>,
}

/// The time of the last report, and the problem.
type PendingEntry = (Option<Instant>, Arc<Problem>);

#[derive(Debug, Default)]
struct EventState {
    /// The number of finders.
    finders: usize,
    /// The time of the last report.
    reported: Option<Instant>,
}

/// The next report.
#[derive(Clone, Debug)]
pub(super) struct PendingReport {
    pub(super) problem: Arc<Problem>,
    /// Whether the problem was reported before.
    pub(super) is_known: bool,
}

impl EventBoard {
    /// Replaces the problems of an owner: a Gateway, a GatewayClass, an IngressClass, or an object that is judged by itself.
    /// A deleted owner has none.
    pub fn set(&self, owner: &ObjectKey, problems: impl Into<Problems>) {
        self.record(Finder::Owner(owner.clone()), &problems.into());
    }

    /// Sets the decoding problem of an object; `None` for decodable and deleted objects.
    pub fn undecodable(&self, object: &ObjectKey, problem: Option<Problem>) {
        self.record(Finder::Watch(object.clone()), &problem.into_iter().collect());
    }

    /// Sets the problem that delays a rotation of the feed's authority; `None` without a delay.
    pub(crate) fn delays_rotation(&self, owner: &ObjectKey, problem: Option<Problem>) {
        self.record(Finder::Provisioner(owner.clone()), &problem.into_iter().collect());
    }

    fn record(&self, finder: Finder, problems: &Problems) {
        let mut content = self.0.content.lock();
        let before = if problems.is_empty() {
            content.found.remove(&finder)
        } else {
            content.found.insert(finder, problems.clone())
        };
        let before = before.unwrap_or_default();
        // Additions come first, so a problem that moves between finders is never new.
        let ProblemChanges { added, removed } = problems.changes(&before);
        for problem in added {
            content.add_finder(problem);
        }
        for problem in removed {
            content.remove_finder(problem);
        }
        let has_changed = !content.changed.is_empty();
        drop(content);
        if has_changed {
            self.0.changed.notify_one();
        }
    }

    /// The number of current problems.
    pub fn len(&self) -> usize {
        self.0.content.lock().current.len()
    }

    /// Whether there is no problem.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for new pending reports.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Takes the objects with new pending reports.
    pub(super) fn take_changed(&self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut self.0.content.lock().changed)
    }

    /// All objects with pending reports.
    pub(super) fn pending_objects(&self) -> Vec<ObjectKey> {
        self.0.content.lock().pending.keys().cloned().collect()
    }

    /// The next report of an object.
    pub(super) fn pending(&self, object: &ObjectKey) -> Option<PendingReport> {
        let content = self.0.content.lock();
        let (reported, problem) = content.pending.get(object)?.first()?;
        Some(PendingReport { problem: problem.clone(), is_known: reported.is_some() })
    }

    /// Records the report of a problem.
    pub(super) fn reported(&self, problem: &Arc<Problem>, now: Instant) {
        self.0.content.lock().reported(problem, now);
    }

    /// The time of the oldest report.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.0.content.lock().reported.first().map(|(reported, _)| *reported)
    }

    /// Makes problems with a report before this time due again.
    pub(super) fn renew(&self, reported_until: Instant) {
        self.0.content.lock().renew(reported_until);
    }
}

impl Content {
    fn add_finder(&mut self, problem: &Arc<Problem>) {
        let current = self.current.entry(problem.clone()).or_default();
        current.finders += 1;
        if current.finders == 1 {
            self.make_due(None, problem.clone());
        }
    }

    fn remove_finder(&mut self, problem: &Arc<Problem>) {
        let Some(current) = self.current.get_mut(problem) else { return };
        current.finders -= 1;
        if current.finders == 0 {
            let reported = current.reported;
            self.current.remove(problem);
            // A problem that ends before its report is never reported.
            self.remove_report(reported, problem);
        }
    }

    fn reported(&mut self, problem: &Arc<Problem>, now: Instant) {
        // The problem may have ended by now.
        let Some(current) = self.current.get_mut(problem) else { return };
        let before = current.reported.replace(now);
        self.remove_report(before, problem);
        self.reported.insert((now, problem.clone()));
    }

    fn renew(&mut self, reported_until: Instant) {
        while let Some((reported, _)) = self.reported.first()
            && *reported <= reported_until
            && let Some((reported, problem)) = self.reported.pop_first()
        {
            self.make_due(Some(reported), problem);
        }
    }

    fn make_due(&mut self, reported: Option<Instant>, problem: Arc<Problem>) {
        let object = ObjectKey::clone(&problem.object);
        self.pending.entry(object.clone()).or_default().insert((reported, problem));
        self.changed.insert(object);
    }

    /// Removes the last report and the pending report of a problem.
    fn remove_report(&mut self, reported: Option<Instant>, problem: &Arc<Problem>) {
        if let Some(reported) = reported {
            self.reported.remove(&(reported, problem.clone()));
        }
        let Some(pending) = self.pending.get_mut(&*problem.object) else { return };
        pending.remove(&(reported, problem.clone()));
        if pending.is_empty() {
            self.pending.remove(&*problem.object);
            self.changed.remove(&*problem.object);
        }
    }
}
