//! The stages of the start: everything is read; then the feed answers, of each data plane from its first publication on; then
//! the replica is ready.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pingsix_translate::{Kind, ObjectKey};
use tokio::time::Instant;

use super::Engine;
use crate::controller::{Feed, Progress};
use crate::status::Wanted;
use crate::watch::{Availability, Presence, presence};

/// For how long readiness waits for owners of which it is not known what to publish: each of them is the matter of a tenant.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// How many owners a line of the log names.
const NAMED: usize = 8;

impl<F: Feed + 'static> Engine<F> {
    /// Goes from one stage of the start to the next, when it is time.
    pub(super) fn advance(&mut self) {
        if self.is_complete {
            return;
        }
        let unknown = if self.is_known { BTreeMap::new() } else { self.unknown_kinds() };
        if !self.is_known && unknown.is_empty() {
            tracing::info!("everything that is watched has been read");
            if let Some(gates) = &self.parts.gates {
                gates.watches.open();
            }
            self.is_known = true;
            self.ready_by = Some(Instant::now() + PATIENCE);
            let ours = self.parts.reconciler.ours();
            self.opening.expect(ours.clone());
            // A data plane that is not published yet is refused to its readers, and to no others.
            self.parts.feed.open();
            self.push(ours);
        }
        // Not when the queue is empty: in a cluster where something changes all the time it never is.
        if self.is_known && !self.is_ready && self.is_due() {
            self.is_ready = true;
            if let Some(gates) = &self.parts.gates {
                gates.published.open();
            }
            let left: Vec<String> = self.opening.owners().take(NAMED).map(ToString::to_string).collect();
            if left.is_empty() {
                let data_planes = self.deliveries.data_planes().count();
                tracing::info!(data_planes, "everything is published that is read from here");
            } else {
                let owners = self.opening.owners().count();
                tracing::warn!(
                    owners,
                    ?left,
                    "of these it is not known what to publish; all others are published"
                );
            }
        }
        // Of whom nothing is known yet, nothing is taken back.
        if self.is_ready && self.opening.is_all_known() {
            self.is_complete = true;
            self.release_what_is_left();
            self.complete_provisioning();
        }
        let awaited =
            if self.is_ready { BTreeSet::new() } else { self.waiting.values().flatten().cloned().collect() };
        let progress = Progress { unknown, awaited, is_published: self.is_ready };
        self.explain(&progress);
        self.parts.progress.send_if_modified(|held| {
            let is_other = *held != progress;
            *held = progress;
            is_other
        });
    }

    /// Whether nobody has to be waited for any more before this replica is ready.
    fn is_due(&self) -> bool {
        let is_late = self.ready_by.is_some_and(|ready_by| ready_by <= Instant::now());
        self.opening.is_over() || is_late && !self.opening.is_publishing()
    }

    fn unknown_kinds(&self) -> BTreeMap<Kind, String> {
        Kind::ALL.iter().filter_map(|kind| Some((*kind, self.unknown(*kind)?))).collect()
    }

    /// Has readiness say what is missing. Anybody may ask for it, so it names no object.
    fn explain(&self, progress: &Progress) {
        let Some(gates) = &self.parts.gates else { return };
        // Once known, always known: a kind that is installed later keeps nobody waiting.
        if !self.is_known {
            let unknown = progress.unknown.iter().map(|(kind, why)| format!("{kind}: {why}"));
            gates.watches.close(unknown.collect::<Vec<_>>().join(" "));
        } else if !progress.is_published && !progress.awaited.is_empty() {
            let count = progress.awaited.len();
            gates.published.close(format!("{count} objects that are referred to have not been read yet"));
            if self.parts.progress.borrow().awaited != progress.awaited {
                let some: Vec<String> = progress.awaited.iter().take(32).map(ToString::to_string).collect();
                tracing::info!(count, ?some, "readiness waits for objects that are referred to");
            }
        }
    }

    /// Why not everything of a kind is known; `None` when it is.
    pub(super) fn unknown(&self, kind: Kind) -> Option<String> {
        let is_listed =
            presence(kind) != Presence::Referenced || kind == Kind::Secret && self.parts.lists_secrets;
        if !is_listed || self.parts.reconciler.world().is_complete(kind) {
            return None;
        }
        match self.availability.get(&kind) {
            Some(Availability::Absent { .. }) if presence(kind) == Presence::Optional => None,
            Some(Availability::Absent { message }) => Some(message.clone()),
            Some(Availability::Forbidden { message } | Availability::Unreachable { message }) => {
                Some(message.clone())
            }
            Some(Availability::Watching) | None => Some("It is being listed.".to_owned()),
        }
    }

    /// What a process of ours has written and nobody stands for any more.
    fn release_what_is_left(&self) {
        let name = &self.parts.reconciler.options().controller_name;
        let mut told: BTreeSet<ObjectKey> = self.parts.status.keys().into_iter().collect();
        // Other targets may not have it yet, so that nothing was said of it.
        told.extend(self.untold().cloned());
        for key in self.parts.readers.with_entries_of(name) {
            if !told.contains(&key) {
                self.parts.status.set(key, Wanted::Released);
            }
        }
    }
}
