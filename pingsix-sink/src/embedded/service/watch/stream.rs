//! One watch stream: several watches, one client.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tonic::{Status, Streaming};

use super::state::WatchState;
use crate::embedded::replica::Adoption;
use crate::embedded::service::{Services, header, refusal};
use crate::embedded::store::{KeyRange, Pending, Refusal, Store};
use crate::proto::etcdserverpb::watch_request::RequestUnion;
use crate::proto::etcdserverpb::{WatchCreateRequest, WatchRequest, WatchResponse};

/// How many watches one stream may carry.
const MOST_WATCHES: usize = 1_024;

/// How many commits are read for one watch before the others have their turn.
const BATCH: usize = 64;

/// The id of a response that belongs to no watch.
const NO_WATCH: i64 = -1;

/// Why a stream ends.
#[derive(Debug)]
enum Ending {
    /// The client is gone.
    Gone,
    /// The client left a full queue unread for too long.
    Stalled,
    /// The client is told why.
    Told(Status),
}

pub(super) struct WatchStream {
    services: Services,
    requests: Streaming<WatchRequest>,
    responses: mpsc::Sender<Result<WatchResponse, Status>>,
    watches: BTreeMap<i64, WatchState>,
    next_id: i64,
    progress_requested: bool,
}

impl WatchStream {
    pub(super) fn new(
        services: Services,
        requests: Streaming<WatchRequest>,
        responses: mpsc::Sender<Result<WatchResponse, Status>>,
    ) -> Self {
        Self {
            services,
            requests,
            responses,
            watches: BTreeMap::new(),
            next_id: 0,
            progress_requested: false,
        }
    }

    pub(super) async fn run(mut self) {
        match self.drive().await {
            Ok(()) | Err(Ending::Gone) => {}
            Err(Ending::Stalled) => {
                self.services.replica.counters.streams_stalled.add(1);
                tracing::warn!(
                    watches = self.watches.len(),
                    "a watch stream was ended, for its client reads nothing"
                );
            }
            Err(Ending::Told(status)) => {
                // With a full queue the client is not reading and learns it from the end of the stream.
                let _ = self.responses.try_send(Err(status));
            }
        }
    }

