//! Timeouts towards a backend.

use serde::{Deserialize, Serialize};

/// The timeouts of one connection to a backend, in whole seconds, each 1 to 86400.
///
/// They are idle timers, not limits on the whole exchange, and running into one answers 502.
/// PingSIX: `src/config/mod.rs`, `Timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeout {
    /// Seconds to establish a connection.
    pub connect: u64,
    /// Seconds between two successful writes.
    pub send: u64,
    /// Seconds between two successful reads.
    pub read: u64,
}
