//! A run of an owner: its translation, and the bridge of its data planes. [`Pipeline`](super::Pipeline) and the
//! controller run their owners alike.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pingsix_translate::snapshot::OwnerSnapshot;
use pingsix_translate::status::Problem;
use pingsix_translate::{DataPlane, DataPlaneKey, Options, Translation, Translator};

use crate::bridge::{Bridge, BridgeError, Bridged, BridgedStream, bridge_stream};
use crate::expiry::{outdated_certificates, outdated_stream_certificates};

/// The caches of an owner from its last run.
#[derive(Debug, Default)]
pub(crate) struct OwnerRun {
    translator: Option<Translator>,
    bridges: BTreeMap<DataPlaneKey, Bridge>,
}

/// The data planes of an owner after the bridge.
#[derive(Debug)]
pub(crate) struct BridgedOwner {
    pub(crate) planes: BTreeMap<DataPlaneKey, Result<Bridged, BridgeError>>,
    pub(crate) streams: BTreeMap<DataPlaneKey, Result<BridgedStream, BridgeError>>,
    /// The problems of certificates whose time is over or has not come.
    pub(crate) outdated: Vec<Problem>,
}

impl OwnerRun {
    /// The translation of a snapshot, at the cost of the differences from the last one.
    pub(crate) fn translate(&mut self, snapshot: &OwnerSnapshot, options: &Options) -> Translation {
        self.translator.get_or_insert_with(|| Translator::new(options.clone())).translate_owner(snapshot)
    }

    /// The documents of data planes.
    pub(crate) fn bridge(
        &mut self,
        planes: &BTreeMap<DataPlaneKey, DataPlane>,
        options: &Options,
    ) -> BTreeMap<DataPlaneKey, Result<Bridged, BridgeError>> {
        let bridged = planes.iter().map(|(key, plane)| {
            let bridge = self.bridges.entry(key.clone()).or_default();
            (key.clone(), bridge.bridge(key, plane, options))
        });
        bridged.collect()
    }

    /// The documents of a whole translation. Without a time, no certificate is outdated.
    pub(crate) fn bridge_all(
        &mut self,
        translation: &Translation,
        options: &Options,
        now: Option<Timestamp>,
    ) -> BridgedOwner {
        let Translation { data_planes, stream_planes, .. } = translation;
        self.bridges.retain(|key, _| data_planes.contains_key(key));
        let streams = stream_planes.iter();
        let streams = streams.map(|(key, plane)| (key.clone(), bridge_stream(key, plane, options))).collect();
        let mut outdated = Vec::new();
        if let Some(now) = now {
            outdated.extend(data_planes.values().flat_map(|plane| outdated_certificates(plane, now)));
            outdated
                .extend(stream_planes.values().flat_map(|plane| outdated_stream_certificates(plane, now)));
        }
        BridgedOwner { planes: self.bridge(data_planes, options), streams, outdated }
    }
}
