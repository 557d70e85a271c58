//! The labels of metrics of connections and of datagrams.

use prometheus_client::encoding::EncodeLabelSet;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PortLabels {
    pub(super) port: u16,
}

/// The labels of something that is passed on: `in` from clients, `out` to clients.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct DirectionLabels {
    pub(super) port: u16,
    pub(super) direction: &'static str,
}
