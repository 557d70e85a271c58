//! Read-only pages for people: the Gateways and IngressClasses of a program, their routes, their data planes, and
//! explanations of requests.
//!
//! ```text
//! request ──► question (host, method, path, parameters; all bounded) ──► Question ──┐
//! program ──► Model (objects, verdicts, documents, delivery) ──────────────────────┴──► answer ──► HTML
//! ```
//!
//! Pages are a pure function of a [`Question`] and a [`Model`]. The programs own the connection: the controller on
//! `debug.address`, and `pingsix-gatewayctl serve --view`.
//!
//! - The pages change nothing. Methods other than GET and HEAD are refused.
//! - The pages show no Secret: [`Model::new`] drops all kinds that no page shows, and pages show documents only through an
//!   explanation, which holds no configuration of plugins. Values that filters write into headers are left out.
//! - Browsers load nothing from elsewhere, by a content security policy. All texts of objects are escaped by `maud`.
//! - Each page is bounded: long lists have pages, and long texts are cut.
//! - The pages work without JavaScript. The script adds a button that copies a command.

mod command;
mod curl;
mod example;
mod model;
mod page;
mod pages;
mod pasted;
mod question;
mod route_text;
mod status_mark;
#[cfg(test)]
mod tests;

pub use command::translation_options;
pub use model::{DataPlaneView, Finding, FindingLevel, Instance, Model, OwnerView, PlaneDocuments};
pub use pasted::pasted_request;
pub use question::{Question, question};
