//! Watches against an API server in this process.

mod consumer;
mod cut;
mod kinds;
mod lifetime;
mod namespaces;
mod referenced;
mod streams;
mod wide;
