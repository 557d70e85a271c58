//! The state of one watch: its filter, position and responses.

use prost::Message;
use tokio::time::Instant;

use crate::embedded::fair_limit::FairPermit;
use crate::embedded::readers::WatchGuard;
use crate::embedded::resting_watches::RestGuard;
use crate::embedded::service::header;
use crate::embedded::stats::GaugeGuard;
use crate::embedded::store::{Change, Commit, EVENT_OVERHEAD, KeyRange, ScopeSize, Store};
use crate::proto::etcdserverpb::watch_create_request::FilterType;
use crate::proto::etcdserverpb::{WatchCreateRequest, WatchResponse};
use crate::proto::mvccpb::Event;

#[derive(Debug)]
pub(super) struct WatchState {
    pub(super) id: i64,
    pub(super) range: KeyRange,
    /// The position: everything below this revision was sent or filtered out.
    pub(super) next: i64,
    /// The number of changes of the commit at `next` that were sent or skipped.
    sent: usize,
    /// The end of its rest, during which it receives nothing.
    rest: Option<(Instant, RestGuard)>,
    filter: Filter,
    with_previous: bool,
    fragment: bool,
    progress: Progress,
    _permits: WatchPermits,
    _registration: WatchGuard,
}

/// The count of a watch among all watches and on its connection.
pub(super) type WatchPermits = (FairPermit, GaugeGuard);

/// The mode in which a watch receives changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryMode {
    /// The current state in as few responses as possible; the watch covers documents of this size.
    Latest { size: ScopeSize },
    /// Each change of each revision.
    Each,
}

/// The kinds of changes that a watch wants.
#[derive(Clone, Copy, Debug)]
struct Filter {
    puts: bool,
    deletes: bool,
}

/// State of the progress notifications of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The watch has none.
    NotWanted,
    /// Nothing was sent since the last tick.
    Due,
    /// Events with their revision were sent since the last tick.
    Sent,
}

impl WatchState {
    pub(super) fn new(
        id: i64,
        range: KeyRange,
        next: i64,
        request: &WatchCreateRequest,
        present: (WatchPermits, WatchGuard),
    ) -> Self {
        let (present, reading) = present;
        let filters: Vec<FilterType> = request.filters().collect();
        Self {
            id,
            range,
            next,
            sent: 0,
            rest: None,
            filter: Filter {
                puts: !filters.contains(&FilterType::Noput),
                deletes: !filters.contains(&FilterType::Nodelete),
            },
            with_previous: request.prev_kv,
            fragment: request.fragment,
            progress: if request.progress_notify { Progress::Due } else { Progress::NotWanted },
            _permits: present,
            _registration: reading,
        }
    }

    /// The mode of a watch. A watch of whole scopes mirrors them and receives the current state. A watch with
    /// previous values, with a filter, or of a part of a scope follows changes and receives all of them.
    pub(super) fn delivery_mode(&self, store: &Store) -> DeliveryMode {
        let plain = !self.with_previous && self.filter.puts && self.filter.deletes;
        match store.covered(&self.range) {
            Some(size) if plain => DeliveryMode::Latest { size },
            Some(_) | None => DeliveryMode::Each,
        }
    }

    /// The end of its rest, if it rests.
    pub(super) fn rest_end(&self) -> Option<Instant> {
        self.rest.as_ref().map(|(until, _)| *until)
    }

    pub(super) fn begin_rest(&mut self, until: Instant, rest: RestGuard) {
        self.rest = Some((until, rest));
    }

    /// Ends the rest. The store keeps the deletions since its begin until the guard is dropped.
    pub(super) fn end_rest(&mut self) -> Option<RestGuard> {
        self.rest.take().map(|(_, rest)| rest)
    }

    /// The next response with changes of `commit`, the first commit that the watch has not seen completely, and
    /// whether it is the last for it. There is none when the filter leaves nothing, and several when previous values
    /// make one too large.
    pub(super) fn next_response(&mut self, commit: &Commit, limit: usize) -> Option<(WatchResponse, bool)> {
        if commit.revision > self.next {
            self.sent = 0;
        }
        let (mut events, mut bytes) = (Vec::<Event>::new(), 0);
        let mut is_last = true;
        let first = self.sent;
        for (place, change) in commit.changes.iter().enumerate().skip(first).filter(|(_, it)| self.wants(it))
        {
            let event = change.to_proto(self.with_previous);
            bytes += event.encoded_len() + EVENT_OVERHEAD;
            if bytes > limit && !events.is_empty() {
                (self.sent, is_last) = (place, false);
                break;
            }
            events.push(event);
        }
        self.next = if is_last { commit.revision + 1 } else { commit.revision };
        if is_last {
            self.sent = 0;
        }
        let mut response = self.response(commit.revision, events);
        response.fragment = self.fragment && !is_last;
        (!response.events.is_empty()).then_some((response, is_last))
    }

    pub(super) fn response(&self, revision: i64, events: Vec<Event>) -> WatchResponse {
        WatchResponse {
            header: Some(header(revision)),
            watch_id: self.id,
            events,
            ..WatchResponse::default()
        }
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

    fn wants(&self, change: &Change) -> bool {
        let kind = match change {
            Change::Put { .. } => self.filter.puts,
            Change::Delete { .. } => self.filter.deletes,
        };
        kind && self.range.contains(change.key())
    }
}
