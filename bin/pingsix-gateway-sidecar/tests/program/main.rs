//! The program with the stream role: arguments, sources of documents, pages and signals.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test that cannot go on fails")]

mod arguments;
mod documentation;
mod pages;
mod process;
mod quickstart;
