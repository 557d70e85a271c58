//! Objects of APISIX, of the Go controller of PingSIX and of ingress-nginx in, objects of Gateway API and a report out.
//!
//! ```text
//! Input ──► source (objects, field by field) ──► convert ──► objects, Report
//!            │                        consumer, plugin ┘       │           ▲
//!            └──► asked (requests) ──────────────► judge ◄── translated, answer
//!                                                    └── overrules ────────┘
//! Input ──► original (models of the former controllers) ──► replay ◄── translated, answer
//! ```
//!
//! The library reads no file and asks no cluster. Each field of the input is taken with a verdict, and a field that is left is a
//! loss. A rule with a loss that might admit other requests is not written. In the end, `convert/account.rs` compares the report
//! with the input, so that each field is named.
//!
//! [`migrate`] has the objects and the report, [`replay`] the requests whose answers differ, and [`referents`] the objects that a
//! conversion needs by name.

mod answer;
mod asked;
mod choices;
mod consumer;
mod convert;
mod error;
mod input;
mod judge;
mod migration;
mod objects;
mod original;
mod origins;
mod owner;
mod plugin;
mod predecessor;
mod replay;
mod report;
mod source;
mod translated;
mod words;

pub use choices::Choices;
pub use error::{InputError, ManifestError, ReplayError};
pub use input::Input;
pub use migration::{Migration, migrate, referents, replay};
pub use objects::file_name;
pub use predecessor::{APISIX_GROUP, version_to_convert};
pub use replay::{ReplayHost, Replayed, Requests};
pub use report::{Report, ReportFormat};
pub use words::{counted, printable};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
