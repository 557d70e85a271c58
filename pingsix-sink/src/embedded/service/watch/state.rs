//! The state of one watch: its position and its rest.

use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::embedded::batch::Wanted;
use crate::embedded::fair_limit::FairPermit;
use crate::embedded::pace::{Pace, Rest};
use crate::embedded::readers::WatchGuard;
use crate::embedded::service::header;
use crate::embedded::store::HeldStates;
use crate::proto::etcdserverpb::{WatchCreateRequest, WatchResponse};

#[derive(Debug)]
pub(super) struct WatchState {
    pub(super) id: i64,
    pub(super) wanted: Wanted,
    /// The position: everything below this revision was sent.
    pub(super) next: i64,
    /// Its last rest, during which it receives nothing.
    rest: Option<Rest>,
    /// The states that its client has while it rests; the history may forget them. The next change is sent after the
    /// rest, so they cost what changes in one rest.
    held: Option<HeldStates>,
    progress: Progress,
    _permits: WatchPermits,
    _registration: WatchGuard,
}

/// The count of a watch among all watches and on its connection.
pub(super) type WatchPermits = (FairPermit, OwnedSemaphorePermit);

/// State of the progress notifications of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The watch has none.
    NotWanted,
    /// No events were sent since the last tick.
    Due,
    /// Events with their revision were sent since the last tick.
    Sent,
}

impl WatchState {
    pub(super) fn new(
        id: i64,
        wanted: Wanted,
        next: i64,
        request: &WatchCreateRequest,
        (permits, registration): (WatchPermits, WatchGuard),
    ) -> Self {
        Self {
            id,
            wanted,
            next,
            rest: None,
            held: None,
            progress: if request.progress_notify { Progress::Due } else { Progress::NotWanted },
            _permits: permits,
            _registration: registration,
        }
    }

    /// The end of its last rest, by the highest confirmed revision.
    pub(super) fn rest_end(&self, confirmed: i64) -> Option<Instant> {
        self.rest.map(|rest| rest.end(confirmed))
    }

    /// Begins a rest after everything up to a revision was sent.
    pub(super) fn begin_rest(&mut self, pace: &Pace, interval: Duration, sent: i64, held: HeldStates) {
        self.rest = pace.rest(self.rest, Instant::now(), sent, interval);
        self.held = self.rest.is_some().then_some(held);
    }

    /// Takes the states that the client has at the end of a rest.
    pub(super) fn take_held(&mut self) -> Option<HeldStates> {
        self.held.take()
    }

    /// Drops the states that the client has; the history may have them.
    pub(super) fn forget_held(&mut self) {
        self.held = None;
    }

    /// A response whose events are encoded already.
    pub(super) fn response(&self, revision: i64) -> WatchResponse {
        WatchResponse { header: Some(header(revision)), watch_id: self.id, ..WatchResponse::default() }
    }

    /// Records that events with a revision were sent.
    pub(super) fn record_sent(&mut self) {
        if self.progress == Progress::Due {
            self.progress = Progress::Sent;
        }
    }

    /// Whether a progress notification with `revision` is due.
    pub(super) fn take_progress_due(&mut self, revision: i64) -> bool {
        let due = self.progress == Progress::Due && self.next <= revision + 1;
        if self.progress == Progress::Sent {
            self.progress = Progress::Due;
        }
        due
    }
}
