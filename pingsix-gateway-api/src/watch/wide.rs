//! A wide watch: a watch of all objects of a kind in one namespace or in all namespaces, referenced or not.
//!
//! The state of a wide watch is a plain value without I/O: the versions of all objects, without their content.

use std::collections::BTreeMap;
use std::future;
use std::sync::Arc;

use futures::stream::{AbortHandle, Stream, StreamExt as _};
use kube_runtime::watcher;
use pingsix_translate::{Kind, ObjectName};
use tokio::sync::Semaphore;

use super::error::Step;
use super::input::{Input, WorldKind};
use super::stream::{Selection, StreamItem, WatchContext, list_watch};
use super::watch_plan::KindInNamespace;
use crate::api_error::ApiErrorCategory;

/// The scope of a wide watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scope {
    pub(super) kind: Kind,
    /// The namespace; `None` for all namespaces.
    pub(super) namespace: Option<Arc<str>>,
}

impl Scope {
    /// The scope of one namespace.
    pub(super) fn of(place: &KindInNamespace) -> Self {
        Self { kind: place.kind, namespace: Some(place.namespace.clone()) }
    }

    /// The scope of all namespaces.
    pub(super) const fn everywhere(kind: Kind) -> Self {
        Self { kind, namespace: None }
    }

    pub(super) fn covers(&self, place: &KindInNamespace) -> bool {
        self.kind == place.kind
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == place.namespace)
    }
}

/// A `resourceVersion`; `None` when the object has none.
pub(super) type Version = Option<String>;

/// The known state of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The state is unknown.
    Unknown,
    /// The object exists, in this version.
    Present(Version),
    /// The object does not exist.
    Absent,
    /// The API server forbids to read the object, with this message.
    Forbidden(String),
}

impl State {
    /// Whether the object is known to exist or to be absent.
    pub(super) const fn is_known(&self) -> bool {
        matches!(self, Self::Present(_) | Self::Absent)
    }
}

/// The event of a wide watch.
pub(super) enum WideEvent {
    /// A list starts.
    ListStarted,
    /// An object exists; the input has its content.
    Present(ObjectName, Version, Input),
    /// An object was deleted.
    Deleted(ObjectName),
    /// The list is complete.
    ListDone,
    /// The list failed, and is retried.
    ListFailed,
    /// The list is forbidden, with this message.
    ListForbidden(String),
}

/// A wide watch and its state.
pub(super) struct WideWatch {
    pub(super) stop: AbortHandle,
    /// The version of every object, referenced or not.
    known: BTreeMap<ObjectName, Version>,
    /// The unfinished list.
    listing: Option<BTreeMap<ObjectName, Version>>,
    /// Whether a list is complete.
    is_complete: bool,
    /// Whether a list is under way.
    pub(super) is_listing: bool,
    pub(super) forbidden: Option<String>,
}

impl WideWatch {
    pub(super) fn new(stop: AbortHandle) -> Self {
        let (known, listing) = (BTreeMap::new(), None);
        Self { stop, known, listing, is_complete: false, is_listing: true, forbidden: None }
    }

    /// Restarts with another stream. The known versions stay until the next complete list.
    pub(super) fn restart(&mut self, stop: AbortHandle) {
        std::mem::replace(&mut self.stop, stop).abort();
        self.is_listing = true;
    }

    /// Whether the watch has a complete list and is allowed.
    pub(super) const fn is_usable(&self) -> bool {
        self.is_complete && self.forbidden.is_none()
    }

    /// Whether a list is complete.
    pub(super) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The known state of an object.
    pub(super) fn state(&self, name: &ObjectName) -> State {
        let listed = self.listing.as_ref().and_then(|listing| listing.get(name));
        match listed.or_else(|| self.known.get(name)) {
            Some(version) => State::Present(version.clone()),
            None if self.is_complete => State::Absent,
            None => State::Unknown,
        }
    }

    /// Applies an event. Returns whether the permission to list has changed.
    pub(super) fn apply(&mut self, event: &WideEvent) -> bool {
        match event {
            WideEvent::ListStarted => {
                self.listing = Some(BTreeMap::new());
                self.is_listing = true;
                false
            }
            WideEvent::Present(name, version, _) => {
                self.listing.as_mut().unwrap_or(&mut self.known).insert(name.clone(), version.clone());
                false
            }
            WideEvent::Deleted(name) => {
                self.known.remove(name);
                false
            }
            WideEvent::ListDone => {
                self.known = self.listing.take().unwrap_or_default();
                self.is_complete = true;
                self.is_listing = false;
                self.forbidden.take().is_some()
            }
            WideEvent::ListFailed => false,
            WideEvent::ListForbidden(message) => {
                self.listing = None;
                self.forbidden.replace(message.clone()).is_none()
            }
        }
    }

    /// The number of objects with a known version.
    pub(super) fn len(&self) -> usize {
        self.known.len() + self.listing.as_ref().map_or(0, BTreeMap::len)
    }
}

/// The events of a selection, in order.
pub(super) fn wide_events<K: WorldKind>(
    context: &WatchContext,
    selection: &Selection,
    list_permits: Arc<Semaphore>,
) -> impl Stream<Item = WideEvent> + Send + use<K> {
    list_watch::<K>(context, selection, Some(list_permits)).filter_map(move |seen| {
        future::ready(match seen {
            StreamItem::Event(watcher::Event::Init) => Some(WideEvent::ListStarted),
            StreamItem::Event(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                let (name, version) = (object.name(), object.version());
                Some(WideEvent::Present(name, version, K::input(watcher::Event::Apply(object))))
            }
            StreamItem::Event(watcher::Event::InitDone) => Some(WideEvent::ListDone),
            StreamItem::Event(watcher::Event::Delete(object)) => Some(WideEvent::Deleted(object.name())),
            StreamItem::Failed(error)
                if error.step == Step::List && error.category() == ApiErrorCategory::Forbidden =>
            {
                Some(WideEvent::ListForbidden(error.cause.message))
            }
            StreamItem::Failed(error) if error.step == Step::List => Some(WideEvent::ListFailed),
            StreamItem::Opened | StreamItem::Failed(_) => None,
        })
    })
}
