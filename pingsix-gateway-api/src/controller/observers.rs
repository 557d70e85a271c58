//! Whoever wants to know how a controller does.

use std::sync::Arc;

use pingsix_translate::Kind;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::health::{Gate, Health};
use crate::leader::Leadership;
use crate::metrics::{Metrics, ReferencedTotals, WatchTotals};
use crate::operations::debug::DebugRequest;
use crate::status::StatusWriter;
use crate::watch::{FaultCategory, WatchStats};
use crate::world::World;

/// Whoever wants to know how a controller does; each may be left out.
#[derive(Debug, Default)]
pub struct Observers {
    /// Whether it lives and is ready.
    pub health: Option<Health>,
    /// What it counts.
    pub metrics: Option<Arc<Metrics>>,
    /// Questions about what it holds.
    pub debug: Option<mpsc::Receiver<DebugRequest>>,
}

/// The gates of readiness.
#[derive(Debug)]
pub(super) struct Gates {
    /// Everything that is watched has been read once.
    pub(super) watches: Gate,
    /// And published, as far as it is known what to publish.
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

/// Has metrics read what others count.
pub(super) fn observe(metrics: &Metrics, watches: &Arc<WatchStats>, writer: &StatusWriter, world: &World) {
    let stats = watches.clone();
    metrics.observe_watches(move || {
        let totals = |kind: &Kind| WatchTotals {
            kind: *kind,
            lists: stats.lists(*kind),
            watches: stats.watches(*kind),
            faults: FaultCategory::ALL
                .iter()
                .map(|category| (category.as_str(), stats.faults(*kind, *category)))
                .collect(),
        };
        Kind::ALL.iter().map(totals).collect()
    });
    let stats = watches.clone();
    metrics.observe_referenced(move || ReferencedTotals {
        by_name: stats.by_name(),
        wide: stats.wide(),
        versions: stats.versions(),
    });
    let writer = writer.clone();
    metrics.observe_status(move || writer.counts());
    metrics.observe_world(world);
}

/// Tells metrics who leads, until it is stopped.
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
