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

mod address;
mod command;
mod curl;
mod example;
mod form;
mod model;
mod page;
mod pages;
mod part;
mod pasted;
mod question;
mod route_text;
mod status_mark;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use command::translation_options;
pub use model::{DataPlaneView, Finding, FindingLevel, Instance, Model, OwnerView, PlaneDocuments};
pub use pasted::pasted_request;
pub use question::{Question, question};

/// The longest text of an object on a page, in characters. The API server allows messages of 32 KiB.
const MAX_TEXT_CHARS: usize = 1_000;

/// A text, cut to the bound of a page.
fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{} …", &text[..end])),
    }
}
