//! The sinks that PingsixProxy parameters name, and the scopes that are published there.
//!
//! The first scope opens a sink, and the last one closes it. After a change of credentials, two sinks of one URL are open
//! until all scopes have moved.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use pingsix_sink::{Scope, Sink as _};
use pingsix_translate::ObjectName;
use pingsix_translate::infrastructure::{CredentialsError, SinkCredentials, SinkParameters};
use thiserror::Error;
use tokio::sync::watch;

use super::sink_handle::SinkHandle;
use super::sink_opener::{SinkOpenError, SinkOpener};

/// The id of an open sink. No id is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SinkId(u64);

/// The open sinks.
pub(super) type OpenSinks = BTreeMap<SinkId, SinkHandle>;

/// Sinks with the same URL, permission of plaintext and credentials are one sink.
type SinkKey = (String, bool, SinkCredentials);

/// A sink of parameters cannot be used: half a sentence for the author, without secrets.
#[derive(Clone, Debug, Error)]
pub(super) enum AttachError {
    /// The controller has no [`SinkOpener`].
    #[error("PingsixProxy {proxy} names a sink, and this controller has but its own")]
    NoOpener {
        /// The parameters.
        proxy: ObjectName,
    },
    /// The Secret has an error.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The [`SinkOpener`] has refused.
    #[error(transparent)]
    Opener(#[from] SinkOpenError),
}

/// The sinks that PingsixProxy parameters name.
#[derive(Default)]
pub(super) struct AttachedSinks {
    opener: Option<SinkOpener>,
    state: Mutex<State>,
    open: watch::Sender<OpenSinks>,
}

#[derive(Default)]
struct State {
    /// The number of sinks that were opened.
    count: u64,
    publisher: Option<String>,
    ids: BTreeMap<SinkKey, SinkId>,
    scopes: BTreeMap<Scope, SinkId>,
}

impl AttachedSinks {
    /// Without an opener, parameters cannot name sinks.
    pub(super) fn new(opener: Option<SinkOpener>) -> Self {
        Self { opener, ..Self::default() }
    }

    /// Marks later publications with this name. The first name counts.
    pub(super) fn publish_as(&self, publisher: &str) {
        let mut state = self.state.lock();
        let publisher = state.publisher.get_or_insert_with(|| publisher.to_owned());
        self.open.borrow().values().for_each(|sink| sink.sink().publish_as(publisher));
    }

    /// The id of a sink, which is opened unless it is open.
    ///
    /// # Errors
    ///
    /// [`AttachError`]: the sink cannot be opened.
    pub(super) fn open(
        &self,
        sink: &SinkParameters,
        credentials: SinkCredentials,
    ) -> Result<SinkId, AttachError> {
        let key: SinkKey = (sink.url.clone(), sink.allow_plaintext, credentials);
        let mut state = self.state.lock();
        if let Some(id) = state.ids.get(&key) {
            return Ok(*id);
        }
        let none = || AttachError::NoOpener { proxy: sink.proxy.clone() };
        let opener = self.opener.as_ref().ok_or_else(none)?;
        let handle = opener.open(sink, &key.2)?;
        if let Some(publisher) = &state.publisher {
            handle.sink().publish_as(publisher);
        }
        state.count += 1;
        let id = SinkId(state.count);
        state.ids.insert(key, id);
        self.open.send_modify(|open| {
            open.insert(id, handle);
        });
        tracing::info!(url = sink.url, proxy = %sink.proxy, "opening a sink of parameters");
        Ok(id)
    }

    /// Publishes a scope to an open sink from now on.
    pub(super) fn attach(&self, scope: &Scope, id: SinkId) {
        self.state.lock().scopes.insert(scope.clone(), id);
    }

    /// Publishes a scope to the sinks of the router again, and closes a sink without scopes. Returns the sink.
    pub(super) fn detach(&self, scope: &Scope) -> Option<SinkHandle> {
        let mut state = self.state.lock();
        let id = state.scopes.remove(scope)?;
        let sink = self.get(id);
        if !state.scopes.values().any(|used| *used == id) {
            state.ids.retain(|_, other| *other != id);
            self.open.send_modify(|open| {
                open.remove(&id);
            });
        }
        sink
    }

    /// The sink to which a scope is attached.
    pub(super) fn id_of(&self, scope: &Scope) -> Option<SinkId> {
        self.state.lock().scopes.get(scope).copied()
    }

    /// An open sink.
    pub(super) fn get(&self, id: SinkId) -> Option<SinkHandle> {
        self.open.borrow().get(&id).cloned()
    }

    /// The open sinks, now and after each change.
    pub(super) fn watch(&self) -> watch::Receiver<OpenSinks> {
        self.open.subscribe()
    }
}
