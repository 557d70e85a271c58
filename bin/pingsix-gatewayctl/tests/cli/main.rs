//! The command line: arguments, output, exit codes, and `serve` over loopback.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, also in what it shares with others"
)]

/// Of the contract tests, which have backends behind TLS as well.
#[allow(dead_code, reason = "they use more of it")]
#[path = "../../../../pingsix-gateway-api/tests/contract/authority.rs"]
mod authority;
mod browser;
mod check;
#[cfg(feature = "cluster")]
mod cluster;
#[path = "../scenarios/connection.rs"]
mod connection;
mod crds;
mod diff;
mod examples;
mod explain;
mod ingress;
mod input;
mod migrate;
mod migrate_ingress;
mod migrate_replay;
mod mistakes;
mod pingsix;
mod pingsix_config;
mod policies;
mod quickstart;
#[path = "../scenarios/sample.rs"]
mod sample;
mod serve;
mod serve_tls;
mod stream;
mod support;
mod translate;
mod view;
