//! From documents to the routes of each listener.
//!
//! A [`Table`] keeps the state that it built from the documents in force. New documents are compared with these, and
//! only changed ones are decoded; only listeners with a changed route are built anew. Nodes of upstreams, and certificates and
//! authorities of routes change in place. The result is that of building everything, which a test compares.
//!
//! Routes of documents fail closed, see [`decode`]. A document without an identity could be a route for any
//! connection: the last good document of its key stays in force. If there is none, the table refuses the revision, and
//! all former documents stay in force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use pingsix_translate::stream::{Destination, RejectReason, StreamKind, StreamProtocol};

use super::backends::Backends;
use super::decode::{self, Behaviour, Decoded, Identity};
use super::routes::{Claim, Listener, Route, Routes, Slot, Target, build};
use super::tls::Terminations;
use super::upstream::Upstream;
use super::{ServeError, Subject};
use crate::documents::Documents;

/// The documents in force, and what became of them.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Whether nodes may have addresses that are not for backends.
    local_nodes: bool,
    documents: Documents,
    routes: BTreeMap<String, Entry>,
    claims: BTreeMap<Listener, BTreeSet<String>>,
    /// By id: those of documents, and those that routes refer to.
    upstreams: BTreeMap<String, Arc<Upstream>>,
    /// The nodes of these.
    backends: Arc<Backends>,
    terminations: Terminations,
    /// By key.
    errors: BTreeMap<String, String>,
    conflicts: BTreeMap<Listener, Vec<(String, String)>>,
    /// Ids of upstreams whose documents are gone.
    gone: Vec<String>,
}

/// The route of a document.
#[derive(Debug)]
struct Entry {
    identity: Identity,
    slot: Arc<Slot>,
}

/// The effects of changed routes.
#[derive(Default)]
struct Effects {
    /// The listeners whose tables are built anew.
    listeners: BTreeSet<Listener>,
    /// The routes whose tables stay.
    replaced: Vec<(Arc<Slot>, Arc<Route>)>,
}

/// The listeners that change; `None` for one without any route.
pub(super) type Changes = BTreeMap<Listener, Option<Routes>>;

impl Table {
    pub(super) fn new(local_nodes: bool) -> Self {
        Self { local_nodes, ..Self::default() }
    }

    /// Puts documents in force. Call [`sweep`](Self::sweep) once the changed listeners have their routes.
    ///
    /// # Errors
    /// The documents without an identity and without a predecessor. The table is unchanged then.
    pub(super) fn apply(&mut self, documents: &Documents) -> Result<Changes, Vec<ServeError>> {
        let changed = changed(&self.documents.by_key, &documents.by_key);
        let routes = self.decode_routes(&changed)?;

        for (key, value) in &changed {
            self.errors.remove(key);
            match (kind(key), value) {
                (Key::Document(StreamKind::Upstream, id), Some(value)) => self.set_upstream(key, id, value),
                (Key::Document(StreamKind::Upstream, id), None) => self.gone.push(id.to_owned()),
                (Key::Document(StreamKind::Ssl, id), Some(value)) => {
                    let error = self.terminations.set_certificate(id, value).err();
                    self.failure(key, error.map(str::to_owned));
                }
                (Key::Document(StreamKind::Ssl, id), None) => self.terminations.remove_certificate(id),
                (Key::Document(StreamKind::Ca, id), Some(value)) => {
                    let error = self.terminations.set_authorities(id, value).err();
                    self.failure(key, error.map(str::to_owned));
                }
                (Key::Document(StreamKind::Ca, id), None) => self.terminations.remove_authorities(id),
                (Key::Unknown, Some(_)) => {
                    self.failure(key, Some("The key is of no known kind.".to_owned()));
                }
                (Key::Document(StreamKind::StreamRoute, _) | Key::Unknown | Key::Metadata, _) => {}
            }
        }

        let mut effects = Effects::default();
        for (key, next) in routes {
            match next {
                Next::Route(decoded) => self.set_route(key, decoded, &mut effects),
                Next::Gone => {
                    self.terminations.remove_route(key);
                    self.remove_route(key, &mut effects);
                }
                Next::Kept(message) => self.failure(key, Some(message)),
            }
        }
        self.terminations.refresh();
        for (slot, route) in effects.replaced {
            slot.set(route);
        }
        for (key, value) in changed {
            match value {
                Some(value) => self.documents.by_key.insert(key, value),
                None => self.documents.by_key.remove(&key),
            };
        }
        self.documents.revision = documents.revision;
        Ok(effects.listeners.into_iter().map(|listener| (listener, self.build(listener))).collect())
    }

