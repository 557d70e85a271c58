//! A referenced object, and the watch of its name.

use std::collections::{BTreeMap, BTreeSet};
use std::future;

use futures::stream::{AbortHandle, Stream, StreamExt as _};
use pingsix_translate::{ObjectKey, ObjectName, is_dns_label, is_dns_subdomain};

use super::input::Input;
use super::watch_plan::{KindInNamespace, Quota};
use super::wide::{Scope, State, Version, WideEvent};

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

/// The events of one object, in order, from those of its watch. Of the failures, `403 Forbidden` alone is an event.
pub(super) fn named_events(
    events: impl Stream<Item = WideEvent> + Send,
) -> impl Stream<Item = NamedEvent> + Send {
    let mut was_listed = false;
    events.filter_map(move |event| {
        future::ready(match event {
            WideEvent::ListStarted => {
                was_listed = false;
                None
            }
            WideEvent::Present(_, version, input) => {
                was_listed = true;
                Some(NamedEvent::Present(version, input))
            }
            WideEvent::ListDone if was_listed => None,
            WideEvent::ListDone | WideEvent::Deleted(_) => Some(NamedEvent::Absent),
            WideEvent::ListForbidden(message) => Some(NamedEvent::Forbidden(message)),
            // Without permission to watch, each new list reports the object.
            WideEvent::ListFailed => None,
        })
    })
}

/// Whether an object with this key can exist. Authors write references, which become parts of a path and of a selector;
/// other characters would have a meaning there.
pub(super) fn can_exist(key: &ObjectKey) -> bool {
    let (namespace, name) = (&key.name.namespace, &key.name.name);
    namespace.len() <= 63 && is_dns_label(namespace) && is_dns_subdomain(name)
}
