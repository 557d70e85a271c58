//! The stages of the start: the initial lists, the opening of the feed, and readiness. An open feed answers for each data
//! plane after its first publication.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::Engine;
use crate::controller::Progress;
use crate::wait;

/// The time for which readiness waits for owners with unknown references. A tenant may cause them.
pub(super) const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// The most owners in a line of the log.
const MAX_NAMED_OWNERS: usize = 8;

impl Engine {
    /// Advances to the next stage of the start.
    pub(super) fn advance(&mut self) {
        if self.report.is_complete {
            return;
        }
        let unknown = self.ingest.unknown_kinds(self.shared.reconciler.world());
        if !self.ingest.is_known && unknown.is_empty() {
            tracing::info!("initial lists complete");
            if let Some(gates) = &self.report.gates {
                gates.watches.open();
            }
            self.ingest.is_known = true;
            self.report.ready_by = Some(Instant::now() + READY_TIMEOUT);
            self.report.update_classes(&self.shared);
            self.report.update_policies(&self.shared);
            let ours = self.shared.reconciler.ours();
            self.publish.readiness.expect(ours.clone());
            // Readers of a data plane that is not published yet get an error; other readers are served.
            self.shared.sinks.open();
            self.ingest.push(ours);
        }
        // The queue need not be empty. In a cluster with permanent changes it never is.
        if self.ingest.is_known && !self.report.is_ready && self.is_due() {
            self.report.is_ready = true;
            if let Some(gates) = &self.report.gates {
                gates.published.open();
            }
            let left: Vec<String> =
                self.publish.readiness.owners().take(MAX_NAMED_OWNERS).map(ToString::to_string).collect();
            if left.is_empty() {
                let data_planes = self.shared.deliveries.data_planes().count();
                tracing::info!(data_planes, "ready: all data planes of this replica's feed are published");
            } else {
                let owners = self.publish.readiness.owners().count();
                tracing::warn!(
                    owners,
                    ?left,
                    "ready, but these owners are not published yet: the API server has not answered for their references"
                );
            }
        }
        // Owners without a known state are not withdrawn.
        if self.report.is_ready && self.publish.readiness.is_all_known() {
            self.report.is_complete = true;
            self.report.release_what_is_left(&self.shared.reconciler.options().controller_name);
            self.shared.managed.complete(&self.shared.reconciler, &self.ingest.undecodable);
        }
        let awaited = if self.report.is_ready { BTreeSet::new() } else { self.ingest.awaited() };
        let progress = Progress { unknown, awaited, is_published: self.report.is_ready };
        self.explain(&progress);
        wait::set(&self.report.progress, progress);
    }

    /// Whether readiness waits for no owner.
    fn is_due(&self) -> bool {
        let is_late = self.report.ready_by.is_some_and(|ready_by| ready_by <= Instant::now());
        self.publish.readiness.is_over() || is_late && !self.publish.readiness.is_publishing()
    }

    /// Sets the message of readiness. The page has no authentication, so the message names no object.
    fn explain(&self, progress: &Progress) {
        let Some(gates) = &self.report.gates else { return };
        // A kind stays known: a definition that is installed later does not delay readiness.
        if !self.ingest.is_known {
            let unknown = progress.unknown.iter().map(|(kind, why)| format!("{kind}: {why}"));
            gates.watches.close(unknown.collect::<Vec<_>>().join(" "));
        } else if !progress.is_published && !progress.awaited.is_empty() {
            let count = progress.awaited.len();
            gates.published.close(format!("{count} objects that are referred to have not been read yet"));
            if self.report.progress.borrow().awaited != progress.awaited {
                let some: Vec<String> = progress.awaited.iter().take(32).map(ToString::to_string).collect();
                tracing::info!(count, ?some, "readiness waits for referenced objects");
            }
        }
    }
}
