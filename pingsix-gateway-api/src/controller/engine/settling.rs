//! The grace period after a start and after a change of leaders. Until instances have reconnected, their absence
//! means nothing.
//!
//! Otherwise each restart would set `Programmed` to false and back to true, while requests are answered as before.
//! During the period, such a Gateway has no new report, and a follower keeps the report of its leader.

use std::time::Duration;

use pingsix_translate::status::Delivery;
use pingsix_translate::{Kind, ObjectKey};
use tokio::time::Instant;

use super::shared::Shared;

/// Three times as long as PingSIX waits between two tries to read its configuration (`src/config/etcd.rs`).
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// The progress of the settling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Settling {
    /// This replica is not ready yet, or another replica leads. Readers may be connected there.
    #[default]
    Elsewhere,
    /// The time from which readers can connect.
    Since(Instant),
    /// The grace period has ended; absent readers count as gone.
    Over,
}

impl Settling {
    /// Advances the period. `serves` is whether this replica is ready and leads. Returns whether the period ends now.
    pub(super) fn advance(&mut self, serves: bool, now: Instant) -> bool {
        let next = match *self {
            _ if !serves => Self::Elsewhere,
            Self::Elsewhere => Self::Since(now),
            Self::Since(since) if now.duration_since(since) >= GRACE_PERIOD => Self::Over,
            Self::Since(_) | Self::Over => *self,
        };
        let ends = next == Self::Over && *self != Self::Over;
        *self = next;
        ends
    }

    /// Whether the status of an object must keep `Programmed` at true.
    pub(super) fn is_too_early(self, shared: &Shared, object: &ObjectKey) -> bool {
        if self == Self::Over || !matches!(object.kind, Kind::Gateway | Kind::ListenerSet) {
            return false;
        }
        let Some(owner) = shared.judging_owner(object) else { return false };
        let planes = shared.reconciler.data_planes(owner);
        let is_pending = |delivery: &Delivery| matches!(delivery, Delivery::Pending(_));
        if !shared.deliveries.of(&planes).values().any(is_pending)
            && !shared.managed.is_provisioning_unknown(&shared.reconciler, owner)
        {
            return false;
        }
        let status = shared.reconciler.world().status(object);
        let conditions = status["conditions"].as_array().into_iter().flatten();
        conditions
            .into_iter()
            .any(|condition| condition["type"] == "Programmed" && condition["status"] == "True")
    }
}
