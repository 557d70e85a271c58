//! Fronted listeners: HTTPS listeners for which the sidecar terminates TLS in front of PingSIX.

use std::sync::Arc;

use crate::references::Authority;
use crate::stream::ClientAuthMode;

/// The further properties of a fronted listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Front {
    /// The slot of its address at PingSIX; `None` for a listener without claim to its port.
    pub(super) slot: Option<u8>,
    /// Whether requests by the connection of another listener are answered with 421, which takes a responder.
    pub(crate) detects: bool,
    /// The validation of client certificates, if the Gateway asks for one.
    pub(crate) validation: Option<Arc<ClientValidation>>,
}

/// The validation of client certificates on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientValidation {
    pub(crate) mode: ClientAuthMode,
    /// The usable authorities, at least one.
    pub(crate) authorities: Vec<Authority>,
}

impl Front {
    pub(super) fn new(validation: Option<ClientValidation>, detects: bool) -> Self {
        Self { slot: None, detects, validation: validation.map(Arc::new) }
    }
}
