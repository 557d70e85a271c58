//! Termination of TLS.
//!
//! ```text
//! ssls ─► certificate ─► termination: the certificates of a route, with a ticket key of its own
//!                                │
//! ClientHello ─► admission ─► handshake ─► session: the plaintext of one connection ─► relay
//! ```
//!
//! rustls reads the `ClientHello` that chose the route once more, and must find the same server name. The backend is
//! connected to after the handshake. A failed handshake ends with the alert of rustls, and all other rejections end
//! without any.

mod admission;
mod certificate;
mod relay;
mod session;
mod termination;

pub(super) use admission::Admission;
pub(super) use relay::relay;
pub(super) use session::{Flaw, Kind, Session, handshake};
pub(super) use termination::{Termination, Terminations};
