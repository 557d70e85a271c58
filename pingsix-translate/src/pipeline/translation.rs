//! What a translation yields.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::infrastructure::{AttachedParameters, Infrastructure};
use crate::lower::{DataPlane, StreamPlane};
use crate::model::DataPlaneKey;
use crate::status::Verdicts;

/// The result of translating one snapshot.
#[derive(Clone, Debug)]
pub struct Translation {
    /// What each data plane should hold. A data plane without Routes is still there, empty.
    pub data_planes: BTreeMap<DataPlaneKey, DataPlane>,
    /// What a proxy for TCP, UDP and TLS should hold; nothing unless [`crate::Options::stream`] says there is one. A
    /// Gateway without anything for it is still there, empty.
    pub stream_planes: BTreeMap<DataPlaneKey, StreamPlane>,
    /// What has to run for it; nothing if somebody else runs the data planes.
    pub infrastructure: Option<Arc<Infrastructure>>,
    /// How the data planes are reached if somebody else runs them; nothing if nobody says more than the options.
    pub attached: Option<Arc<AttachedParameters>>,
    /// Whether the parameters cannot be used, its own or those of its class. Then its data planes are empty, for nobody
    /// knows what is asked for; that is no reason to withdraw what was published before.
    pub has_unusable_parameters: bool,
    /// What to tell the authors.
    pub verdicts: Verdicts,
}
