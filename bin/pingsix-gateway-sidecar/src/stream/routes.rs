//! The routes of one listener.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use pingsix_translate::stream::{ANY_NAME, RejectReason, StreamProtocol};

use super::choice::Shares;
use super::decode::Identity;
use super::tls::Termination;
use super::upstream::Upstream;

/// The targets of the connections of one route.
#[derive(Debug)]
pub(super) struct Route {
    targets: Vec<Target>,
    shares: Shares,
    termination: Option<Arc<Termination>>,
}

/// The destination of a connection.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Upstream(Arc<Upstream>),
    Reject(RejectReason),
}

impl Route {
    /// A route with at least one target, each with its weight from 1.
    pub(super) fn new(targets: Vec<(Target, u32)>) -> Self {
        let shares = Shares::new(targets.iter().map(|(_, weight)| *weight));
        Self { targets: targets.into_iter().map(|(target, _)| target).collect(), shares, termination: None }
    }

    /// The route with the TLS server of its clients, unless the backend is that.
    pub(super) fn with_termination(self, termination: Option<Arc<Termination>>) -> Self {
        Self { termination, ..self }
    }

    /// The TLS server of its clients, if it is the proxy.
    pub(super) fn termination(&self) -> Option<&Termination> {
        self.termination.as_deref()
    }

    /// A route that rejects its connections.
    pub(super) fn rejecting(word: RejectReason) -> Self {
        Self::new(vec![(Target::Reject(word), 1)])
    }

    /// The target of the next connection.
    pub(super) fn next(&self) -> Target {
        self.targets.get(self.shares.next()).cloned().unwrap_or(Target::Reject(RejectReason::Invalid))
    }

    /// Whether a target is one of the route.
    pub(super) fn has(&self, target: &Target) -> bool {
        self.targets.iter().any(|own| match (own, target) {
            (Target::Upstream(own), Target::Upstream(other)) => Arc::ptr_eq(own, other),
            (Target::Reject(own), Target::Reject(other)) => own == other,
            (Target::Upstream(_), Target::Reject(_)) | (Target::Reject(_), Target::Upstream(_)) => false,
        })
    }

    /// All targets with their weights.
    #[cfg(test)]
    pub(super) fn targets(&self) -> impl Iterator<Item = (&Target, u32)> {
        self.targets.iter().zip(self.shares.weights())
    }
}

/// The place of a route in the tables of its listener. A change of the route alone rebuilds no table.
#[derive(Debug)]
pub(super) struct Slot(RwLock<Arc<Route>>);

impl Slot {
    pub(super) fn new(route: Arc<Route>) -> Arc<Self> {
        Arc::new(Self(RwLock::new(route)))
    }

    /// The route in force.
    pub(super) fn get(&self) -> Arc<Route> {
        Arc::clone(&self.0.read())
    }

    /// Replaces the route.
    pub(super) fn set(&self, route: Arc<Route>) {
        *self.0.write() = route;
    }
}

/// A port, with its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Listener {
    Tcp(u16),
    Udp(u16),
}

impl Listener {
    pub(super) const fn port(self) -> u16 {
        match self {
            Self::Tcp(port) | Self::Udp(port) => port,
        }
    }
}

impl From<&Identity> for Listener {
    fn from(identity: &Identity) -> Self {
        match identity.protocol {
            StreamProtocol::Tcp | StreamProtocol::Tls => Self::Tcp(identity.port),
            StreamProtocol::Udp => Self::Udp(identity.port),
        }
    }
}

/// The routes of one listener; the choice is that of [`StreamConfig::route_for`].
///
/// [`StreamConfig::route_for`]: pingsix_translate::stream::StreamConfig::route_for
#[derive(Debug)]
pub(super) enum Routes {
    /// Every connection has this route.
    Any(Arc<Route>),
    /// The server name of a connection decides.
    ByName(Names),
}

impl Routes {
    /// Routes that take no connection.
    pub(super) fn none() -> Self {
        Self::ByName(Names::default())
    }
}

/// The routes of server names.
#[derive(Debug, Default)]
pub(super) struct Names {
    exact: HashMap<String, Arc<Slot>>,
    /// By the name behind `*.`.
    wildcard: HashMap<String, Arc<Slot>>,
    /// For all other connections.
    any: Option<Arc<Slot>>,
}

impl Names {
    /// The route of a server name in lower case: an exact name wins over a wildcard, a longer wildcard over a shorter
    /// one, and [`ANY_NAME`] comes last. `None` stands for a connection without a server name.
    pub(super) fn route(&self, name: Option<&str>) -> Option<Arc<Route>> {
        name.and_then(|name| self.of_hostname(name)).or(self.any.as_ref()).map(|slot| slot.get())
    }

    fn of_hostname(&self, name: &str) -> Option<&Arc<Slot>> {
        self.exact.get(name).or_else(|| {
            // A wildcard stands for at least one character before its dot.
            let dots = name.bytes().enumerate().skip(1).filter(|(_, byte)| *byte == b'.');
            dots.map(|(dot, _)| &name[dot + 1..]).find_map(|domain| self.wildcard.get(domain))
        })
    }

    fn insert(&mut self, name: &str, slot: &Arc<Slot>) -> Option<Arc<Slot>> {
        if name == ANY_NAME {
            return self.any.replace(Arc::clone(slot));
        }
        match name.strip_prefix("*.") {
            Some(domain) => self.wildcard.insert(domain.to_owned(), Arc::clone(slot)),
            None => self.exact.insert(name.to_owned(), Arc::clone(slot)),
        }
    }
}

/// A claim of a document on connections of the listener.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    pub(super) key: &'a str,
    pub(super) identity: &'a Identity,
    pub(super) slot: &'a Arc<Slot>,
}

/// Builds the routes of a listener from all claims on it, and calls `failure` with the key of each document whose claim
/// another one has too. Such connections are rejected, so the result is independent of the order of documents.
pub(super) fn build<'a>(claims: &[Claim<'a>], mut failure: impl FnMut(&'a str, String)) -> Option<Routes> {
    let (first, more) = claims.split_first()?;
    if first.identity.protocol == StreamProtocol::Tls
        && more.iter().all(|claim| claim.identity.protocol == StreamProtocol::Tls)
    {
        return Some(Routes::ByName(by_name(claims, failure)));
    }
    if more.is_empty() {
        return Some(Routes::Any(first.slot.get()));
    }
    for claim in claims {
        failure(claim.key, format!("server_port: Another document has port {} too.", claim.identity.port));
    }
    Some(Routes::Any(Arc::new(Route::rejecting(RejectReason::Invalid))))
}

fn by_name<'a>(claims: &[Claim<'a>], mut failure: impl FnMut(&'a str, String)) -> Names {
    let mut names = Names::default();
    let rejecting = Slot::new(Arc::new(Route::rejecting(RejectReason::Invalid)));
    for claim in claims {
        for name in &claim.identity.names {
            let former = names.insert(name, claim.slot);
            if former.is_some_and(|former| !Arc::ptr_eq(&former, claim.slot)) {
                names.insert(name, &rejecting);
                failure(claim.key, format!("snis: Another document has server name \"{name}\" too."));
            }
        }
    }
    names
}
