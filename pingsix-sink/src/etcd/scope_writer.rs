//! One scope: written by publications, watched in between.
//!
//! ```text
//! publish ─► scope_state of the scope ─► plan ─► batches ─► transactions
//!               ▲  list, when there is none or it is not watched      │ a comparison failed: list, plan anew
//!               └──── events of others ◄── watch ◄────────────────────┘
//! ```
//!
//! One lock orders publications and events. An event is therefore judged between publications, when it is known
//! whether it is the echo of this sink's own transaction.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Mutex;
use tonic::Streaming;

use super::batch::{Batch, Limits, check, record};
use super::client::{Client, received};
use super::drift::Drift;
use super::error::EtcdError;
use super::fence::{self, FENCE, Term};
use super::mark::Mark;
use super::scope_state::ScopeState;
use super::{GUARD, PUBLISHER};
use crate::backoff::Backoff;
use crate::desired::{Desired, DocumentSet, LIST_LIMIT, Scope};
use crate::document::InvalidKey;
use crate::error::SinkError;
use crate::plan::{Changed, Step, plan, units};
use crate::proto::etcdserverpb::{RangeResponse, TxnRequest, WatchResponse};
use crate::resource::{Keyring, Sealer};
use crate::revision::Revision;
use crate::sink::Published;

/// Limit of the attempts of a publication against concurrent writers.
const MAX_ATTEMPTS: usize = 8;

/// Writer and watcher of one scope.
#[derive(Debug)]
pub(super) struct ScopeWriter {
    scope: Scope,
    client: Arc<Client>,
    drift: Arc<Drift>,
    /// The publisher's name, if known.
    publisher: Arc<OnceLock<Bytes>>,
    term: Arc<Term>,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The content of the scope; `None` when it has to be listed.
    content: Option<ScopeState>,
    /// Whether a watch reports foreign changes. Without a watch, the content becomes stale.
    is_watched: bool,
    /// The last successful publication.
    published: Option<DocumentSet>,
    foreign: BTreeSet<String>,
    /// The highest revision seen.
    highest: i64,
    /// The number of publications begun.
    publications: u64,
    /// `None` when secrets are stored in plaintext.
    sealer: Option<Sealer>,
}

/// Failure of a transaction.
enum CommitError {
    /// Another writer changed a compared key.
    Comparison,
    Request(SinkError),
}

impl From<EtcdError> for CommitError {
    fn from(error: EtcdError) -> Self {
        Self::Request(error.into())
    }
}

impl ScopeWriter {
    pub(super) fn new(
        scope: Scope,
        client: Arc<Client>,
        drift: Arc<Drift>,
        (publisher, term): (Arc<OnceLock<Bytes>>, Arc<Term>),
        limits: Limits,
        keyring: Option<Keyring>,
    ) -> Self {
        let state = State { sealer: keyring.map(Sealer::new), ..State::default() };
        Self { scope, client, drift, publisher, term, limits, state: Mutex::new(state) }
    }

