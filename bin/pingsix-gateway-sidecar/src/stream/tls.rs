//! Termination of TLS.
//!
//! ```text
//! ssls ─► certificate ─► termination: the certificates of a route, the validation of its clients,
//! cas ──► clients ─────►      │       and a ticket key of its own
//!                             │
//! ClientHello ─► admission ─► handshake ─► session: the plaintext of one connection ─► relay
//! ```
//!
//! rustls reads the `ClientHello` that chose the route once more, and must find the same server name. The backend is
//! connected to after the handshake; a backend that speaks HTTP, when the client has begun its first request. A failed
//! handshake ends with the alert of rustls, a client that asks for nothing gets `close_notify`, and all other rejections
//! end without any alert.

mod admission;
mod certificate;
mod clients;
mod relay;
mod session;
mod termination;

pub(super) use admission::Admission;
pub(super) use relay::relay;
pub(super) use session::{HandshakeError, Kind, Session, handshake};
pub(super) use termination::{Settings, Termination, Terminations};
