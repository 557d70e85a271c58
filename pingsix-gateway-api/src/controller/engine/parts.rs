//! The parts of an engine and its inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pingsix_sink::Scope;
use pingsix_translate::DataPlaneKey;
use pingsix_translate::status::Address;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::ingest::Ingest;
use super::peers::Peers;
use super::provisioning::{Managed, Provisioning};
use super::publishing::Publish;
use super::report::Report;
use crate::controller::bundles::Bundles;
use crate::controller::instances::Pages;
use crate::controller::observers::Gates;
use crate::controller::orphans::CollectorEvent;
use crate::controller::poll_targets::PollTargets;
use crate::controller::{Progress, SinkRouter};
use crate::delivery::Deliveries;
use crate::delivery::status_page::StatusUrl;
use crate::health::Health;
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::operations::debug::DebugRequest;
use crate::reconcile::{Pace, Reconciler};
use crate::status::{EventBoard, Readers, StatusBoard};
use crate::watch::Input;

/// The parts of an engine.
pub(in crate::controller) struct Parts {
    pub(in crate::controller) reconciler: Reconciler,
    pub(in crate::controller) sinks: Arc<SinkRouter>,
    pub(in crate::controller) status: StatusBoard,
    pub(in crate::controller) events: EventBoard,
    pub(in crate::controller) readers: Readers,
    pub(in crate::controller) progress: watch::Sender<Progress>,
    /// The leadership of this replica.
    pub(in crate::controller) leadership: Leadership,
    pub(in crate::controller) addresses: watch::Receiver<Option<Vec<Address>>>,
    pub(in crate::controller) bundles: watch::Receiver<Bundles>,
    pub(in crate::controller) gates: Option<Gates>,
    pub(in crate::controller) health: Option<Health>,
    pub(in crate::controller) metrics: Option<Arc<Metrics>>,
    pub(in crate::controller) pace: Pace,
    /// The status pages of the options.
    pub(in crate::controller) fixed_pages: BTreeMap<DataPlaneKey, BTreeSet<StatusUrl>>,
    /// The instances whose status pages are polled.
    pub(in crate::controller) targets: PollTargets,
    /// The tasks of managed data planes; `None` if the controller runs none.
    pub(in crate::controller) provisioning: Option<Provisioning>,
    /// Whether all Secrets are listed, or referenced Secrets alone.
    pub(in crate::controller) lists_secrets: bool,
    /// The time for pending publications at a shutdown.
    pub(in crate::controller) drain: Duration,
}

/// The inputs of an engine.
pub(in crate::controller) struct Sources {
    pub(in crate::controller) inputs: mpsc::Receiver<Input>,
    pub(in crate::controller) pages: mpsc::Receiver<Pages>,
    /// Scopes with drift.
    pub(in crate::controller) drifted: mpsc::Receiver<Scope>,
    pub(in crate::controller) collector: mpsc::Receiver<CollectorEvent>,
    pub(in crate::controller) debug: Option<mpsc::Receiver<DebugRequest>>,
    pub(in crate::controller) stop: CancellationToken,
}

/// The parts that all stages use.
pub(super) struct Shared {
    pub(super) reconciler: Reconciler,
    pub(super) sinks: Arc<SinkRouter>,
    pub(super) leadership: Leadership,
    pub(super) health: Option<Health>,
    pub(super) metrics: Option<Arc<Metrics>>,
    pub(super) fixed_pages: BTreeMap<DataPlaneKey, BTreeSet<StatusUrl>>,
    pub(super) targets: PollTargets,
    pub(super) drain: Duration,
}

impl Engine {
    pub(in crate::controller) fn new(parts: Parts) -> Self {
        let boards = (parts.status, parts.events, parts.readers);
        Self {
            ingest: Ingest::new(parts.pace, parts.lists_secrets),
            publish: Publish::new(Arc::clone(&parts.sinks)),
            report: Report::new(boards, parts.addresses, parts.bundles, parts.progress, parts.gates),
            managed: Managed::new(parts.provisioning),
            parts: Shared {
                reconciler: parts.reconciler,
                sinks: parts.sinks,
                leadership: parts.leadership,
                health: parts.health,
                metrics: parts.metrics,
                fixed_pages: parts.fixed_pages,
                targets: parts.targets,
                drain: parts.drain,
            },
            deliveries: Deliveries::default(),
            pages: BTreeMap::new(),
            others: Peers::default(),
        }
    }
}
