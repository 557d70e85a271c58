//! Options of the running server.

use std::time::Duration;

use super::LIST_LIMIT;
use super::pace::Pace;

/// Options of the running server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// Size limit of one watch response. PingSIX reads messages up to 4 MiB.
    pub(super) response_limit: usize,
    pub(super) pace: Pace,
    pub(super) progress_interval: Duration,
    pub(super) stall_timeout: Duration,
    pub(super) unread_limit: usize,
    pub(super) connection_limit: usize,
    pub(super) watch_limit: usize,
    pub(super) stream_limit: u32,
    pub(super) preface_timeout: Duration,
    pub(super) keepalive_interval: Duration,
    pub(super) keepalive_timeout: Duration,
    pub(super) drain_timeout: Duration,
    pub(super) allow_plaintext_beyond_loopback: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            response_limit: 3_584 * 1024,
            pace: Pace::default(),
            progress_interval: Duration::from_secs(15),
            stall_timeout: Duration::from_secs(30),
            unread_limit: 64 * LIST_LIMIT,
            connection_limit: 4_096,
            watch_limit: 65_536,
            stream_limit: 100,
            preface_timeout: Duration::from_secs(10),
            keepalive_interval: Duration::from_secs(10),
            keepalive_timeout: Duration::from_secs(20),
            drain_timeout: Duration::from_secs(5),
            allow_plaintext_beyond_loopback: false,
        }
    }
}
