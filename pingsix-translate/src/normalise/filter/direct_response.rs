//! Direct responses: answers of rules without a backend, from HTTPRouteFilters.

use crate::crd::FilterDirectResponse;
use crate::pingsix::plugin::{Abort, FaultInjection};

/// An answer without a backend.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DirectResponse {
    pub(crate) status: u16,
    pub(crate) body: Option<String>,
}

/// Statuses whose responses end with the headers (RFC 9110, 15.3.5, 15.3.6 and 15.4.5).
const WITHOUT_BODY: [u16; 3] = [204, 205, 304];

impl DirectResponse {
    /// Reads a response within the bounds of its definition.
    pub(super) fn read(written: &FilterDirectResponse) -> Result<Self, String> {
        let status = written.status_code;
        let body = written.body.clone().filter(|body| !body.is_empty());
        if body.is_some() && WITHOUT_BODY.contains(&status) {
            return Err(format!("body: A response with status {status} has no body."));
        }
        Ok(Self { status, body })
    }

    /// An answer without a body.
    pub(crate) const fn status(status: u16) -> Self {
        Self { status, body: None }
    }

    /// The plugin of PingSIX.
    pub(crate) fn lower(&self) -> FaultInjection {
        let abort = Abort { http_status: self.status, body: self.body.clone(), ..Abort::default() };
        FaultInjection { abort: Some(abort), ..FaultInjection::default() }
    }
}
