//! One watch: which changes it wants, and how they become responses.

use prost::Message;

use crate::embedded::readers::Reading;
use crate::embedded::service::header;
use crate::embedded::stats::Present;
use crate::embedded::store::{Change, Commit, EVENT_OVERHEAD, KeyRange};
use crate::proto::etcdserverpb::watch_create_request::FilterType;
use crate::proto::etcdserverpb::{WatchCreateRequest, WatchResponse};
use crate::proto::mvccpb::Event;

#[derive(Debug)]
pub(super) struct WatchState {
    id: i64,
    range: KeyRange,
    /// Everything below this revision was sent, or is not wanted.
    pub(super) next: i64,
    filter: Filter,
    with_before: bool,
    fragment: bool,
    progress: Progress,
    _present: Present,
    _reading: Reading,
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
        present: (Present, Reading),
    ) -> Self {
        let (present, reading) = present;
        let filters: Vec<FilterType> = request.filters().collect();
        Self {
            id,
            range,
            next,
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

    /// The responses that tell this watch of `commit`: none, one, or several when the pairs before the change, which
    /// the watch asked for, make one too large.
    pub(super) fn responses(&self, commit: &Commit, limit: usize) -> Vec<WatchResponse> {
        if !self.range.meets(&commit.scope) {
            return Vec::new();
        }
        let (mut responses, mut events, mut bytes) = (Vec::new(), Vec::<Event>::new(), 0);
        for change in commit.changes.iter().filter(|change| self.wants(change)) {
            let event = change.to_proto(self.with_before);
            let size = event.encoded_len() + EVENT_OVERHEAD;
            if bytes + size > limit && !events.is_empty() {
                responses.push(self.response(commit, std::mem::take(&mut events)));
                bytes = 0;
            }
            bytes += size;
            events.push(event);
        }
        if !events.is_empty() {
            responses.push(self.response(commit, events));
        }
        if self.fragment {
            let last = responses.len().saturating_sub(1);
            responses[..last].iter_mut().for_each(|response| response.fragment = true);
        }
        responses
    }

    /// Notes that events were sent, which tell the revision by themselves.
    pub(super) fn spoke(&mut self) {
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

    fn response(&self, commit: &Commit, events: Vec<Event>) -> WatchResponse {
        WatchResponse {
            header: Some(header(commit.revision)),
            watch_id: self.id,
            events,
            ..WatchResponse::default()
        }
    }
}
