//! A referenced object, and the watch of its name.

use std::collections::{BTreeMap, BTreeSet};
use std::future;
use std::sync::Arc;

use futures::stream::{AbortHandle, Stream, StreamExt as _};
use kube_runtime::watcher;
use pingsix_translate::{ObjectKey, ObjectName, is_dns_label, is_dns_subdomain};
use tokio::sync::Semaphore;

use super::error::Step;
use super::input::{Input, WorldKind};
use super::stream::{Selection, StreamItem, WatchContext, list_watch};
use super::watch_plan::{KindInNamespace, Quota};
use super::wide::{Scope, State, Version};
use crate::api_error::ApiErrorCategory;

/// The referenced objects of one kind in one namespace.
#[derive(Default)]
pub(super) struct NamespaceReferences {
    pub(super) objects: BTreeMap<ObjectName, ReferencedObject>,
    pub(super) quota: Option<Quota>,
    /// The number of objects watched by name.
    pub(super) by_name: usize,
    /// The objects whose existence is unknown.
    pub(super) unresolved: BTreeSet<ObjectName>,
    /// The objects that await the list of the wide watch.
    pub(super) awaited: BTreeSet<ObjectName>,
}

/// A referenced object.
pub(super) struct ReferencedObject {
    pub(super) watch: Option<NameWatch>,
    pub(super) source: AnswerSource,
    /// The last reported state.
    pub(super) reported: State,
    /// The version that the world has, if it has the object.
    pub(super) delivered: Option<Version>,
}

/// The watch of one object, and its last state.
pub(super) struct NameWatch {
    pub(super) stop: AbortHandle,
    pub(super) state: State,
}

/// The watch that reports an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerSource {
    /// The watch of the name.
    Name,
    /// The watch of the namespace.
    Namespace,
    /// The watch of all namespaces.
    Cluster,
}

impl AnswerSource {
    /// The wide watch of a scope.
    pub(super) const fn of(scope: &Scope) -> Self {
        if scope.namespace.is_some() { Self::Namespace } else { Self::Cluster }
    }

    /// The scope of the watch for objects of a namespace; `None` for watches of names.
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
    /// The object exists; the input has its content.
    Present(Version, Input),
    /// The object does not exist.
    Absent,
    /// The API server forbids to read the object.
    Forbidden(String),
}

/// The events of one object, in order. Of the failures, `403 Forbidden` alone is an event.
pub(super) fn named_events<K: WorldKind>(
    context: &WatchContext,
    key: &ObjectKey,
    list_permits: Arc<Semaphore>,
) -> impl Stream<Item = NamedEvent> + Send + use<K> {
    let selection = Selection {
        namespace: Some(key.name.namespace.to_string()),
        labels: None,
        fields: Some(format!("metadata.name={}", key.name.name)),
    };
    let mut was_listed = false;
    list_watch::<K>(context, &selection, Some(list_permits)).filter_map(move |seen| {
        future::ready(match seen {
            StreamItem::Event(watcher::Event::Init) => {
                was_listed = false;
                None
            }
            StreamItem::Event(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                was_listed = true;
                let version = object.version();
                Some(NamedEvent::Present(version, K::input(watcher::Event::Apply(object))))
            }
            StreamItem::Event(watcher::Event::InitDone) if was_listed => None,
            StreamItem::Event(watcher::Event::InitDone | watcher::Event::Delete(_)) => {
                Some(NamedEvent::Absent)
            }
            StreamItem::Failed(error)
                if error.step == Step::List && error.category() == ApiErrorCategory::Forbidden =>
            {
                Some(NamedEvent::Forbidden(error.cause.message))
            }
            // Without permission to watch, each new list reports the object.
            StreamItem::Opened | StreamItem::Failed(_) => None,
        })
    })
}

/// Whether an object with this key can exist. Authors write references, which become parts of a path and of a selector;
/// other characters would have a meaning there.
pub(super) fn can_exist(key: &ObjectKey) -> bool {
    let (namespace, name) = (&key.name.namespace, &key.name.name);
    namespace.len() <= 63 && is_dns_label(namespace) && is_dns_subdomain(name)
}
