//! Stream documents: the configuration of a proxy for TCP, UDP and TLS beside PingSIX.
//!
//! PingSIX has no stream proxy. TCPRoute, UDPRoute and TLSRoute become documents nevertheless, modelled on the
//! `stream_routes` of APISIX, under a prefix of their own that another program reads.
//! `docs/reference/stream-documents.md` describes them for authors of that program; this module has the types:
//!
//! - [`StreamRoute`], [`StreamUpstream`], [`StreamSsl`] and [`StreamCa`] are the documents, [`StreamConfig`] all of one prefix;
//! - [`validate()`] has their rules; every translated document keeps them;
//! - [`StreamConfig::route_for`] finds the route of a connection, independent of the order of documents.

mod config;
mod document;
mod front;
mod key;
mod ports;
mod select;
mod validate;

pub use config::{StreamConfig, StreamDecodeError};
pub use document::{
    ANY_NAME, ClientAuth, ClientAuthMode, Destination, HTTP_PROTOCOLS, RejectReason, StreamCa,
    StreamDocument, StreamProtocol, StreamRoute, StreamSsl, StreamTarget, StreamUpstream, TlsMode,
};
pub use front::{FRONT_PORT, FRONT_SLOTS, front_address};
pub use key::{StreamKey, StreamKind};
pub use ports::{LOW_PORT_OFFSET, free_port, listening_ports, port_after, unprivileged};
pub use select::Arrival;
pub use validate::{StreamViolation, validate};

#[cfg(test)]
mod tests;
