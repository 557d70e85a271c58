//! Stage 3: attach routes to listeners.

mod allowed_routes;
mod capacity;
mod conflict;
mod frontend;
mod listener;
mod listeners;
mod overlap;
mod parent;
mod protocol;
mod selector;
mod server_name;
mod stream;
mod tls;

#[cfg(test)]
pub(crate) use allowed_routes::AllowedNamespaces;
pub(crate) use capacity::MANAGED_PORTS;
pub(crate) use frontend::FrontendValidation;
pub(crate) use listener::{Listener, ListenerState};
pub(crate) use listeners::{ListenerOwner, Listeners, allows_listener_set, judge_listeners};
pub(crate) use overlap::Overlap;
pub(crate) use parent::{Attachment, ServedName, attach_route, attached_listeners, only_host, served_names};
pub(crate) use protocol::Protocol;
pub(crate) use server_name::ServerName;
