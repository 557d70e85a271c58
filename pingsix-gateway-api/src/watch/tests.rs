//! Watches against an API server in this process.

mod feed;
mod kinds;
mod lifetime;
mod namespaces;
mod referenced;
mod streams;
mod wide;
