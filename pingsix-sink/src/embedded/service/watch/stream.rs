//! One watch stream: several watches of one client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, pending};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};
use tonic::{Status, Streaming};

use super::channel::{ResponseSender, StreamClosed};
use super::state::{WatchPermits, WatchState};
use crate::embedded::batch::{Batch, Wanted};
use crate::embedded::peer::Peer;
use crate::embedded::readers::StreamSignals;
use crate::embedded::service::{Services, header, refusal};
use crate::embedded::store::{Compacted, EVENT_OVERHEAD, KeyRange, Store, StoreError};
use crate::proto::etcdserverpb::watch_request::RequestUnion;
use crate::proto::etcdserverpb::{WatchCreateRequest, WatchRequest, WatchResponse};

/// The id of a response without a watch.
const NO_WATCH: i64 = -1;

/// Reason of the end of a stream.
#[derive(Debug)]
enum StreamEnd {
    /// The client has closed the stream.
    StreamClosed,
    /// The client left a response unread for too long.
    Stalled,
    /// The client receives this status.
    Status(Status),
}

impl From<StreamClosed> for StreamEnd {
    fn from(StreamClosed: StreamClosed) -> Self {
        Self::StreamClosed
    }
}

/// Reason of the end of a watch before its stream ends.
#[derive(Debug)]
enum WatchEnd {
    /// The changes that it has not received are compacted below this revision.
    Compacted(i64),
    /// The client may no longer read the range, for this reason.
    Denied(String),
}

impl From<Compacted> for WatchEnd {
    fn from(Compacted(revision): Compacted) -> Self {
        Self::Compacted(revision)
    }
}

/// Progress of the watches of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Some watches have more to receive now.
    more: bool,
    /// Some watches have more to receive at this time.
    rest: Option<Instant>,
    /// All watches rest, so changes until then cannot be sent.
    all_rest: bool,
}

impl Progress {
    fn is_complete(self) -> bool {
        !self.more && self.rest.is_none()
    }

    fn and(self, other: Self) -> Self {
        let rest = self.rest.into_iter().chain(other.rest).min();
        Self { more: self.more || other.more, rest, all_rest: self.all_rest && other.all_rest }
    }
}

pub(super) struct WatchStream {
    services: Services,
    peer: Arc<Peer>,
    /// Changes when the watches have to be authorised again.
    access: watch::Receiver<u64>,
    requests: Streaming<WatchRequest>,
    sender: ResponseSender,
    watches: BTreeMap<i64, WatchState>,
    signals: Arc<StreamSignals>,
    next_id: i64,
    progress_requested: bool,
}

impl WatchStream {
    pub(super) fn new(
        services: Services,
        peer: Arc<Peer>,
        requests: Streaming<WatchRequest>,
        sender: ResponseSender,
    ) -> Self {
        Self {
            access: services.replica.access.changes(),
            services,
            peer,
            requests,
            sender,
            watches: BTreeMap::new(),
            signals: Arc::default(),
            next_id: 0,
            progress_requested: false,
        }
    }

    pub(super) async fn run(mut self) {
        match self.drive().await {
            Ok(()) | Err(StreamEnd::StreamClosed) => {}
            Err(StreamEnd::Stalled) => {
                self.services.replica.counters.update(|stats| stats.streams_stalled += 1);
                tracing::warn!(
                    watches = self.watches.len(),
                    "connection closed: its client left a watch response unread"
                );
                self.peer.close();
            }
            Err(StreamEnd::Status(status)) => self.sender.end(status),
        }
    }

