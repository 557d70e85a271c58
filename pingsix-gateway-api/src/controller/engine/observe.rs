//! Instances of data planes: their readers, and their status pages.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_sink::{Effect, Revision};
use pingsix_translate::status::Delivery;
use pingsix_translate::{DataPlaneKey, ObjectKey};
use tokio::time::Instant;

use super::peers::Peers;
use super::shared::Shared;
use super::{Message, Messages};
use crate::controller::router::PublishScope;
use crate::delivery::reception::PageReader;
use crate::delivery::status_page::{InstancePages, PageError, StatusPage};
use crate::delivery::{Deliveries, Instances};
use crate::reconcile::Publication;

/// The observations of instances, by this replica and by others.
#[derive(Default)]
pub(super) struct Observe {
    /// The status pages of data planes over time.
    pages: BTreeMap<DataPlaneKey, PageReader>,
    pub(super) peers: Peers,
}

impl Observe {
    /// Records the documents that instances of an owner have to take over. `current` has all data planes of the owner.
    pub(super) fn expect(
        &mut self,
        shared: &Shared,
        owner: &ObjectKey,
        current: &BTreeSet<DataPlaneKey>,
        publications: &[Publication],
    ) {
        self.peers.record_contents(shared, owner, current, publications);
        for Publication { data_plane, desired } in publications {
            if current.contains(data_plane) && shared.targets.contains(data_plane) {
                self.pages.entry(data_plane.clone()).or_default().expects(desired.documents().len());
            }
        }
    }

    /// Sets the polled status pages of an owner: those of its parameters, and for its other data planes those of the
    /// options.
    pub(super) fn follow_parameters(&mut self, shared: &mut Shared, owner: &ObjectKey) -> Messages {
        let mut messages: Messages = shared.follow_own_addresses(owner).into_iter().collect();
        let pages = shared.pages_of(owner);
        let planes: BTreeSet<DataPlaneKey> = pages.keys().cloned().collect();
        if let Some(gone) = shared.targets.set(owner, pages) {
            for plane in &planes {
                shared.publish_revision(plane);
            }
            for plane in &gone {
                self.pages.remove(plane);
            }
            messages.extend(self.refresh_readers(shared, gone));
        }
        messages
    }

    /// Counts the readers of data planes whose instances have no status pages.
    pub(super) fn refresh_readers(
        &mut self,
        shared: &mut Shared,
        planes: impl IntoIterator<Item = DataPlaneKey>,
    ) -> Messages {
        let mut messages = Messages::new();
        for data_plane in planes {
            let Some(scope) = shared.scope(&data_plane) else { continue };
            let instances = if shared.sinks.effect(&scope) == Effect::OnRestart {
                Instances::AtRestart
            } else if shared.targets.contains(&data_plane) {
                continue;
            } else {
                shared.sinks.readers_of(&scope).map_or(Instances::Unknown, Instances::Connected)
            };
            messages.extend(self.observe(shared, &data_plane, instances));
        }
        messages
    }

    /// Records the status pages of instances that follow the sink.
    pub(super) fn observe_status_pages(
        &mut self,
        shared: &mut Shared,
        data_plane: &DataPlaneKey,
        mut pages: Instances,
    ) -> Messages {
        let Some(scope) = shared.scope(data_plane) else { return Messages::new() };
        // The instances may have confirmed the revision before this record.
        if shared.sinks.effect(&scope) == Effect::OnRestart || !shared.targets.contains(data_plane) {
            return Messages::new();
        }
        if let Instances::Pages(pages) = &mut pages {
            for page in pages.values_mut().flatten() {
                let read = Revision::new(page.observed_revision);
                page.is_elsewhere = read.is_some_and(|read| !shared.sinks.issued(&scope, read));
            }
            if let Some(revision) = confirmed_by_all(pages) {
                shared.sinks.confirm(&scope, revision);
            }
            self.peers.compare(shared, data_plane, &scope, pages);
            log_other_versions(&shared.deliveries, data_plane, pages);
        }
        self.observe(shared, data_plane, pages)
    }

    pub(super) fn observe(
        &mut self,
        shared: &mut Shared,
        data_plane: &DataPlaneKey,
        instances: Instances,
    ) -> Messages {
        let pages = if let Instances::Pages(pages) = &instances { Some(pages.clone()) } else { None };
        let is_news = shared.deliveries.observe(data_plane, instances);
        // The same report contains the consequences.
        let mut messages = match pages {
            Some(pages) => self.record_status_pages(shared, data_plane, &pages),
            None => Messages::new(),
        };
        messages.extend(is_news.then(|| progress(shared, data_plane)));
        messages
    }

