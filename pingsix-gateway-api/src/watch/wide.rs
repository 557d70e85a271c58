//! A watch of more objects than are referred to: those of a namespace, or of all.
//!
//! Kept apart from the streams: it is a plain value, which says what such a watch knows. It keeps the versions of all
//! objects and the content of none.

use std::collections::BTreeMap;
use std::future;
use std::sync::Arc;

use futures::stream::{AbortHandle, Stream, StreamExt as _};
use kube_runtime::watcher;
use pingsix_translate::{Kind, ObjectName};
use tokio::sync::Semaphore;

use super::allotment::KindInNamespace;
use super::fault::Step;
use super::input::{Input, WorldKind};
use super::stream::{Selection, StreamItem, WatchContext, list_watch};
use crate::fault::FaultCategory;

/// The scope of a wide watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scope {
    pub(super) kind: Kind,
    /// All namespaces if none is named.
    pub(super) namespace: Option<Arc<str>>,
}

impl Scope {
    /// That of a namespace.
    pub(super) fn of(place: &KindInNamespace) -> Self {
        Self { kind: place.kind, namespace: Some(place.namespace.clone()) }
    }

    /// That of all namespaces.
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
    There(Version),
    /// The object does not exist.
    Absent,
    /// We may not know, and why.
    Forbidden(String),
}

impl State {
    /// Whether the wide watch can answer for the object.
    pub(super) const fn is_settled(&self) -> bool {
        matches!(self, Self::There(_) | Self::Absent)
    }
}

/// The event of a wide watch.
pub(super) enum WideEvent {
    /// A list begins.
    Began,
    /// An object is there, as this event says.
    There(ObjectName, Version, Input),
    /// An object is gone.
    Gone(ObjectName),
    /// The list is read to its end.
    Done,
    /// The list failed, and is tried again.
    Failed,
    /// The list is forbidden, and why.
    Forbidden(String),
}

/// A wide watch, and what it knows.
pub(super) struct WideWatch {
    pub(super) stop: AbortHandle,
    /// The version of every object, referred to or not.
    known: BTreeMap<ObjectName, Version>,
    /// The list that is being read.
    listing: Option<BTreeMap<ObjectName, Version>>,
    /// Whether a list is complete.
    is_complete: bool,
    /// Whether a list comes before the next events.
    pub(super) is_listing: bool,
    pub(super) forbidden: Option<String>,
}

impl WideWatch {
    pub(super) fn new(stop: AbortHandle) -> Self {
        let (known, listing) = (BTreeMap::new(), None);
        Self { stop, known, listing, is_complete: false, is_listing: true, forbidden: None }
    }

    /// Begins anew, with another stream. What is known stays until a list is read.
    pub(super) fn restart(&mut self, stop: AbortHandle) {
        std::mem::replace(&mut self.stop, stop).abort();
        self.is_listing = true;
    }

    /// Whether the wide watch can answer for any object.
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
            Some(version) => State::There(version.clone()),
            None if self.is_complete => State::Absent,
            None => State::Unknown,
        }
    }

    /// Takes in what it sees. Returns whether it is forbidden or allowed since.
    pub(super) fn take(&mut self, sight: &WideEvent) -> bool {
        match sight {
            WideEvent::Began => {
                self.listing = Some(BTreeMap::new());
                self.is_listing = true;
                false
            }
            WideEvent::There(name, version, _) => {
                self.listing.as_mut().unwrap_or(&mut self.known).insert(name.clone(), version.clone());
                false
            }
            WideEvent::Gone(name) => {
                self.known.remove(name);
                false
            }
            WideEvent::Done => {
                self.known = self.listing.take().unwrap_or_default();
                self.is_complete = true;
                self.is_listing = false;
                self.forbidden.take().is_some()
            }
            WideEvent::Failed => false,
            WideEvent::Forbidden(message) => {
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

/// The events of a wide watch, in order.
pub(super) fn wide_sights<K: WorldKind>(
    ground: &WatchContext,
    scope: &Scope,
    gate: Arc<Semaphore>,
) -> impl Stream<Item = WideEvent> + Send + use<K> {
    let namespace = scope.namespace.as_ref().map(ToString::to_string);
    let selection = Selection { namespace, ..Selection::default() };
    list_watch::<K>(ground, &selection, Some(gate)).filter_map(move |seen| {
        future::ready(match seen {
            StreamItem::Event(watcher::Event::Init) => Some(WideEvent::Began),
            StreamItem::Event(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                let (name, version) = (object.name(), object.version());
                Some(WideEvent::There(name, version, K::input(watcher::Event::Apply(object))))
            }
            StreamItem::Event(watcher::Event::InitDone) => Some(WideEvent::Done),
            StreamItem::Event(watcher::Event::Delete(object)) => Some(WideEvent::Gone(object.name())),
            StreamItem::Failed(fault)
                if fault.step == Step::List && fault.category() == FaultCategory::Forbidden =>
            {
                Some(WideEvent::Forbidden(fault.cause.message))
            }
            StreamItem::Failed(fault) if fault.step == Step::List => Some(WideEvent::Failed),
            StreamItem::Opened | StreamItem::Failed(_) => None,
        })
    })
}