    /// Publishes the desired documents.
    pub(super) async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        refuse_reserved_keys(desired)?;
        let mut state = self.state.lock().await;
        state.publications += 1;
        let sealed = state.sealer.as_mut().map(|sealer| sealer.seal(desired));
        let desired = sealed.as_ref().unwrap_or(desired);
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(500));
        let (mut changed, mut is_fresh) = (Changed::default(), false);
        for _ in 0..MAX_ATTEMPTS {
            // The content is taken out, so a publication that fails or is dropped while it writes leaves none.
            let mut scope_state = match state.content.take() {
                Some(scope_state) if state.is_watched => scope_state,
                Some(_) | None => {
                    let list = self.client.list(&self.scope).await?;
                    is_fresh = true;
                    self.read(&mut state, &list)
                }
            };
            let steps = match self.steps(&scope_state, desired) {
                Ok(steps) => steps,
                // Another writer may have mended the scope, and the event may still be on its way.
                Err(_) if !is_fresh => continue,
                Err(error) => {
                    self.check_drift(&mut state, &scope_state);
                    state.content = Some(scope_state);
                    return Err(error);
                }
            };
            let written = async {
                self.take_fence(&mut scope_state).await?;
                // The claim lasts from before the first document until after the last.
                self.claim(&mut scope_state, !desired.documents().is_empty()).await?;
                self.write(&mut scope_state, &steps, &mut changed).await?;
                self.release(&mut scope_state).await
            };
            match written.await {
                Ok(()) => {
                    scope_state.record_published(desired.documents().clone());
                    let revision = scope_state.revision();
                    state.published = Some(desired.documents().clone());
                    state.highest = state.highest.max(revision.get());
                    // A created document may have replaced a foreign one.
                    if is_fresh || changed.created > 0 {
                        self.record_foreign(&mut state, &scope_state);
                    }
                    self.drift.set(&self.scope, false);
                    self.log(&scope_state, revision, changed);
                    state.content = Some(scope_state);
                    return Ok(Published { revision, changed });
                }
                Err(CommitError::Comparison) => {
                    tracing::debug!(scope = %self.scope, "a concurrent write won; reading the scope again");
                    backoff.pause().await;
                }
                Err(CommitError::Request(error)) => return Err(error),
            }
        }
        Err(EtcdError::Conflict { scope: self.scope.clone(), attempts: MAX_ATTEMPTS }.into())
    }

    /// The foreign keys under the scope, as of the last list.
    pub(super) async fn foreign(&self) -> BTreeSet<String> {
        self.state.lock().await.foreign.clone()
    }

    /// The steps to the desired documents, or the reason of a refusal.
    fn steps(&self, scope_state: &ScopeState, desired: &Desired) -> Result<Vec<Step>, SinkError> {
        let steps = plan(&scope_state.documents(), desired.documents());
        if !steps.is_empty() && !scope_state.guard().is_known {
            let key = format!("{}/{GUARD}", self.scope);
            return Err(EtcdError::Guard { key }.into());
        }
        check(scope_state, &self.scope, &steps, self.limits)?;
        Ok(steps)
    }

    /// Takes the fence of the scope against earlier terms, or fails if a later term has it.
    async fn take_fence(&self, scope_state: &mut ScopeState) -> Result<(), CommitError> {
        let Some(own) = self.term.get() else { return Ok(()) };
        let published = fence::term_of(&scope_state.record(FENCE).value);
        if published > own {
            return Err(EtcdError::Fenced { scope: self.scope.clone(), held: published, own }.into());
        }
        // A guard of another protocol must not be written.
        if published == own || !scope_state.guard().is_known {
            return Ok(());
        }
        self.write_record(scope_state, FENCE, Some(fence::value(own))).await
    }

    /// Records the publisher in the scope.
    async fn claim(&self, scope_state: &mut ScopeState, is_wanted: bool) -> Result<(), CommitError> {
        // A guard of another protocol must not be written.
        match self.publisher.get() {
            Some(publisher)
                if is_wanted
                    && scope_state.record(PUBLISHER).value != publisher
                    && scope_state.guard().is_known =>
            {
                self.write_record(scope_state, PUBLISHER, Some(publisher.clone())).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Deletes the publisher from the scope without own documents.
    async fn release(&self, scope_state: &mut ScopeState) -> Result<(), CommitError> {
        match self.publisher.get() {
            Some(publisher) if scope_state.record(PUBLISHER).value == publisher && scope_state.is_empty() => {
                self.write_record(scope_state, PUBLISHER, None).await
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn write_record(
        &self,
        scope_state: &mut ScopeState,
        name: &'static str,
        value: Option<Bytes>,
    ) -> Result<(), CommitError> {
        let revision = self.transact(record(scope_state, &self.scope, name, value.clone())).await?;
        scope_state.apply_record(revision, name, value);
        Ok(())
    }

    /// Sends a transaction, and returns its revision.
    async fn transact(&self, request: TxnRequest) -> Result<i64, CommitError> {
        let answer = self.client.txn(&self.scope, request).await?;
        if !answer.succeeded {
            return Err(CommitError::Comparison);
        }
        Ok(answer.header.map_or(0, |header| header.revision))
    }

    /// Writes all steps: in one transaction if they fit, otherwise in units.
    async fn write(
        &self,
        scope_state: &mut ScopeState,
        all: &[Step],
        changed: &mut Changed,
    ) -> Result<(), CommitError> {
        let fitting = |scope_state: &ScopeState, rest: &[Step]| {
            Batch::fitting(scope_state, &self.scope, rest, self.limits)
        };
        // A transaction without steps would write the guard for nothing.
        if all.is_empty() {
            return Ok(());
        }
        if fitting(scope_state, all) == all.len() {
            return self.commit(scope_state, all, changed).await;
        }
        let units = units(all, &scope_state.documents());
        let mut written = 0;
        while let rest = &units.steps()[written..]
            && !rest.is_empty()
        {
            let taken = &rest[..units.batch_len(written, fitting(scope_state, rest))];
            self.commit(scope_state, taken, changed).await?;
            written += taken.len();
        }
        Ok(())
    }

    /// Writes these steps in one transaction.
    async fn commit(
        &self,
        scope_state: &mut ScopeState,
        steps: &[Step],
        changed: &mut Changed,
    ) -> Result<(), CommitError> {
        let batch = Batch::of(scope_state, &self.scope, steps);
        let bytes = batch.bytes();
        let revision = self.transact(batch.request).await?;
        tracing::debug!(scope = %self.scope, steps = steps.len(), bytes, "wrote a transaction");
        *changed = changed.with(steps);
        scope_state.apply_commit(revision, batch.change);
        Ok(())
    }

    /// Replaces the content of the scope by a list.
    fn read(&self, state: &mut State, list: &RangeResponse) -> ScopeState {
        let scope_state = ScopeState::of(&self.scope, list);
        if scope_state.listed() < state.highest {
            // No write can mend this, because readers compare with the revisions they saw.
            tracing::error!(
                scope = %self.scope, revision = scope_state.listed(), before = state.highest,
                "the revision of etcd went back, as that of a restored backup does: PingSIX ignores changes until it \
                 has passed the old one, or is restarted"
            );
        }
        state.highest = scope_state.listed();
        scope_state
    }

    /// Follows foreign changes of the scope until it has to be listed again; the error is the reason of a failure.
    pub(super) async fn follow(&self, backoff: &mut Backoff) -> Result<(), EtcdError> {
        let start = self.list_if_unknown().await? + 1;
        let mut watch = self.client.watch(&self.scope, start).await?;
        let result = self.follow_stream(&mut watch, backoff).await;
        // Without the watch, changes from here on remain unknown.
        let mut state = self.state.lock().await;
        state.is_watched = false;
        state.content = None;
        result
    }

    /// Lists the scope unless its content is known. Returns the revision after which the watch starts.
    async fn list_if_unknown(&self) -> Result<i64, EtcdError> {
        let publications = {
            let state = self.state.lock().await;
            if let Some(scope_state) = &state.content {
                return Ok(scope_state.listed());
            }
            state.publications
        };
        // Publications do not wait for this list. A publication in the meantime has newer content than the list.
        let list = self.client.list(&self.scope).await?;
        let mut state = self.state.lock().await;
        if state.publications == publications {
            let scope_state = self.read(&mut state, &list);
            self.check_drift(&mut state, &scope_state);
            state.content = Some(scope_state);
        }
        let listed = state.content.as_ref().map(ScopeState::listed);
        Ok(listed.unwrap_or_else(|| list.header.map_or(0, |header| header.revision)))
    }

    async fn follow_stream(
        &self,
        watch: &mut Streaming<WatchResponse>,
        backoff: &mut Backoff,
    ) -> Result<(), EtcdError> {
        loop {
            let response = received(&self.scope, watch.message().await)?;
            if response.canceled {
                return self.client.cancelled(&self.scope, &response);
            }
            let mut state = self.state.lock().await;
            if response.created {
                state.is_watched = true;
                backoff.reset();
            }
            // A publication failed or was dropped while it wrote, so the content has to be listed again.
            let Some(mut scope_state) = state.content.take() else { return Ok(()) };
            if scope_state.apply(&response.events) {
                self.check_drift(&mut state, &scope_state);
            }
            state.content = Some(scope_state);
        }
    }

    /// Compares the content with the last publication.
    fn check_drift(&self, state: &mut State, scope_state: &ScopeState) {
        self.record_foreign(state, scope_state);
        let Some(published) = &state.published else { return };
        let steps = plan(&scope_state.documents(), published).len();
        if self.drift.set(&self.scope, steps > 0) && steps > 0 {
            tracing::warn!(scope = %self.scope, steps, "another writer changed published documents");
        }
    }

    fn record_foreign(&self, state: &mut State, scope_state: &ScopeState) {
        let foreign = scope_state.foreign();
        for key in foreign.difference(&state.foreign) {
            tracing::warn!(scope = %self.scope, %key, "the scope has a foreign key, which stays");
        }
        state.foreign = foreign;
    }

    fn log(&self, scope_state: &ScopeState, revision: Revision, changed: Changed) {
        if changed.is_empty() {
            return;
        }
        let (scope, bytes) = (&self.scope, scope_state.size());
        tracing::info!(
            %scope, %revision, changed.created, changed.updated, changed.deleted, bytes,
            "published"
        );
        if bytes > LIST_LIMIT {
            tracing::warn!(%scope, bytes, limit = LIST_LIMIT, "the scope is too large for a list of PingSIX");
        }
    }
}

/// Refuses documents under the keys of entries beside the documents.
fn refuse_reserved_keys(desired: &Desired) -> Result<(), SinkError> {
    let is_reserved =
        |key: &str| key == GUARD || key == PUBLISHER || key == FENCE || Mark::index(key).is_some();
    match desired.documents().iter().find(|document| is_reserved(document.key.as_str())) {
        Some(document) => Err(InvalidKey {
            key: document.key.to_string(),
            problem: "it is reserved for the records that the sink keeps beside the documents",
        }
        .into()),
        None => Ok(()),
    }
}
