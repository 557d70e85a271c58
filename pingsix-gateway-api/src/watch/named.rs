//! One object that is referred to, and the watch of its name.

use std::collections::{BTreeMap, BTreeSet};
use std::future;
use std::sync::Arc;

use futures::stream::{AbortHandle, Stream, StreamExt as _};
use kube_runtime::watcher;
use pingsix_translate::{ObjectKey, ObjectName};
use tokio::sync::Semaphore;

use super::allotment::{KindInNamespace, Share};
use super::fault::Step;
use super::input::{Input, WorldKind};
use super::stream::{Selection, StreamItem, WatchContext, list_watch};
use super::wide::{Scope, State, Version};
use crate::fault::FaultCategory;

/// The names that are referred to in a place.
#[derive(Default)]
pub(super) struct Referents {
    pub(super) objects: BTreeMap<ObjectName, Named>,
    pub(super) share: Option<Share>,
    /// The limit of objects watched by name.
    pub(super) by_name: usize,
    /// The objects whose existence is unknown.
    pub(super) unsettled: BTreeSet<ObjectName>,
    /// The objects that await the list of the wide watch.
    pub(super) awaited: BTreeSet<ObjectName>,
}

/// An object that is referred to.
pub(super) struct Named {
    pub(super) watch: Option<NameWatch>,
    pub(super) speaker: Speaker,
    /// The last state passed on.
    pub(super) told: State,
    /// The version that the world has, if it has the object.
    pub(super) delivered: Option<Version>,
}

/// The watch of one object, and how it knows that.
pub(super) struct NameWatch {
    pub(super) stop: AbortHandle,
    pub(super) state: State,
}

/// Which watch speaks for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    /// That of its name.
    Name,
    /// That of its namespace.
    Namespace,
    /// That of all namespaces.
    Cluster,
}

impl Speaker {
    /// The watch of a scope.
    pub(super) const fn of(scope: &Scope) -> Self {
        if scope.namespace.is_some() { Self::Namespace } else { Self::Cluster }
    }

    /// The scope in which it watches objects of a place.
    pub(super) fn scope(self, place: &KindInNamespace) -> Option<Scope> {
        match self {
            Self::Name => None,
            Self::Namespace => Some(Scope::of(place)),
            Self::Cluster => Some(Scope::everywhere(place.kind)),
        }
    }
}

/// The event of a watch of one object.
pub(super) enum NamedEvent {
    /// The object exists, as in this event.
    There(Version, Input),
    /// The object does not exist.
    Absent,
    /// We may not know.
    Forbidden(String),
}

/// The events of one object, in order. Failures other than a refusal are left out.
pub(super) fn sights<K: WorldKind>(
    ground: &WatchContext,
    key: &ObjectKey,
    gate: Arc<Semaphore>,
) -> impl Stream<Item = NamedEvent> + Send + use<K> {
    let selection = Selection {
        namespace: Some(key.name.namespace.to_string()),
        labels: None,
        fields: Some(format!("metadata.name={}", key.name.name)),
    };
    let mut was_listed = false;
    list_watch::<K>(ground, &selection, Some(gate)).filter_map(move |seen| {
        future::ready(match seen {
            StreamItem::Event(watcher::Event::Init) => {
                was_listed = false;
                None
            }
            StreamItem::Event(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                was_listed = true;
                let version = object.version();
                Some(NamedEvent::There(version, K::input(watcher::Event::Apply(object))))
            }
            StreamItem::Event(watcher::Event::InitDone) if was_listed => None,
            StreamItem::Event(watcher::Event::InitDone | watcher::Event::Delete(_)) => {
                Some(NamedEvent::Absent)
            }
            StreamItem::Failed(fault)
                if fault.step == Step::List && fault.category() == FaultCategory::Forbidden =>
            {
                Some(NamedEvent::Forbidden(fault.cause.message))
            }
            // One who may list and not watch is told at every list.
            StreamItem::Opened | StreamItem::Failed(_) => None,
        })
    })
}

/// Whether an object with this key can exist. References are written by people, and end up in a path and in a selector,
/// where other characters mean something else.
pub(super) fn can_exist(key: &ObjectKey) -> bool {
    let is_name = |name: &str, longest: usize| {
        let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = name.as_bytes();
        name.len() <= longest
            && edge(bytes.first())
            && edge(bytes.last())
            && bytes.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
    };
    is_name(&key.name.namespace, 63) && !key.name.namespace.contains('.') && is_name(&key.name.name, 253)
}
