//! Timeouts towards a backend.

use serde::{Deserialize, Serialize};

/// The timeouts of one connection to a backend, in whole seconds, each 1 to 86400.
///
/// The timeouts are idle timeouts, without a limit on the whole exchange. After a timeout, PingSIX answers 502.
/// PingSIX: `src/config/mod.rs`, `Timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Timeout {
    /// Seconds to establish a connection.
    #[garde(range(min = 1, max = 86400))]
    pub connect: u64,
    /// Seconds between two successful writes.
    #[garde(range(min = 1, max = 86400))]
    pub send: u64,
    /// Seconds between two successful reads.
    #[garde(range(min = 1, max = 86400))]
    pub read: u64,
}
