//! An HTTP upstream for the answers that PingSIX lacks. The responder keeps no state and reads nothing but the request.
//!
//! ```text
//!            pass_host: rewrite, upstream_host: status-404.responder.pingsix.internal
//!          ┌──────────────────────────────────────────────────────────────────────────► 404
//! client ─► PingSIX
//!          └──────────────────────────────────────────────────────────────────────────► 302, Location
//!            pass_host: pass, header x-pingsix-redirect set by the route
//! ```
//!
//! [`pingsix_translate::responder`] defines the instructions of a request, and explains why a client cannot forge them.
//! This module is the server:
//!
//! - `answer` decides, as a pure function of the head of a request;
//! - [`Responder`] speaks HTTP/1.1 and cleartext HTTP/2 (prior knowledge) on one port, within the bounds of [`Options`]. The
//!   port is on loopback unless asked otherwise.
//!
//! Invariants: no request makes the responder open a file, resolve a name or connect to anything;
//! every wait has an end and every buffer a limit; the value of a request header is never logged;
//! the value of the instruction reaches an answer only as a Location, and the Host only as its host.

mod activity;
mod answer;
mod connection;
mod io;
mod options;
mod server;

pub use options::{Options, Reach};
pub use server::{BindError, Responder};
