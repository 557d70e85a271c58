//! Where data planes are published that do not go to the feed: the sinks that parameters name.
//!
//! A sink is opened when the first data plane is sent there, and closed when none is any more; so there may be several of one
//! URL for a moment, while data planes go from credentials that were replaced to those that are there now.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pingsix_sink::{Scope, Sink as _};
use pingsix_translate::ObjectName;
use pingsix_translate::infrastructure::{SinkCredentials, SinkParameters};
use thiserror::Error;
use tokio::sync::watch;

use super::{Feed as _, Opener, Outlets};
use crate::leader::Leadership;
use crate::metrics::Metrics;

/// Which of the sinks that were opened; none has the number of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DestinationNumber(u64);

/// A sink that parameters name.
pub(super) struct Destination {
    pub(super) number: DestinationNumber,
    key: Key,
    /// With this sink alone.
    pub(super) outlets: Outlets,
}

/// A sink that parameters name cannot be used: half a sentence for their author, without secrets.
#[derive(Clone, Debug, Error)]
pub(super) enum DestinationError {
    /// This controller opens none.
    #[error("PingsixProxy {proxy} names a sink, and this controller has but its own")]
    NoOpener {
        /// The parameters.
        proxy: ObjectName,
    },
    /// What is wrong with the Secret that parameters name.
    #[error("{0}")]
    Credentials(String),
    /// What the [`Opener`] says.
    #[error("{0}")]
    Opener(String),
}

/// What tells sinks apart: URL, whether plaintext is allowed, credentials.
type Key = (String, bool, SinkCredentials);

/// Those that are open.
pub(super) type OpenDestinations = BTreeMap<DestinationNumber, Arc<Destination>>;

/// Where data planes are published that do not go to the feed. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Destinations(Arc<Inner>);

#[derive(Default)]
struct Inner {
    opener: Option<Opener>,
    surroundings: OnceLock<(Leadership, Option<Arc<Metrics>>)>,
    held: Mutex<Held>,
    open: watch::Sender<OpenDestinations>,
}

#[derive(Default)]
struct Held {
    /// How many were opened.
    count: u64,
    publisher: Option<String>,
    /// Those that are open, and how many scopes are published there.
    open: BTreeMap<Key, (Arc<Destination>, usize)>,
    scopes: BTreeMap<Scope, Arc<Destination>>,
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").field("outlets", &self.outlets).finish_non_exhaustive()
    }
}

impl Destinations {
    /// Without an opener there are none.
    pub(super) fn new(opener: Option<Opener>) -> Self {
        Self(Arc::new(Inner { opener, ..Inner::default() }))
    }

    /// Told once, before anything is published.
    pub(super) fn begin(&self, leadership: &Leadership, metrics: Option<&Arc<Metrics>>) {
        let _ = self.0.surroundings.set((leadership.clone(), metrics.cloned()));
    }

    /// Has what is published from now on marked with this name. The first one counts.
    pub(super) fn publish_as(&self, publisher: &str) {
        let mut held = self.0.held.lock();
        let publisher = held.publisher.get_or_insert_with(|| publisher.to_owned()).clone();
        held.open.values().for_each(|(destination, _)| destination.outlets.publish_as(&publisher));
    }

    /// Opens a sink, unless it is open. It is closed when the last scope that was sent there is recalled.
    ///
    /// # Errors
    ///
    /// [`DestinationError`]: it cannot be opened.
    pub(super) fn open(
        &self,
        sink: &SinkParameters,
        credentials: SinkCredentials,
    ) -> Result<Arc<Destination>, DestinationError> {
        let key: Key = (sink.url.clone(), sink.allow_plaintext, credentials);
        let mut held = self.0.held.lock();
        if let Some((destination, _)) = held.open.get(&key) {
            return Ok(Arc::clone(destination));
        }
        let none = || DestinationError::NoOpener { proxy: sink.proxy.clone() };
        let opener = self.0.opener.as_ref().ok_or_else(none)?;
        let outlet = opener.open(sink, &key.2).map_err(DestinationError::Opener)?;
        let outlets = Outlets::new(vec![outlet]);
        if let Some((leadership, metrics)) = self.0.surroundings.get() {
            outlets.begin(leadership, metrics.as_ref());
        }
        if let Some(publisher) = &held.publisher {
            outlets.publish_as(publisher);
        }
        held.count += 1;
        let number = DestinationNumber(held.count);
        let destination = Arc::new(Destination { number, key: key.clone(), outlets });
        held.open.insert(key, (Arc::clone(&destination), 0));
        self.0.open.send_modify(|open| {
            open.insert(number, Arc::clone(&destination));
        });
        tracing::info!(url = sink.url, proxy = %sink.proxy, "a sink that parameters name is opened");
        Ok(destination)
    }

    /// Has a scope published there from now on.
    pub(super) fn send(&self, scope: &Scope, destination: &Arc<Destination>) {
        let mut held = self.0.held.lock();
        if held.scopes.get(scope).is_some_and(|now| now.number == destination.number) {
            return;
        }
        let before = held.scopes.insert(scope.clone(), Arc::clone(destination));
        if let Some((_, scopes)) = held.open.get_mut(&destination.key) {
            *scopes += 1;
        } else {
            // It was closed meanwhile, which ends nothing that somebody holds.
            held.open.insert(destination.key.clone(), (Arc::clone(destination), 1));
            self.0.open.send_modify(|open| {
                open.insert(destination.number, Arc::clone(destination));
            });
        }
        if let Some(before) = before {
            self.leave(&mut held, &before);
        }
    }

    /// Has a scope published to the feed again. Returns where it was published.
    pub(super) fn recall(&self, scope: &Scope) -> Option<Arc<Destination>> {
        let mut held = self.0.held.lock();
        let before = held.scopes.remove(scope)?;
        self.leave(&mut held, &before);
        Some(before)
    }

    /// Where a scope is published; `None` for the feed.
    pub(super) fn of(&self, scope: &Scope) -> Option<Arc<Destination>> {
        self.0.held.lock().scopes.get(scope).cloned()
    }

    /// Those that are open, now and whenever they are others.
    pub(super) fn opened(&self) -> watch::Receiver<OpenDestinations> {
        self.0.open.subscribe()
    }

    /// One of them, if it is still open.
    pub(super) fn get(&self, number: DestinationNumber) -> Option<Arc<Destination>> {
        self.0.open.borrow().get(&number).cloned()
    }

    /// One scope less is published there.
    fn leave(&self, held: &mut Held, destination: &Destination) {
        let Some((_, scopes)) = held.open.get_mut(&destination.key) else { return };
        *scopes = scopes.saturating_sub(1);
        if *scopes == 0 {
            held.open.remove(&destination.key);
            self.0.open.send_modify(|open| {
                open.remove(&destination.number);
            });
        }
    }
}