    /// Withdraws the upstreams whose documents are gone.
    pub(super) fn sweep(&mut self) {
        for id in std::mem::take(&mut self.gone) {
            if !self.documents.by_key.contains_key(&format!("{}/{id}", StreamKind::Upstream))
                && let Some(upstream) = self.upstreams.get(&id)
            {
                let nodes = upstream.nodes();
                upstream.clear();
                self.backends.replace(nodes.as_deref(), None);
            }
        }
        self.upstreams.retain(|_, upstream| Arc::strong_count(upstream) > 1 || upstream.nodes().is_some());
    }

    /// The nodes of all documents in force.
    pub(super) fn backends(&self) -> &Arc<Backends> {
        &self.backends
    }

    /// Every listener with a route.
    pub(super) fn listeners(&self) -> impl Iterator<Item = Listener> {
        self.claims.keys().copied()
    }

    /// Every error of the documents in force, by key.
    pub(super) fn errors(&self) -> impl Iterator<Item = ServeError> {
        let conflicts = self.conflicts.values().flatten().map(|(key, message)| (key, message));
        let errors = self.errors.iter().chain(self.terminations.errors()).chain(conflicts);
        errors.map(|(key, message)| failure(key, message))
    }

    /// Decodes the changed routes.
    fn decode_routes<'a>(
        &self,
        changed: &'a [(String, Option<Bytes>)],
    ) -> Result<Vec<(&'a str, Next)>, Vec<ServeError>> {
        let (mut routes, mut refused) = (Vec::new(), Vec::new());
        for (key, value) in changed {
            let Key::Document(StreamKind::StreamRoute, id) = kind(key) else { continue };
            let next = match value.as_ref().map(|value| decode::route(id, value)) {
                None => Next::Gone,
                Some(Ok(decoded)) => Next::Route(decoded),
                Some(Err(message)) if self.routes.contains_key(key) => {
                    Next::Kept(format!("The former document stays in force: {message}"))
                }
                Some(Err(message)) => {
                    refused.push(failure(key, &format!("The former revision stays in force: {message}")));
                    continue;
                }
            };
            routes.push((key.as_str(), next));
        }
        if refused.is_empty() { Ok(routes) } else { Err(refused) }
    }

    fn set_upstream(&mut self, key: &str, id: &str, value: &[u8]) {
        let upstream = self.upstreams.entry(id.to_owned()).or_default();
        let former = upstream.nodes();
        let error = match decode::upstream(id, value, self.local_nodes) {
            Ok((nodes, error)) => {
                upstream.set(&nodes);
                error
            }
            Err(error) => {
                upstream.clear();
                Some(error)
            }
        };
        self.backends.replace(former.as_deref(), upstream.nodes().as_deref());
        self.failure(key, error);
    }

    /// Removes the route of a key.
    fn remove_route(&mut self, key: &str, effects: &mut Effects) {
        let Some(former) = self.routes.remove(key) else { return };
        let listener = Listener::from(&former.identity);
        effects.listeners.insert(listener);
        if let Some(claims) = self.claims.get_mut(&listener) {
            claims.remove(key);
        }
    }

    /// Replaces the route of a key.
    fn set_route(&mut self, key: &str, Decoded { identity, behaviour }: Decoded, effects: &mut Effects) {
        let route = match behaviour {
            Ok(Behaviour { targets, tls }) => {
                let targets = targets.into_iter().map(|(to, weight)| (self.target(to), weight));
                let route = Route::new(targets.collect());
                if tls.is_none() {
                    self.terminations.remove_route(key);
                }
                route.with_termination(tls.map(|settings| self.terminations.set_route(key, settings)))
            }
            Err(message) => {
                self.terminations.remove_route(key);
                self.errors.insert(key.to_owned(), message);
                Route::rejecting(RejectReason::Invalid)
            }
        };
        let route = Arc::new(route);
        // A table of server names can be long, and stays as it is while the names do.
        if identity.protocol == StreamProtocol::Tls
            && let Some(former) = self.routes.get(key)
            && former.identity == identity
        {
            effects.replaced.push((Arc::clone(&former.slot), route));
            return;
        }
        self.remove_route(key, effects);
        let listener = Listener::from(&identity);
        effects.listeners.insert(listener);
        self.claims.entry(listener).or_default().insert(key.to_owned());
        self.routes.insert(key.to_owned(), Entry { identity, slot: Slot::new(route) });
    }

    fn target(&mut self, to: Destination) -> Target {
        match to {
            Destination::Upstream(id) => Target::Upstream(Arc::clone(self.upstreams.entry(id).or_default())),
            Destination::Reject(word) => Target::Reject(word),
        }
    }

    /// The routes of a listener; `None` without any.
    pub(super) fn build(&mut self, listener: Listener) -> Option<Routes> {
        let keys = self.claims.get(&listener).into_iter().flatten();
        let claims: Vec<Claim<'_>> = keys
            .filter_map(|key| {
                let Entry { identity, slot } = self.routes.get(key)?;
                Some(Claim { key, identity, slot })
            })
            .collect();
        let mut conflicts = Vec::new();
        let routes = build(&claims, |key, message| conflicts.push((key.to_owned(), message)));
        if conflicts.is_empty() {
            self.conflicts.remove(&listener);
        } else {
            self.conflicts.insert(listener, conflicts);
        }
        if routes.is_none() {
            self.claims.remove(&listener);
        }
        routes
    }

    fn failure(&mut self, key: &str, message: Option<String>) {
        if let Some(message) = message {
            self.errors.insert(key.to_owned(), message);
        }
    }
}

