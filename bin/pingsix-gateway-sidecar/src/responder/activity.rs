use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Version;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::options::Options;

/// Longer than any connection lives, short enough to be added to any time.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// The activity of one connection, for its time limits.
///
/// hyper's own limit for heads also counts the time between two requests, and HTTP/2 has none at all; so the limits are
/// kept here, in one place for both.
#[derive(Debug)]
pub(crate) struct Activity {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    in_flight: usize,
    http2: bool,
    served: bool,
    body_left: bool,
    /// Since when no request has been in flight.
    quiet_since: Instant,
    /// Since when the head of a request has been arriving.
    head_since: Option<Instant>,
}

/// The awaited event of a connection without a request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// For the rest of a head, or the first one: past this time the client is not worth an answer.
    Head(Instant),
    /// For the next request, since this time.
    Idle(Instant),
}

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        let state = State {
            in_flight: 0,
            http2: false,
            served: false,
            body_left: false,
            quiet_since: Instant::now(),
            head_since: None,
        };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new() })
    }

    /// Bytes arrived. Between requests they are the beginning of a head.
    pub(crate) fn bytes_read(&self) {
        let mut state = self.lock();
        // In HTTP/2 they may as well be a ping; there the time between requests is the limit.
        if state.served && !state.http2 && state.in_flight == 0 && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
            drop(state);
            self.changed.notify_one();
        }
    }

    /// A request has arrived; it is in flight until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>, version: Version) -> InFlight {
        let mut state = self.lock();
        state.in_flight += 1;
        state.served = true;
        state.http2 = version == Version::HTTP_2;
        state.head_since = None;
        drop(state);
        self.changed.notify_one();
        InFlight(Arc::clone(self))
    }

    /// The body of a request was not read to its end.
    pub(crate) fn body_left(&self) {
        self.lock().body_left = true;
    }

    /// Whether the peer may still be sending a body that the responder will not read.
    pub(crate) fn has_body_left(&self) -> bool {
        self.lock().body_left
    }

    /// The awaited event; `None` while a request is in flight.
    pub(crate) fn waiting(&self, options: &Options) -> Option<Waiting> {
        let state = self.lock();
        match (state.in_flight, state.served, state.head_since) {
            (0, false, _) => Some(Waiting::Head(after(state.quiet_since, options.header_timeout))),
            (0, true, Some(since)) => Some(Waiting::Head(after(since, options.header_timeout))),
            (0, true, None) => Some(Waiting::Idle(state.quiet_since)),
            _ => None,
        }
    }

    /// Returns when [`waiting`](Self::waiting) may have changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Activity>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        state.quiet_since = Instant::now();
        drop(state);
        self.0.changed.notify_one();
    }
}

/// A time limit; a duration that cannot be added is as good as none.
pub(crate) fn after(since: Instant, duration: Duration) -> Instant {
    since + duration.min(FOREVER)
}