    async fn drive(&mut self) -> Result<(), StreamEnd> {
        let period = self.services.replica.options.progress_interval;
        let mut ticks = interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let shutdown = self.services.shutdown.clone();
        let mut progress = Progress::default();
        loop {
            // A client with many requests must not occupy a thread.
            tokio::task::consume_budget().await;
            let mut tick = false;
            let rested =
                progress.rest.map_or(Either::Left(pending()), |rest| Either::Right(sleep_until(rest)));
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Err(StreamEnd::Status(refusal::shutting_down())),
                // The end of a client is also noticed while no response is due.
                () = self.sender.closed() => return Err(StreamEnd::StreamClosed),
                // This precedes the requests, because a client may send them faster than they are answered. The
                // sender lives as long as the replica, which this task holds.
                _ = self.access.changed() => self.check_all().await?,
                _ = ticks.tick() => tick = true,
                request = self.requests.message() => match request {
                    Ok(Some(request)) => self.receive(request).await?,
                    Ok(None) | Err(_) => return Ok(()),
                },
                // Without the condition, each change would wake a hundred resting streams.
                () = self.signals.changed.notified(), if !progress.all_rest => {}
                () = self.signals.confirmed.notified() => {}
                () = rested => {}
                () = std::future::ready(()), if progress.more => {}
            }
            let reached = self.services.replica.read(Store::header);
            progress = self.send_all().await?;
            if progress.is_complete() {
                self.send_progress(reached, tick).await?;
            }
        }
    }

    async fn receive(&mut self, request: WatchRequest) -> Result<(), StreamEnd> {
        match request.request_union {
            Some(RequestUnion::CreateRequest(request)) => self.create(request).await,
            Some(RequestUnion::CancelRequest(request)) => match self.watches.remove(&request.watch_id) {
                Some(_) => self.cancel(request.watch_id, WatchResponse::default()).await,
                None => Ok(()),
            },
            Some(RequestUnion::ProgressRequest(_)) => {
                self.progress_requested = true;
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn create(&mut self, request: WatchCreateRequest) -> Result<(), StreamEnd> {
        if refusal::check_key_length([&request.key, &request.range_end]).is_err() {
            return self.refuse(NO_WATCH, refusal::TOO_LARGE.to_owned()).await;
        }
        let key = if request.key.is_empty() { b"\0".as_slice() } else { &request.key };
        let range = KeyRange::new(key, &request.range_end);
        let id = match self.choose_id(&request, &range) {
            Ok(id) => id,
            Err(reason) => return self.refuse(NO_WATCH, reason.to_owned()).await,
        };
        if !request.filters.is_empty() {
            return self.refuse(NO_WATCH, "filters of events are not supported".to_owned()).await;
        }
        if let Err(denied) = self.permit(&range) {
            return self.refuse(NO_WATCH, denied).await;
        }
        let Some(present) = self.admit() else {
            return self.refuse(NO_WATCH, "too many watches".to_owned()).await;
        };
        let (admission, now) = self.services.replica.read(|store| (store.admit(&range), store.header()));
        if let Err(refusal) = admission {
            let status = self.services.refuse(&range, refusal);
            // A client that retries a broken stream waits for the scope; its other watches stay intact.
            return match refusal {
                StoreError::UnknownScope if !self.watches.is_empty() => {
                    self.refuse(id, status.message().to_owned()).await
                }
                StoreError::UnknownScope | StoreError::NotComplete => Err(StreamEnd::Status(status)),
            };
        }

        let next = if request.start_revision == 0 { now + 1 } else { request.start_revision };
        let created = WatchResponse {
            header: Some(header(now)),
            watch_id: id,
            created: true,
            ..WatchResponse::default()
        };
        self.send(created).await?;
        // The client's list came from another server or from before a restart, so the missed changes are unknown. The
        // client has to list again. A watch of future changes continues no list.
        if request.start_revision != 0 && !self.services.replica.has_listed_before(next) {
            self.services.replica.counters.update(|stats| stats.watches_from_elsewhere += 1);
            let header = self.services.replica.read(Store::header);
            return self.end_watch(id, WatchEnd::Compacted(header)).await;
        }
        let replica = &self.services.replica;
        let present = (present, replica.readers.enter(range.clone(), Arc::clone(&self.signals)));
        let wanted = Wanted { range, with_previous: request.prev_kv };
        self.watches.insert(id, WatchState::new(id, wanted, next, &request, present));
        Ok(())
    }

    /// Counts one more watch; `None` if the connection has too many, or its client has its share.
    fn admit(&self) -> Option<WatchPermits> {
        let peer = &self.peer;
        let replica = &self.services.replica;
        let permits = peer.try_add_watch().and_then(|on_connection| {
            Some((replica.watches.take(peer.holder(), peer.close_token())?, on_connection))
        });
        replica.counters.update(|stats| stats.watches_refused += u64::from(permits.is_none()));
        permits
    }

    /// Checks that the client may watch all of `range`; the error is etcd's text.
    fn permit(&self, range: &KeyRange) -> Result<(), String> {
        let access = &self.services.replica.access;
        let permitted = access.reader(self.peer.certificate()).and_then(|reader| reader.check(range));
        permitted.map_err(|denied| {
            // etcd writes the status into the text as Go does.
            let status = self.services.deny(denied);
            format!("rpc error: code = {:?} desc = {}", status.code(), status.message())
        })
    }

    /// Cancels the watches that the client may no longer read.
    async fn check_all(&mut self) -> Result<(), StreamEnd> {
        let ranges: Vec<_> =
            self.watches.iter().map(|(id, watch)| (*id, watch.wanted.range.clone())).collect();
        for (id, range) in ranges {
            if let Err(reason) = self.permit(&range) {
                self.watches.remove(&id);
                self.end_watch(id, WatchEnd::Denied(reason)).await?;
            }
        }
        Ok(())
    }

    /// Waits until the client has taken the previous response, and checks that it may still read the range after that
    /// wait.
    async fn ready(&self, range: &KeyRange) -> Result<Result<(), WatchEnd>, StreamEnd> {
        self.written().await?;
        // The sender lives as long as the replica; an unnecessary check is harmless.
        Ok(if self.access.has_changed().unwrap_or(true) {
            self.permit(range).map_err(WatchEnd::Denied)
        } else {
            Ok(())
        })
    }

    /// The id of a new watch, or the reason of its refusal.
    fn choose_id(&mut self, request: &WatchCreateRequest, range: &KeyRange) -> Result<i64, &'static str> {
        if range.is_empty() {
            return Err("mvcc: watcher range is empty");
        }
        if request.watch_id < 0 || self.watches.contains_key(&request.watch_id) && request.watch_id != 0 {
            return Err("mvcc: duplicate watch ID provided on the WatchStream");
        }
        if request.watch_id != 0 {
            return Ok(request.watch_id);
        }
        while self.watches.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        self.next_id += 1;
        Ok(self.next_id - 1)
    }

    /// Sends every watch a bounded number of pending responses.
    async fn send_all(&mut self) -> Result<Progress, StreamEnd> {
        let ids: Vec<i64> = self.watches.keys().copied().collect();
        let mut all = Progress { all_rest: !ids.is_empty(), ..Progress::default() };
        for id in ids {
            let Some(mut watch) = self.watches.remove(&id) else { continue };
            match self.send_changes(&mut watch).await? {
                Ok(progress) => {
                    all = all.and(progress);
                    self.watches.insert(id, watch);
                }
                Err(end) => {
                    all.all_rest = false;
                    if matches!(end, WatchEnd::Compacted(_)) {
                        self.services.replica.counters.update(|stats| stats.watches_compacted += 1);
                    }
                    self.end_watch(id, end).await?;
                }
            }
        }
        Ok(all)
    }

    async fn send_changes(
        &mut self,
        watch: &mut WatchState,
    ) -> Result<Result<Progress, WatchEnd>, StreamEnd> {
        let replica = Arc::clone(&self.services.replica);
        let range = &watch.wanted.range;
        let (changes, header) = replica.read(|store| (store.has_changes(range, watch.next), store.header()));
        match changes {
            Ok(true) => {}
            Ok(false) => {
                watch.next = watch.next.max(header + 1);
                return Ok(Ok(Progress::default()));
            }
            Err(compacted) => return Ok(Err(compacted.into())),
        }
        let rest = watch.rest_end(self.signals.confirmed_revision());
        if let Some(rest) = rest.filter(|rest| *rest > Instant::now()) {
            return Ok(Ok(Progress { rest: Some(rest), more: false, all_rest: true }));
        }
        self.send_latest(watch).await
    }

    /// Sends a watch the current state, in one response if it fits. Changes until the previous response is written
    /// belong to it.
    async fn send_latest(&mut self, watch: &mut WatchState) -> Result<Result<Progress, WatchEnd>, StreamEnd> {
        let replica = Arc::clone(&self.services.replica);
        let held = watch.take_held().filter(|_| self.sender.is_written());
        if held.is_none() {
            // A client that has not taken the previous response is slow, and its difference is not prepared.
            self.watches.values_mut().for_each(WatchState::forget_held);
        }
        if let Err(end) = self.ready(&watch.wanted.range).await? {
            return Ok(Err(end));
        }
        // The subtracted room is for the header of the response.
        let limit = replica.options.response_limit.saturating_sub(2 * EVENT_OVERHEAD);
        let wanted = &watch.wanted;
        let read = |store: &Store| {
            let seen = (watch.next, held.as_ref());
            let changes = Batch::shared(&replica.batches, store, wanted, seen, limit);
            changes.map(|changes| changes.map(|changes| (changes, store.clone())))
        };
        let ((batch, made), store) = match replica.read(read) {
            Ok(Some(changes)) => changes,
            Ok(None) => return Ok(Ok(Progress::default())),
            Err(compacted) => return Ok(Err(compacted.into())),
        };
        watch.next = batch.reached + 1;
        replica.counters.update(|stats| {
            stats.batches += u64::from(made);
            stats.changes_merged += batch.merged as u64;
        });
        if !batch.events.is_empty() {
            watch.record_sent();
            let response = watch.response(batch.reached);
            let bytes = self.sender.send(&response, batch.events.clone());
            replica.counters.update(|stats| {
                stats.watch_responses += 1;
                stats.watch_events += batch.event_count as u64;
                stats.watch_bytes += bytes as u64;
            });
            // A state of several messages is sent without a rest between them, so that the client has it whole.
            let range = &watch.wanted.range;
            if !batch.more {
                let (interval, states) = (replica.interval(&store, range), store.states(range));
                watch.begin_rest(&replica.options.pace, interval, batch.reached, states);
            }
        }
        Ok(Ok(Progress { more: batch.more, ..Progress::default() }))
    }

    /// Answers a progress request; with `tick`, also notifies the silent watches that asked for progress.
    async fn send_progress(&mut self, revision: i64, tick: bool) -> Result<(), StreamEnd> {
        let progress =
            |watch_id| WatchResponse { header: Some(header(revision)), watch_id, ..WatchResponse::default() };
        if std::mem::take(&mut self.progress_requested) {
            self.send(progress(NO_WATCH)).await?;
        }
        if tick {
            let quiet: Vec<i64> = self
                .watches
                .iter_mut()
                .filter_map(|(id, watch)| watch.take_progress_due(revision).then_some(*id))
                .collect();
            for id in quiet {
                self.send(progress(id)).await?;
            }
        }
        Ok(())
    }

    /// Cancels a watch with the reason.
    async fn end_watch(&self, id: i64, end: WatchEnd) -> Result<(), StreamEnd> {
        let reason = match end {
            WatchEnd::Compacted(compact_revision) => WatchResponse {
                compact_revision,
                cancel_reason: refusal::COMPACTED.to_owned(),
                ..WatchResponse::default()
            },
            WatchEnd::Denied(cancel_reason) => WatchResponse { cancel_reason, ..WatchResponse::default() },
        };
        self.cancel(id, reason).await
    }

    /// Cancels a watch; `reason` has only the reason.
    async fn cancel(&self, id: i64, reason: WatchResponse) -> Result<(), StreamEnd> {
        let header = Some(self.services.header());
        self.send(WatchResponse { header, watch_id: id, canceled: true, ..reason }).await?;
        Ok(())
    }

    /// Refuses a new watch in the one response that etcd sends in this case.
    async fn refuse(&self, id: i64, reason: String) -> Result<(), StreamEnd> {
        self.send(WatchResponse {
            header: Some(self.services.header()),
            watch_id: id,
            created: true,
            canceled: true,
            cancel_reason: reason,
            ..WatchResponse::default()
        })
        .await?;
        Ok(())
    }

    async fn send(&self, response: WatchResponse) -> Result<usize, StreamEnd> {
        self.written().await?;
        Ok(self.sender.send(&response, Bytes::new()))
    }

    /// Waits until the client has taken the messages, up to the stall timeout.
    async fn written(&self) -> Result<(), StreamEnd> {
        let stall_timeout: Duration = self.services.replica.options.stall_timeout;
        tokio::select! {
            biased;
            () = self.services.shutdown.cancelled() => Err(StreamEnd::Status(refusal::shutting_down())),
            written = timeout(stall_timeout, self.sender.written()) => match written {
                Ok(written) => Ok(written?),
                Err(_) => Err(StreamEnd::Stalled),
            },
        }
    }
}
