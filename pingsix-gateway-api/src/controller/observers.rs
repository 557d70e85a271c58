//! The observers of a controller.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::health::{Gate, Health};
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::operations::debug::DebugRequest;
use crate::status::StatusWriter;
use crate::watch::WatchStats;
use crate::world::World;

/// The observers of a controller. Each is optional.
#[derive(Debug, Default)]
pub struct Observers {
    /// Liveness and readiness.
    pub health: Option<Health>,
    /// Metrics.
    pub metrics: Option<Arc<Metrics>>,
    /// Requests for dumps of its state.
    pub debug: Option<mpsc::Receiver<DebugRequest>>,
}

/// The gates of readiness.
#[derive(Debug)]
pub(super) struct Gates {
    /// Open after the initial lists.
    pub(super) watches: Gate,
    /// Open after the initial publications.
    pub(super) published: Gate,
}

impl Gates {
    pub(super) fn of(health: &Health) -> Self {
        Self {
            watches: health.gate("watches", "nothing has been read yet"),
            published: health.gate("published", "nothing has been published yet"),
        }
    }
}

/// Connects metrics to the counters of watches, statuses and the world.
pub(super) fn observe(metrics: &Metrics, watches: &WatchStats, writer: &StatusWriter, world: &World) {
    metrics.observe_watches(watches);
    let writer = writer.clone();
    metrics.observe_status(move || writer.counts());
    metrics.observe_world(world);
}

/// Updates the leadership metric until it is stopped.
pub(super) async fn follow_leadership(
    metrics: Arc<Metrics>,
    mut leadership: Leadership,
    stop: CancellationToken,
) {
    let follow = async {
        loop {
            metrics.leader(leadership.is_held());
            leadership.gained().await;
            metrics.leader(true);
            leadership.lost().await;
        }
    };
    stop.run_until_cancelled(follow).await;
    metrics.leader(false);
}
