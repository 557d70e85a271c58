//! The entry of each owner: its last translation, with the verdicts and the acceptance.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::infrastructure::{AttachedParameters, Infrastructure};
use pingsix_translate::selection::{Changed, Extract};
use pingsix_translate::snapshot::{OwnAddresses, OwnerSnapshot};
use pingsix_translate::status::{Problems, Verdicts};
use pingsix_translate::{DataPlane, DataPlaneKey, ObjectKey, StreamPlane};

use super::waits::Waits;
use crate::acceptance::Acceptance;
use crate::pipeline::OwnerRun;

/// The last translation of an owner, with its acceptance.
#[derive(Debug, Default)]
pub(super) struct OwnerEntry {
    /// The verdicts, without those of delivery.
    pub(super) verdicts: Option<Verdicts>,
    pub(super) problems: Problems,
    pub(super) planes: BTreeMap<DataPlaneKey, DataPlane>,
    pub(super) streams: BTreeMap<DataPlaneKey, Arc<StreamPlane>>,
    /// The infrastructure of managed data planes.
    pub(super) infrastructure: Option<Arc<Infrastructure>>,
    /// The parameters of attached data planes.
    pub(super) attached: Option<Arc<AttachedParameters>>,
    /// The share of one core that its processes may spend on changes, in percent; `None` before the first translation.
    pub(super) feed_cpu_percent: Option<u8>,
    /// The addresses of its data planes.
    pub(super) own_addresses: OwnAddresses,
    /// The referenced Secrets and ConfigMaps.
    pub(super) referenced: BTreeSet<ObjectKey>,
    /// The snapshot that was translated last; `None` before the first translation.
    pub(super) translated_snapshot: Option<OwnerSnapshot>,
    /// The objects that wait for their references; the owner itself before the first translation.
    pub(super) waits: Waits,
    /// The extract of the last translation.
    pub(super) extract: Option<Extract>,
    /// The objects that changed since the last translation.
    pub(super) changed: Changed,
    /// The caches of the translation; `None` while a [job](super::job::Job) has them.
    pub(super) cache: OwnerRun,
    pub(super) acceptance: Acceptance,
    /// The documents that a trial publishes in the place of `planes`.
    pub(super) tried: BTreeMap<DataPlaneKey, DataPlane>,
    /// Whether its parameters cannot be used. The previous publication stays.
    pub(super) is_kept: bool,
}
