//! Whose instances are asked for their status pages, and which revision they are to confirm.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_sink::Revision;
use pingsix_translate::{DataPlaneKey, ObjectKey};
use tokio::sync::watch;

use crate::delivery::status_page::StatusUrl;
use crate::provision::DiagnosticsKey;

/// The status pages of a data plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StatusPages {
    /// Of instances that have to confirm.
    pub(super) urls: BTreeSet<StatusUrl>,
    /// Of those that may refuse, and need not confirm: they serve nothing yet.
    pub(super) coming: BTreeSet<StatusUrl>,
    pub(super) key: PageKey,
}

/// What status pages are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum PageKey {
    /// Nothing.
    #[default]
    None,
    /// The key of the options.
    OfOptions,
    /// One of their own.
    Own(DiagnosticsKey),
}

impl StatusPages {
    /// Pages that the options name.
    pub(super) const fn always(urls: BTreeSet<StatusUrl>) -> Self {
        Self { urls, coming: BTreeSet::new(), key: PageKey::OfOptions }
    }
}

/// The status pages of data planes.
pub(super) type PagesByPlane = BTreeMap<DataPlaneKey, StatusPages>;

/// A data plane whose instances are asked.
#[derive(Clone, Debug)]
pub(super) struct PollTarget {
    pub(super) pages: StatusPages,
    /// The revision that it was published with last.
    pub(super) published: watch::Receiver<Option<i64>>,
}

/// The data planes whose instances are asked, by their owners.
pub(super) type TargetsByOwner = BTreeMap<ObjectKey, BTreeMap<DataPlaneKey, PollTarget>>;

/// Says whose instances are to be asked, and for which revisions. A publication costs the same however many data planes
/// there are: it wakes the poll of its own and no other.
#[derive(Debug, Default)]
pub(super) struct PollTargets {
    targets: watch::Sender<TargetsByOwner>,
    /// Has a sender for each data plane among the targets.
    published: BTreeMap<DataPlaneKey, watch::Sender<Option<i64>>>,
}

impl PollTarget {
    /// Whether a poll of one is a poll of the other.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.pages == other.pages && self.published.same_channel(&other.published)
    }
}

impl PollTargets {
    /// As it changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<TargetsByOwner> {
        self.targets.subscribe()
    }

    /// Whether the instances of a data plane are asked.
    pub(super) fn contains(&self, data_plane: &DataPlaneKey) -> bool {
        self.published.contains_key(data_plane)
    }

    /// A data plane was published.
    pub(super) fn publish(&self, data_plane: &DataPlaneKey, revision: Revision) {
        if let Some(published) = self.published.get(data_plane) {
            published.send_if_modified(|held| held.replace(revision.get()) != Some(revision.get()));
        }
    }

    /// Sets the pages of all data planes of an owner. Returns those whose instances are no longer asked; `None` when nothing
    /// has changed.
    pub(super) fn set(&mut self, owner: &ObjectKey, pages: PagesByPlane) -> Option<BTreeSet<DataPlaneKey>> {
        let mut gone = BTreeSet::new();
        let is_changed = self.targets.send_if_modified(|targets| {
            let held = targets.get(owner);
            let held_pages =
                held.into_iter().flatten().map(|(data_plane, target)| (data_plane, &target.pages));
            if held_pages.eq(&pages) {
                return false;
            }
            for data_plane in targets.remove(owner).unwrap_or_default().into_keys() {
                if !pages.contains_key(&data_plane) {
                    self.published.remove(&data_plane);
                    gone.insert(data_plane);
                }
            }
            let targeted = pages.into_iter().map(|(data_plane, pages)| {
                let published = self.published.entry(data_plane.clone()).or_default().subscribe();
                (data_plane, PollTarget { pages, published })
            });
            let targeted: BTreeMap<DataPlaneKey, PollTarget> = targeted.collect();
            if !targeted.is_empty() {
                targets.insert(owner.clone(), targeted);
            }
            true
        });
        is_changed.then_some(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publication_wakes_the_poll_of_its_own_data_plane() {
        let owner = |name: &str| ObjectKey::new(pingsix_translate::Kind::Gateway, "infra", name);
        let plane = |name: &str| DataPlaneKey::Gateway { gateway: owner(name).name, port: None };
        let pages = |name: &str| PagesByPlane::from([(plane(name), StatusPages::default())]);
        let mut targets = PollTargets::default();
        let mut wanted = targets.subscribe();
        for name in ["a", "b"] {
            assert_eq!(targets.set(&owner(name), pages(name)), Some(BTreeSet::new()));
        }
        assert_eq!(targets.set(&owner("a"), pages("a")), None, "nothing has changed");
        let held = wanted.borrow_and_update().clone();
        let [a, b] = ["a", "b"].map(|name| held[&owner(name)][&plane(name)].published.clone());
        targets.publish(&plane("a"), Revision::new(7).unwrap());
        assert_eq!((a.has_changed().unwrap(), b.has_changed().unwrap()), (true, false));
        assert!(!wanted.has_changed().unwrap(), "the same data planes are asked");
        assert_eq!(*a.borrow(), Some(7));
        assert_eq!(targets.set(&owner("a"), PagesByPlane::new()), Some([plane("a")].into()));
        assert!(a.has_changed().is_err() && !targets.contains(&plane("a")) && targets.contains(&plane("b")));
    }
}
