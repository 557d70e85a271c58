//! One watch: which changes it wants, and how they become responses.

use prost::Message;
use tokio::time::Instant;

use crate::embedded::readers::WatchGuard;
use crate::embedded::rests::Rest;
use crate::embedded::service::header;
use crate::embedded::shares::Permit;
use crate::embedded::stats::Present;
use crate::embedded::store::{Change, Commit, EVENT_OVERHEAD, KeyRange, Store};
use crate::proto::etcdserverpb::watch_create_request::FilterType;
use crate::proto::etcdserverpb::{WatchCreateRequest, WatchResponse};
use crate::proto::mvccpb::Event;

#[derive(Debug)]
pub(super) struct WatchState {
    pub(super) id: i64,
    pub(super) range: KeyRange,
    /// Everything below this revision was sent, or is not wanted.
    pub(super) next: i64,
    /// How many changes of the commit at `next` were sent or skipped.
    sent: usize,
    /// Until when it is told nothing.
    rest: Option<(Instant, Rest)>,
    filter: Filter,
    with_before: bool,
    fragment: bool,
    progress: Progress,
    _present: Counted,
    _reading: WatchGuard,
}

/// A watch counts in all, and on its connection.
pub(super) type Counted = (Permit, Present);

/// What a watch is told of the changes it has not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Telling {
    /// What is now, in as few responses as can be; it covers this many documents.
    Latest { documents: usize },
    /// Each change of each revision.
    Each,
}

/// Which kinds of changes a watch wants.
#[derive(Clone, Copy, Debug)]
struct Filter {
    puts: bool,
    deletes: bool,
}

/// Whether a watch is to be told the revision at the next tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It did not ask.
    NotWanted,
    /// Nothing was sent since the last tick.
    Due,
    /// Events were sent since the last tick, and told it.
    Told,
}

impl WatchState {
    pub(super) fn new(
        id: i64,
        range: KeyRange,
        next: i64,
        request: &WatchCreateRequest,
        present: (Counted, WatchGuard),
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
            with_before: request.prev_kv,
            fragment: request.fragment,
            progress: if request.progress_notify { Progress::Due } else { Progress::NotWanted },
            _present: present,
            _reading: reading,
        }
    }

    /// A watch of whole scopes mirrors them, and is told what is. One that asks for the pair before a change, for one
    /// kind of changes, or for a part of a scope, follows what happens there, and is told all of it.
    pub(super) fn telling(&self, store: &Store) -> Telling {
        let plain = !self.with_before && self.filter.puts && self.filter.deletes;
        match store.covered(&self.range) {
            Some(documents) if plain => Telling::Latest { documents },
            Some(_) | None => Telling::Each,
        }
    }

    /// Until when it is told nothing, if it rests.
    pub(super) fn rests_until(&self) -> Option<Instant> {
        self.rest.as_ref().map(|(until, _)| *until)
    }

    pub(super) fn rests(&mut self, until: Instant, rest: Rest) {
        self.rest = Some((until, rest));
    }

    /// Ends the rest; what happened meanwhile is kept as long as what is returned.
    pub(super) fn wakes(&mut self) -> Option<Rest> {
        self.rest.take().map(|(_, rest)| rest)
    }

    /// The next response that tells this watch of `commit`, the first one it has not seen whole, and whether it is the last.
    /// There is none when it wants nothing more of it, and several when the pairs before the change, which the watch
    /// asked for, make one too large.
    pub(super) fn next_response(&mut self, commit: &Commit, limit: usize) -> Option<(WatchResponse, bool)> {
        if commit.revision > self.next {
            self.sent = 0;
        }
        let (mut events, mut bytes) = (Vec::<Event>::new(), 0);
        let mut is_last = true;
        let first = self.sent;
        for (place, change) in commit.changes.iter().enumerate().skip(first).filter(|(_, it)| self.wants(it))
        {
            let event = change.to_proto(self.with_before);
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

    /// Notes that events are sent, which tell the revision by themselves.
    pub(super) fn speaks(&mut self) {
        if self.progress == Progress::Due {
            self.progress = Progress::Told;
        }
    }

    /// Whether the watch is to be told now that it has seen everything up to `revision`.
    pub(super) fn take_progress_due(&mut self, revision: i64) -> bool {
        let due = self.progress == Progress::Due && self.next <= revision + 1;
        if self.progress == Progress::Told {
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
