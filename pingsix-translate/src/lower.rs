//! Lower: from attached rules to PingSIX documents.
//!
//! The modules in the order of the data: [`plane`] spreads listeners over data planes and finds the zones of hosts of
//! each; [`rows`] finds the rows of each zone, and [`budget`] the rows within the budget; [`table`] turns the rows of
//! a zone into Routes with decision lists; [`closure`] makes the table independent of PingSIX's insertion order;
//! [`decision`] lowers the lists, with [`redirect`] for filters, [`host`] for the hosts of requests, [`filters`] and [`service`] for plugins that Routes share, and
//! [`upstream`] for targets; [`document`] writes Routes, [`shared`] the documents that they share, and [`naming`] gives ids. [`change`]
//! holds a lowered data plane, and writes the documents that differ, at first from those of an empty table. [`lowering`] has the
//! inputs of all of these, and [`room`] is the rest of a budget.
//! [`stream`] does the same for TCP, UDP and TLS, which have few criteria.

mod budget;
mod change;
mod closure;
mod data_plane;
mod decision;
mod document;
mod filters;
mod host;
mod id;
mod lowering;
mod naming;
mod path_map;
mod plane;
mod redirect;
mod room;
mod route_sizes;
mod rows;
mod service;
mod shared;
mod ssl;
mod stream;
mod table;
mod upstream;

pub(crate) use change::{LoweredPlane, LoweringDiff, RouteChange, RouteRefusals};
pub use data_plane::{DataPlane, Size, StreamPlane};
pub(crate) use lowering::Lowering;
pub(crate) use plane::{Plane, RuleRef, data_plane_of, ingress_planes, planes};
pub(crate) use rows::{Attachments, RouteInput, ZoneRefusal, ZoneRefusalCause};
pub(crate) use ssl::{FirstNames, NameBytes, PresentedCertificate, ServedCertificate, beyond_name_bytes};
pub(crate) use stream::{LoweredStreams, StreamListeners, lower_streams};
