//! Stage 3: attach routes to listeners.

mod allowed_routes;
mod conflict;
mod hostname;
mod listener;
mod overlap;
mod parent;
mod server_name;
mod stream;

#[cfg(test)]
pub(crate) use allowed_routes::AllowedNamespaces;
pub use hostname::{Hostname, HostnameFlaw};
pub(crate) use hostname::{covers as hostname_covers, precedence as hostname_precedence};
pub(crate) use listener::{Listener, ListenerState, Protocol, judge_listeners};
pub(crate) use overlap::Overlap;
pub(crate) use parent::{Attachment, ServedName, attach_route, served_names};
pub(crate) use server_name::ServerName;
pub(crate) use stream::judge_stream_listeners;
