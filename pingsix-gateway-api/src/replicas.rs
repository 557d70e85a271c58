//! Several replicas that serve at once: common revisions, and the readers of each replica.
//!
//! ```text
//! Lease NAME-revisions   the highest revision that was reserved   PUT with its version ◄── lists of PingSIX, shared
//! Lease NAME-replicas    an annotation for each replica           PATCH of our own     ◄── every few seconds, or on a change
//!                           its readers by data plane ──► `Programmed`, which the leader writes
//!                           its reading of the shared time ──► revisions of lists while the API server is away
//! ```
//!
//! Both have the name of the [Lease of the election](crate::leader) with something behind it, and are in its namespace, so
//! that a role can name all three. Every replica watches both.
//!
//! - **Revisions**: [`pingsix_sink::embedded::revisions`] states the guarantees and their reasons. This module is the
//!   store that replicas share.
//! - **Readers** of other replicas count for `Programmed` like the readers of the leader. A replica is gone when it has
//!   not renewed its annotation during several renewals of our own. No time of day is compared, and a replica without
//!   access to the API server takes no other for gone. A replica that ends removes its annotation; the leader removes
//!   those of crashed replicas.
//! - **Load**: a write of each replica every five seconds, of about 100 bytes and 25 for each data plane with
//!   readers, and one within a second after readers came or went. Lists of PingSIX cost a write; lists that wait at
//!   the same time share one, and a replica makes at most 20 a second.

mod member;
mod membership;
mod record;
mod report;
mod revisions;
#[cfg(test)]
mod tests;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kube_runtime::utils::Backoff;
use parking_lot::Mutex;
use pingsix_sink::Scope;
use pingsix_sink::backoff::jittered;
use pingsix_sink::embedded::revisions::Reservations;
use tokio::sync::watch;
use tokio::time::Instant;

pub(crate) use report::{Confirmed, ReplicaReport};

use crate::acceptance::Quarantines;
use crate::digest::short_digest;
use crate::leader::LeaseOptions;
use crate::wait;
use membership::Membership;
use revisions::LeaseReservations;

/// The name of the Lease with the highest reserved revision, beside that of an election.
pub fn revisions_name(lease: &str) -> String {
    format!("{lease}-revisions")
}

/// The name of the Lease with an annotation for each replica, beside that of an election.
pub fn replicas_name(lease: &str) -> String {
    format!("{lease}-replicas")
}

/// A short name of a scope, for records.
fn name_of(scope: &Scope) -> String {
    short_digest(scope.as_str())
}

/// The replicas of a controller, this one among them. Cheap to clone.
///
/// The embedded server gets its [`reservations`](Self::reservations), and the controller all of it
/// ([`with_replicas`](crate::controller::Controller::with_replicas)).
#[derive(Clone)]
pub struct Replicas(Arc<Inner>);

struct Inner {
    api: Api<Lease>,
    name: String,
    identity: String,
    reservations: Arc<LeaseReservations>,
    membership: Mutex<Membership>,
    /// The number of records received from other replicas.
    changes: watch::Sender<u64>,
    /// The number of new replicas so far.
    newcomers: watch::Sender<u64>,
    /// The report of this replica beside its readers.
    report: watch::Sender<ReplicaReport>,
}

/// The state of another replica.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct Replica {
    /// The name of its Pod with a suffix that is unique per process.
    pub(crate) identity: String,
    /// The number of watches at its feed, of the data planes in its record.
    pub(crate) readers: usize,
    /// The time since its last record.
    pub(crate) silent_for: Duration,
}

impl std::fmt::Debug for Replicas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replicas")
            .field("name", &self.0.name)
            .field("identity", &self.0.identity)
            .finish_non_exhaustive()
    }
}

impl Replicas {
    /// The replicas of one election. The first request to the API server comes with the first use.
    pub fn new(client: Client, lease: &LeaseOptions) -> Self {
        let api: Api<Lease> = Api::namespaced(client, &lease.namespace);
        let reservations =
            LeaseReservations::new(api.clone(), revisions_name(&lease.name), lease.clock.clone());
        Self(Arc::new(Inner {
            api,
            name: replicas_name(&lease.name),
            identity: lease.identity.clone(),
            reservations: Arc::new(reservations),
            membership: Mutex::new(Membership::new(short_digest(&lease.identity))),
            changes: watch::Sender::new(0),
            newcomers: watch::Sender::new(0),
            report: watch::Sender::default(),
        }))
    }

    /// The store of revisions that the replicas share, for
    /// [`Builder::reservations`](pingsix_sink::embedded::Builder::reservations).
    pub fn reservations(&self) -> Arc<dyn Reservations> {
        Arc::clone(&self.0.reservations) as Arc<dyn Reservations>
    }

    /// The number of readers of a scope at the other replicas.
    pub(crate) fn readers_of(&self, scope: &Scope) -> usize {
        self.0.membership.lock().readers_of(&name_of(scope))
    }

    /// The other live replicas, as far as they are known.
    pub(crate) fn others(&self) -> Vec<Replica> {
        let now = Instant::now();
        let membership = self.0.membership.lock();
        let others = membership.present().map(|(record, last_renewal)| Replica {
            identity: record.identity.clone(),
            readers: record.readers.values().fold(0, |all, readers| all.saturating_add(*readers)),
            silent_for: now.saturating_duration_since(last_renewal),
        });
        others.collect()
    }

    /// Sets the report of this replica.
    pub(crate) fn set_report(&self, report: &ReplicaReport) {
        self.0.report.send_if_modified(|last| {
            let has_changed = last != report;
            if has_changed {
                last.clone_from(report);
            }
            has_changed
        });
    }

    /// Whether another replica reports that an instance which reads a scope from it has confirmed this content.
    pub(crate) fn has_confirmed(&self, scope: &Scope, content: &str, instance: &str) -> bool {
        let name = name_of(scope);
        let membership = self.0.membership.lock();
        membership.live().any(|(_, record)| {
            let confirmed = record.confirmed.get(&name);
            confirmed.is_some_and(|confirmed| confirmed.content == content && confirmed.by.contains(instance))
        })
    }

    /// The quarantines of the other replicas.
    pub(crate) fn quarantines(&self) -> Quarantines {
        let membership = self.0.membership.lock();
        let mut quarantines = Quarantines::new();
        for (replica, record) in membership.live() {
            let of = quarantines.entry(replica.to_owned()).or_default();
            for (owner, quarantine) in record.found.iter().filter_map(report::Written::read) {
                of.entry(owner).or_default().push(quarantine);
            }
        }
        quarantines
    }

    /// Changes with each record of another replica that may affect [`readers_of`](Self::readers_of) or the reports
    /// between replicas.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}

/// A second at most after each error, sooner than other watches, because the records are soon outdated.
struct ReplicaBackoff;

impl Iterator for ReplicaBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(jittered(Duration::from_secs(1)))
    }
}

impl Backoff for ReplicaBackoff {
    fn reset(&mut self) {}
}

/// Follows a Lease until the future is dropped; `None` while it does not exist.
async fn follow(api: &Api<Lease>, name: &str, see: impl FnMut(Option<Lease>)) {
    wait::follow((api.clone(), name), ReplicaBackoff, "the Lease cannot be watched", see).await;
}