fn failure(key: &str, message: &str) -> ServeError {
    ServeError { subject: Subject::Document(key.to_owned()), message: message.to_owned() }
}

/// The parts of a key.
enum Key<'a> {
    /// The kind and the id, which may be malformed.
    Document(StreamKind, &'a str),
    /// The last segment begins with a dot.
    Metadata,
    Unknown,
}

fn kind(key: &str) -> Key<'_> {
    if key.rsplit('/').next().is_some_and(|leaf| leaf.starts_with('.')) {
        return Key::Metadata;
    }
    let kind_and_id = key.split_once('/').and_then(|(kind, id)| Some((StreamKind::from_segment(kind)?, id)));
    kind_and_id.map_or(Key::Unknown, |(kind, id)| Key::Document(kind, id))
}

/// The next state of a changed route.
enum Next {
    Route(Decoded),
    /// The last good document stays in force, for this error of its successor.
    Kept(String),
    Gone,
}

/// The keys whose values differ, each with the new value, in the order of keys.
fn changed(
    before: &BTreeMap<String, Bytes>,
    after: &BTreeMap<String, Bytes>,
) -> Vec<(String, Option<Bytes>)> {
    let mut changed = Vec::new();
    let mut before = before.iter().peekable();
    for (key, value) in after {
        while let Some((gone, _)) = before.next_if(|(former, _)| *former < key) {
            changed.push((gone.clone(), None));
        }
        if before.next_if(|(former, _)| *former == key).is_none_or(|(_, former)| differs(former, value)) {
            changed.push((key.clone(), Some(value.clone())));
        }
    }
    changed.extend(before.map(|(gone, _)| (gone.clone(), None)));
    changed
}

/// Values that have not changed are most often in the same memory, which need not be read then.
fn differs(one: &Bytes, other: &Bytes) -> bool {
    (one.as_ptr(), one.len()) != (other.as_ptr(), other.len()) && one != other
}

#[cfg(test)]
mod tests;
