//! Stream documents: what a proxy for TCP, UDP and TLS beside PingSIX is told.
//!
//! PingSIX has no stream proxy. TCPRoute, UDPRoute and TLSRoute become documents all the same, modelled on the
//! `stream_routes` of APISIX, under a prefix of their own that another program reads. `docs/reference/stream-documents.md`
//! describes them for whoever writes that program; this module is the same in types:
//!
//! - [`StreamRoute`], [`StreamUpstream`] and [`StreamSsl`] are the documents, [`StreamConfig`] all of one prefix;
//! - [`validate()`] says what must hold of them; nothing that breaks a rule leaves the translation;
//! - [`StreamConfig::route_for`] says which route takes a connection, whatever the order the documents came in.

mod config;
mod document;
mod key;
mod select;
mod validate;

pub use config::{StreamConfig, StreamDecodeError};
pub use document::{
    Destination, Rejection, StreamDocument, StreamProtocol, StreamRoute, StreamSsl, StreamTarget,
    StreamUpstream, TlsMode,
};
pub use key::{StreamKey, StreamKind};
pub use select::Arrival;
pub use validate::{StreamViolation, validate};

#[cfg(test)]
mod tests;
