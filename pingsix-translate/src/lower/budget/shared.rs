//! The charges of documents that rules share: upstreams and services.

use std::collections::BTreeMap;

use crate::lower::service::ServiceKey;
use crate::lower::upstream::UpstreamKey;

/// Bytes of the upstreams and services that an admission is for, also of those that refused rules would need.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SharedCharges {
    pub(super) upstreams: BTreeMap<UpstreamKey, usize>,
    pub(super) services: BTreeMap<ServiceKey, usize>,
}

impl SharedCharges {
    /// Whether an upstream of this size leaves the admission as it is.
    pub(crate) fn is_upstream_alike(&self, upstream: UpstreamKey, bytes: impl FnOnce() -> usize) -> bool {
        self.upstreams.get(&upstream).is_none_or(|charged| *charged == bytes())
    }

    /// The services, each with its charge.
    pub(crate) fn services(&self) -> impl Iterator<Item = (&ServiceKey, usize)> {
        self.services.iter().map(|(service, bytes)| (service, *bytes))
    }
}
