//! Watches against an API server in this process.

mod feed;
