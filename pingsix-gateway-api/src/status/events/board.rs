//! What is wrong, by who found it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pingsix_translate::ObjectKey;
use pingsix_translate::verdict::Problem;
use tokio::sync::Notify;

/// What is wrong, by whose translation found it. Cheap to clone: all clones are one board.
///
/// A problem is new when nobody had it before, and then it is to be told once, however many Gateways find it.
#[derive(Clone, Debug, Default)]
pub struct EventBoard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    content: Mutex<Content>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Content {
    /// What each owner found last.
    found: BTreeMap<ObjectKey, BTreeSet<Arc<Problem>>>,
    /// How many owners find a problem.
    standing: BTreeMap<Arc<Problem>, usize>,
    /// What has not been told, by the object at fault.
    untold: BTreeMap<ObjectKey, BTreeSet<Arc<Problem>>>,
    /// Objects that got something new to be told.
    news: BTreeSet<ObjectKey>,
}

impl EventBoard {
    /// Says what an owner (a Gateway, a GatewayClass, an IngressClass) finds wrong now; nothing, when it is gone.
    pub fn set(&self, owner: &ObjectKey, problems: Vec<Problem>) {
        let problems: BTreeSet<Arc<Problem>> = problems.into_iter().map(Arc::new).collect();
        let mut content = self.0.content.lock();
        let before = if problems.is_empty() {
            content.found.remove(owner)
        } else {
            content.found.insert(owner.clone(), problems.clone())
        };
        let before = before.unwrap_or_default();
        // Gains first, so that what another owner finds as well is never new in between.
        for problem in problems.difference(&before) {
            content.gain(problem);
        }
        for problem in before.difference(&problems) {
            content.lose(problem);
        }
        let is_news = !content.news.is_empty();
        drop(content);
        if is_news {
            self.0.news.notify_one();
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
    pub(super) async fn news(&self) {
        self.0.news.notified().await;
    }

    /// Objects that have something new to be told of.
    pub(super) fn take_news(&self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut self.0.content.lock().news)
    }

    /// Objects that have anything to be told of.
    pub(super) fn untold_objects(&self) -> Vec<ObjectKey> {
        self.0.content.lock().untold.keys().cloned().collect()
    }

    /// What is to be told next of an object.
    pub(super) fn untold(&self, object: &ObjectKey) -> Option<Arc<Problem>> {
        self.0.content.lock().untold.get(object)?.first().cloned()
    }

    /// A problem has been told.
    pub(super) fn told(&self, problem: &Arc<Problem>) {
        self.0.content.lock().forget_untold(problem);
    }
}

impl Content {
    fn gain(&mut self, problem: &Arc<Problem>) {
        let owners = self.standing.entry(problem.clone()).or_default();
        *owners += 1;
        if *owners == 1 {
            let object = ObjectKey::clone(&problem.object);
            self.untold.entry(object.clone()).or_default().insert(problem.clone());
            self.news.insert(object);
        }
    }

    fn lose(&mut self, problem: &Arc<Problem>) {
        let Some(owners) = self.standing.get_mut(problem) else { return };
        *owners -= 1;
        if *owners == 0 {
            self.standing.remove(problem);
            // What is over before it was told need not be.
            self.forget_untold(problem);
        }
    }

    fn forget_untold(&mut self, problem: &Arc<Problem>) {
        let Some(untold) = self.untold.get_mut(&*problem.object) else { return };
        untold.remove(problem);
        if untold.is_empty() {
            self.untold.remove(&*problem.object);
            self.news.remove(&*problem.object);
        }
    }
}