    /// Records the status pages of a data plane.
    fn record_status_pages(
        &mut self,
        shared: &mut Shared,
        data_plane: &DataPlaneKey,
        pages: &InstancePages,
    ) -> Messages {
        let lacks_key = |page: &Result<StatusPage, PageError>| page.as_ref().is_ok_and(StatusPage::lacks_key);
        let is_rotating = || shared.managed.is_rotating_keys(&shared.reconciler, &data_plane.owner());
        // PingSIX would refuse every trial in the same way.
        let of_readers;
        let pages = if pages.values().any(lacks_key) && is_rotating() {
            let readers = pages.iter().filter(|(_, page)| !lacks_key(page));
            of_readers = readers.map(|(url, page)| (url.clone(), page.clone())).collect();
            &of_readers
        } else {
            pages
        };
        let reception = self.pages.entry(data_plane.clone()).or_default().read(pages, Instant::now());
        shared.record_reception(data_plane, reception)
    }

    /// Applies the reports of other replicas.
    pub(super) fn apply_reports(&mut self, shared: &mut Shared) -> Messages {
        let Some(replicas) = shared.sinks.replicas() else { return Messages::new() };
        let owners = shared.reconciler.apply_quarantines(replicas.quarantines());
        for owner in &owners {
            tracing::info!(%owner, "another replica reports quarantines");
        }
        let mut messages = vec![Message::Reconcile(owners)];
        // Statuses may wait for a confirmation by instances of that replica.
        for data_plane in self.peers.contents.keys().cloned().collect::<Vec<_>>() {
            let Some(Instances::Pages(mut pages)) = shared.deliveries.instances(&data_plane).cloned() else {
                continue;
            };
            if let Some(scope) = shared.scope(&data_plane).filter(|_| shared.targets.contains(&data_plane)) {
                self.peers.compare(shared, &data_plane, &scope, &mut pages);
                let is_news = shared.deliveries.observe(&data_plane, Instances::Pages(pages));
                messages.extend(is_news.then(|| progress(shared, &data_plane)));
            }
        }
        messages
    }

    /// A replica that does not lead publishes no trials to shared targets. It still searches for refusals by its own
    /// readers, because no other replica observes them.
    pub(super) fn stop_searches(&mut self, shared: &mut Shared) -> Messages {
        let is_led = |data_plane: &DataPlaneKey| {
            shared.scope(data_plane).is_some_and(|scope| match shared.sinks.publish_scope(&scope) {
                PublishScope::All => false,
                PublishScope::Part => !shared.sinks.targets(&scope).contains(&0),
                PublishScope::Nothing => true,
            })
        };
        let led = self.pages.extract_if(.., |data_plane, _| is_led(data_plane));
        let led: Vec<ObjectKey> = led.map(|(data_plane, _)| data_plane.owner()).collect();
        let ended = led.into_iter().filter(|owner| shared.reconciler.give_up(owner)).map(|owner| {
            tracing::info!(%owner, "another replica became leader during a search; the search ends");
            Message::Reconcile([owner].into())
        });
        ended.collect()
    }
}

/// The revision that all instances have published, apart from those that read from other replicas.
fn confirmed_by_all(pages: &InstancePages) -> Option<Revision> {
    let published = |page: &Result<StatusPage, PageError>| match page {
        Ok(page) if page.is_elsewhere => None,
        Ok(page) => Some(page.published_revision),
        Err(_) => Some(0),
    };
    pages.values().filter_map(published).min().and_then(Revision::new)
}

/// Reports the changed delivery of a data plane.
fn progress(shared: &Shared, data_plane: &DataPlaneKey) -> Message {
    if let Some(metrics) = &shared.metrics
        && matches!(
            shared.deliveries.delivery(data_plane),
            Delivery::Confirmed | Delivery::ConfirmedInPart(_) | Delivery::ConfirmedByOtherVersion(_)
        )
        && let Some(revision) = shared.deliveries.revision(data_plane)
    {
        metrics.confirmed(revision);
    }
    Message::Delivery(data_plane.owner())
}

/// Logs each instance of another version than the supported one, once.
fn log_other_versions(deliveries: &Deliveries, data_plane: &DataPlaneKey, pages: &InstancePages) {
    let known = deliveries.instances(data_plane);
    let known = if let Some(Instances::Pages(pages)) = known { Some(pages) } else { None };
    for (url, page) in pages {
        let difference = |page: &Result<StatusPage, PageError>| page.as_ref().ok()?.difference;
        let Some(found) = difference(page) else { continue };
        if known.and_then(|known| difference(known.get(url)?)) != Some(found) {
            tracing::warn!(%data_plane, %url, instance = %found, "an instance has another version of PingSIX");
        }
    }
}
