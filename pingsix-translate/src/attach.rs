//! Attach: the listeners of a Gateway, and the attachment of routes to listeners.

mod allowed_routes;
mod capacity;
mod conflict;
mod front;
mod front_slots;
mod listener;
mod listener_judge;
mod listener_source;
mod listeners;
mod overlap;
mod overlap_search;
mod parent;
mod permitted;
mod protocol;
mod selector;
mod server_name;
mod stream;
mod tls;

#[cfg(test)]
pub(crate) use allowed_routes::AllowedNamespaces;
pub(crate) use capacity::MANAGED_PORTS;
pub(crate) use conflict::claimed_protocol;
pub(crate) use front::ClientValidation;
pub(crate) use listener::{Listener, ListenerState};
pub(crate) use listener_source::ListenerSupport;
pub(crate) use listeners::{ListenerOwner, Listeners, judge_listeners};
pub(crate) use parent::{
    Attachment, ServedName, attach_route, attached_listeners, only_host, served_hosts, served_names,
};
pub(crate) use permitted::{permitted_references, permitted_references_of_policies};
pub(crate) use protocol::Protocol;
pub(crate) use server_name::ServerName;
