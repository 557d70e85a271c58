//! Backends: the endpoints to which each rule sends requests, as policies demand. Each backendRef is resolved, or refused
//! with the field at fault.

mod action;
mod backend;
mod endpoint;
mod service;

pub(crate) use action::{Action, Target};
pub(crate) use backend::{Backend, BackendKey, Backends, ConnectionSettings, ResolvedRule};
pub(crate) use endpoint::Endpoints;
pub(crate) use service::AppProtocol;
