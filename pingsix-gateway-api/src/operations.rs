//! The operators' view of a controller: liveness, readiness, metrics and dumps of state.
//!
//! ```text
//! controller ──► Health, Metrics ◄── GET /livez, /readyz, /metrics    (any address)
//!     ▲
//!     └── DebugRequest, answered when it is its turn ◄── GET /debug/…  (`debug.address`)
//! ```
//!
//! - [`health`](crate::health): gates that have to be open for readiness, and a heartbeat.
//! - [`metrics`](crate::metrics): every metric, by name.
//! - [`debug`]: dumps of what the controller holds, without secrets.
//! - [`server`]: the HTTP servers of all three.

pub mod debug;
pub mod server;
