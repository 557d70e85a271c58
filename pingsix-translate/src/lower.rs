//! Lower: attached rules to PingSIX documents.
//!
//! The way of the data: [`plane`] spreads listeners over data planes and finds the zones of hosts each of them has;
//! [`rows`] finds the rows of each zone, and [`budget`] the ones there is room for; [`table`] turns the rows of a zone
//! into Routes with decision lists; [`closure`] makes the table independent of PingSIX's insertion order; [`decision`]
//! lowers the lists, with [`plugins`] and [`redirect`] for filters, [`service`] for policies and [`upstream`] for targets; [`document`] writes
//! everything down. [`change`] does all that for what changed alone. [`stream`] does all that for TCP, UDP and TLS, where there is little to decide by.

mod budget;
mod change;
mod closure;
mod data_plane;
mod decision;
mod document;
mod id;
mod named;
mod path_map;
mod plane;
mod redirect;
mod rows;
mod service;
mod ssl;
mod stream;
mod table;
mod upstream;

pub(crate) use budget::{Lowered, lower_plane, lower_plane_to_change};
pub(crate) use change::{Changed, LoweredPlane, RouteChange, Stale};
pub use data_plane::{DataPlane, Size, StreamPlane};
pub(crate) use document::Lowering;
pub(crate) use plane::{Plane, RuleRef, data_plane_of, ingress_planes, planes};
pub(crate) use rows::{Attachments, RouteInput, ZoneRefusal, ZoneRefusalCause};
pub(crate) use ssl::{NameBytes, Names, ServedCertificate, Shown, beyond_name_bytes};
pub(crate) use stream::{Listened, LoweredStreams, lower_streams};
