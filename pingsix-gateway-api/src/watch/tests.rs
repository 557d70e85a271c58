//! Watches against an API server in this process.

mod cut;
mod feed;
mod kinds;
mod lifetime;
mod namespaces;
mod referenced;
mod streams;
mod wide;
