//! The instances whose status pages are polled, and the revisions that they have to confirm.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_sink::Revision;
use pingsix_translate::{DataPlaneKey, ObjectKey};
use tokio::sync::watch;

use crate::delivery::status_page::StatusUrl;
use crate::provision::DiagnosticsKey;

/// The status pages of a data plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StatusPages {
    /// The pages of instances that have to confirm.
    pub(super) urls: BTreeSet<StatusUrl>,
    /// The pages of instances that do not serve yet. Their refusals count, and their confirmations are not needed.
    pub(super) coming: BTreeSet<StatusUrl>,
    pub(super) key: PageKey,
}

/// The API key in requests to status pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum PageKey {
    /// No key.
    #[default]
    None,
    /// The key of the options.
    OfOptions,
    /// The key of managed data planes.
    Own(DiagnosticsKey),
}

impl StatusPages {
    /// Pages that the options name.
    pub(super) const fn of_options(urls: BTreeSet<StatusUrl>) -> Self {
        Self { urls, coming: BTreeSet::new(), key: PageKey::OfOptions }
    }
}

/// The status pages of data planes.
pub(super) type PagesByPlane = BTreeMap<DataPlaneKey, StatusPages>;

/// A data plane with polled instances.
#[derive(Clone, Debug)]
pub(super) struct PollTarget {
    pub(super) pages: StatusPages,
    /// The revision of the last publication.
    pub(super) published: watch::Receiver<Option<i64>>,
}

/// The data planes with polled instances, by owner.
pub(super) type TargetsByOwner = BTreeMap<ObjectKey, BTreeMap<DataPlaneKey, PollTarget>>;

/// The targets of polls and their revisions. A publication wakes the poll of its own data plane alone, so its cost does
/// not depend on the number of data planes.
#[derive(Debug, Default)]
pub(super) struct PollTargets {
    targets: watch::Sender<TargetsByOwner>,
    /// A sender for each data plane of the targets.
    published: BTreeMap<DataPlaneKey, watch::Sender<Option<i64>>>,
}

impl PollTarget {
    /// Whether two targets have the same poll.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.pages == other.pages && self.published.same_channel(&other.published)
    }
}

impl PollTargets {
    /// Changes with the targets.
    pub(super) fn subscribe(&self) -> watch::Receiver<TargetsByOwner> {
        self.targets.subscribe()
    }

    /// Whether the instances of a data plane are polled.
    pub(super) fn contains(&self, data_plane: &DataPlaneKey) -> bool {
        self.published.contains_key(data_plane)
    }

    /// Sets the revision of a data plane after a publication.
    pub(super) fn publish(&self, data_plane: &DataPlaneKey, revision: Revision) {
        if let Some(published) = self.published.get(data_plane) {
            published.send_if_modified(|last| last.replace(revision.get()) != Some(revision.get()));
        }
    }

    /// Sets the pages of all data planes of an owner. Returns the data planes without polls now; `None` without a
    /// change.
    pub(super) fn set(&mut self, owner: &ObjectKey, pages: PagesByPlane) -> Option<BTreeSet<DataPlaneKey>> {
        let mut gone = BTreeSet::new();
        let is_changed = self.targets.send_if_modified(|targets| {
            let known = targets.get(owner);
            let known_pages =
                known.into_iter().flatten().map(|(data_plane, target)| (data_plane, &target.pages));
            if known_pages.eq(&pages) {
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
        let current = wanted.borrow_and_update().clone();
        let [a, b] = ["a", "b"].map(|name| current[&owner(name)][&plane(name)].published.clone());
        targets.publish(&plane("a"), Revision::new(7).unwrap());
        assert_eq!((a.has_changed().unwrap(), b.has_changed().unwrap()), (true, false));
        assert!(!wanted.has_changed().unwrap(), "the same data planes are asked");
        assert_eq!(*a.borrow(), Some(7));
        assert_eq!(targets.set(&owner("a"), PagesByPlane::new()), Some([plane("a")].into()));
        assert!(a.has_changed().is_err() && !targets.contains(&plane("a")) && targets.contains(&plane("b")));
    }
}