    async fn drive(&mut self) -> Result<(), Ending> {
        let mut advanced = self.services.replica.advanced();
        let period = self.services.replica.options.progress_interval;
        let mut ticks = interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let shutdown = self.services.shutdown.clone();
        // A client that has gone away is noticed while there is nothing to send, too.
        let gone = self.responses.clone();
        let mut caught_up = true;
        loop {
            let mut tick = false;
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Err(Ending::Told(refusal::shutting_down())),
                () = gone.closed() => return Ok(()),
                request = self.requests.message() => match request {
                    Ok(Some(request)) => self.receive(request).await?,
                    Ok(None) | Err(_) => return Ok(()),
                },
                _ = ticks.tick() => tick = true,
                // The sender lives as long as the replica, which this task holds.
                _ = advanced.changed() => {}
                () = std::future::ready(()), if !caught_up => {}
            }
            let reached = self.pump().await?;
            caught_up = reached.is_some();
            if let Some(revision) = reached {
                self.tell_progress(revision, tick).await?;
            }
        }
    }

    async fn receive(&mut self, request: WatchRequest) -> Result<(), Ending> {
        match request.request_union {
            Some(RequestUnion::CreateRequest(request)) => self.create(request).await,
            Some(RequestUnion::CancelRequest(request)) => match self.watches.remove(&request.watch_id) {
                Some(_) => {
                    let response = WatchResponse {
                        header: Some(self.services.header()),
                        watch_id: request.watch_id,
                        canceled: true,
                        ..WatchResponse::default()
                    };
                    self.send(response).await
                }
                None => Ok(()),
            },
            Some(RequestUnion::ProgressRequest(_)) => {
                self.progress_requested = true;
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn create(&mut self, request: WatchCreateRequest) -> Result<(), Ending> {
        let key = if request.key.is_empty() { Bytes::from_static(b"\0") } else { request.key.clone() };
        let range = KeyRange::new(key, request.range_end.clone());
        let id = match self.choose_id(&request, &range) {
            Ok(id) => id,
            Err(reason) => return self.refuse(NO_WATCH, reason.to_owned()).await,
        };
        let (admission, now) = self.services.replica.read(|store| (store.admit(&range), store.header()));
        if let Err(refusal) = admission {
            let status = self.services.refuse(&range, refusal);
            // A client that retries a broken stream waits for the scope; other watches are not broken for it.
            return match refusal {
                Refusal::UnknownScope if !self.watches.is_empty() => {
                    self.refuse(id, status.message().to_owned()).await
                }
                Refusal::UnknownScope | Refusal::NotComplete | Refusal::Compacted | Refusal::Future => {
                    Err(Ending::Told(status))
                }
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
        if next > now + 1 && self.adopt(next).await? {
            return self.cancel_compacted(id, self.services.replica.read(Store::header)).await;
        }
        let replica = &self.services.replica;
        let present = (replica.counters.watches.enter(), replica.readers.enter(range.clone()));
        self.watches.insert(id, WatchState::new(id, range, next, &request, present));
        Ok(())
    }

    /// The id of a new watch, or why there can be none.
    fn choose_id(&mut self, request: &WatchCreateRequest, range: &KeyRange) -> Result<i64, &'static str> {
        if range.is_empty() {
            return Err("mvcc: watcher range is empty");
        }
        if self.watches.len() >= MOST_WATCHES {
            return Err("too many watches on one stream");
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

    /// Raises the header to what a client has seen that starts beyond it. Such a client saw another server, or this one
    /// before a restart; what it missed since is not known, so it has to list again.
    async fn adopt(&mut self, start: i64) -> Result<bool, Ending> {
        match self.services.replica.adopt(start).await {
            Ok(Adoption::Raised) => {
                tracing::info!(start, "a client has seen a later revision; ours was raised to it");
                Ok(true)
            }
            Ok(Adoption::Refused) => {
                tracing::warn!(
                    start,
                    "a watch starts at a revision too far ahead to be believed; it will wait"
                );
                Ok(false)
            }
            Err(error) => {
                tracing::warn!(%error, start, "revisions up to the start of a watch could not be reserved");
                Err(Ending::Told(Status::unavailable(
                    "no revision above the start of the watch could be reserved",
                )))
            }
        }
    }

    /// Sends every watch what it has not seen, a bounded part at a time.
    /// Returns the revision up to which all watches have been told everything, unless something is left.
    async fn pump(&mut self) -> Result<Option<i64>, Ending> {
        let reached = self.services.replica.read(Store::header);
        let limit = self.services.replica.options.response_limit;
        let mut caught_up = true;
        let ids: Vec<i64> = self.watches.keys().copied().collect();
        for id in ids {
            let Some(mut watch) = self.watches.remove(&id) else { continue };
            match self.services.replica.read(|store| store.pending(watch.next, BATCH)) {
                Pending::Compacted(revision) => {
                    drop(watch);
                    self.services.replica.counters.watches_compacted.add(1);
                    self.cancel_compacted(id, revision).await?;
                }
                Pending::Commits { commits, more } => {
                    caught_up &= !more;
                    for commit in commits {
                        for response in watch.responses(&commit, limit) {
                            watch.spoke();
                            self.services.replica.counters.watch_responses.add(1);
                            self.services.replica.counters.watch_bytes.add(response.encoded_len());
                            self.send(response).await?;
                        }
                        watch.next = commit.revision + 1;
                    }
                    self.watches.insert(id, watch);
                }
            }
        }
        Ok(caught_up.then_some(reached))
    }

    /// Answers a progress request; with `tick` also tells the quiet watches that asked for it.
    async fn tell_progress(&mut self, revision: i64, tick: bool) -> Result<(), Ending> {
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

    async fn cancel_compacted(&self, id: i64, compact_revision: i64) -> Result<(), Ending> {
        self.send(WatchResponse {
            header: Some(self.services.header()),
            watch_id: id,
            canceled: true,
            compact_revision,
            cancel_reason: refusal::COMPACTED.to_owned(),
            ..WatchResponse::default()
        })
        .await
    }

    /// Refuses to create a watch, in the one response etcd gives for it.
    async fn refuse(&self, id: i64, reason: String) -> Result<(), Ending> {
        self.send(WatchResponse {
            header: Some(self.services.header()),
            watch_id: id,
            created: true,
            canceled: true,
            cancel_reason: reason,
            ..WatchResponse::default()
        })
        .await
    }

    async fn send(&self, response: WatchResponse) -> Result<(), Ending> {
        let patience: Duration = self.services.replica.options.stall_timeout;
        tokio::select! {
            biased;
            () = self.services.shutdown.cancelled() => Err(Ending::Told(refusal::shutting_down())),
            sent = timeout(patience, self.responses.send(Ok(response))) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(Ending::Gone),
                Err(_) => Err(Ending::Stalled),
            },
        }
    }
}
