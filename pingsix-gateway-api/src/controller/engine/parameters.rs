//! Which instances there are, while that changes: what parameters say of those that somebody else runs, and the Pods behind
//! the Services of those that the controller runs.

use std::collections::BTreeSet;

use pingsix_translate::{DataPlaneKey, ObjectKey};

use super::Engine;
use crate::controller::Feed;
use crate::controller::instances::{Asked, AskedPages, PageKey};
use crate::delivery::status_page::StatusUrl;

impl<F: Feed + 'static> Engine<F> {
    /// Has the status pages asked that the parameters of an owner name; of its other data planes, those of the options.
    pub(super) fn follow_parameters(&mut self, owner: &ObjectKey) {
        let pages = self.pages_of(owner);
        let is_other = |held: &AskedPages| {
            let held = held.iter().filter(|(plane, _)| plane.owner() == *owner);
            !held.eq(pages.iter())
        };
        if !is_other(&self.parts.asked.borrow()) {
            return;
        }
        let mut gone: BTreeSet<DataPlaneKey> = BTreeSet::new();
        self.parts.asked.send_modify(|held| {
            held.retain(|plane, _| {
                let stays = plane.owner() != *owner;
                if !stays && !pages.contains_key(plane) {
                    gone.insert(plane.clone());
                }
                stays
            });
            held.extend(pages);
        });
        for plane in &gone {
            self.pages.remove(plane);
        }
        self.publish_revisions();
        self.look_at_readers_of(gone);
    }

    /// The status pages of an owner's data planes.
    fn pages_of(&self, owner: &ObjectKey) -> AskedPages {
        let fixed = self.parts.fixed_pages.iter().filter(|(plane, _)| plane.owner() == *owner);
        let mut pages: AskedPages =
            fixed.map(|(plane, urls)| (plane.clone(), Asked::always(urls.clone()))).collect();
        if let Some(attached) = self.parts.reconciler.attached(owner) {
            for (plane, urls) in &attached.status_pages {
                // What does not parse was refused.
                let urls = urls.iter().filter_map(|url| url.parse::<StatusUrl>().ok()).collect();
                let key = if attached.status_pages_are_of_class { PageKey::OfOptions } else { PageKey::None };
                pages.insert(plane.clone(), Asked { urls, coming: BTreeSet::new(), key });
            }
        }
        pages.extend(self.pages_of_service(owner));
        pages
    }
}
