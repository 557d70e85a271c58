//! The result of a translation.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::infrastructure::{AttachedParameters, Infrastructure};
use crate::lower::{DataPlane, StreamPlane};
use crate::model::DataPlaneKey;
use crate::status::Verdicts;

/// The result of translating one snapshot.
#[derive(Clone, Debug)]
pub struct Translation {
    /// The documents of each data plane. A data plane without Routes is present and empty.
    pub data_planes: BTreeMap<DataPlaneKey, DataPlane>,
    /// The documents of a proxy for TCP, UDP and TLS. Without [`crate::Options::stream`] there are none. A Gateway
    /// without stream listeners has an empty entry.
    pub stream_planes: BTreeMap<DataPlaneKey, StreamPlane>,
    /// The infrastructure that the controller runs; `None` if the controller does not run the data planes.
    pub infrastructure: Option<Arc<Infrastructure>>,
    /// The addresses of attached data planes; `None` if only the options give them.
    pub attached: Option<Arc<AttachedParameters>>,
    /// The share of one core that each process of the data planes may spend on changes of its documents, in percent.
    pub feed_cpu_percent: u8,
    /// Whether the parameters of the owner or of its class cannot be used. The data planes are empty then, because
    /// the wanted settings are unknown. An earlier publication stays.
    pub has_unusable_parameters: bool,
    /// The verdicts for the authors.
    pub verdicts: Verdicts,
}
