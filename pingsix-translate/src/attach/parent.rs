//! From parentRefs to listeners (Gateway API, route attachment).

use std::collections::BTreeMap;

use super::{Listener, ListenerOwner, Listeners};
use crate::model::{FieldPath, Hostname, ParentRef, Reason, Refusal};
use crate::normalise::{Hostnames, Route};
use crate::references::References;

/// The result of a parentRef that names the Gateway or one of its ListenerSets.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attachment {
    pub(crate) parent_ref: ParentRef,
    /// The indices of the listeners to which the route is attached, or the reason why there are none.
    pub(crate) outcome: Result<Vec<usize>, Refusal>,
}

/// A name that is served: the intersection of a route's hostname with the listener's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServedName {
    /// The hostname that PingSIX matches; `None` is every host.
    pub(crate) served: Option<Hostname>,
    /// The hostname of the route, which decides the precedence among equal served names (Gateway API v1.7.0).
    pub(crate) original: Option<Hostname>,
}

/// Attaches a route through each parentRef that names the Gateway or one of its ListenerSets, in spec order.
pub(crate) fn attach_route(
    route: &Route,
    listeners: &Listeners,
    references: &References<'_>,
) -> Vec<Attachment> {
    let namespace = &route.key.name.namespace;
    let labels = references.namespace_labels(namespace);
    let attachments = route.parent_refs.iter().filter_map(|parent_ref| {
        let owner = listeners.named_by(parent_ref, namespace)?;
        Some(Attachment {
            parent_ref: parent_ref.clone(),
            outcome: attach_parent(route, parent_ref, owner, listeners, &labels),
        })
    });
    attachments.collect()
}

fn attach_parent(
    route: &Route,
    parent: &ParentRef,
    owner: &ListenerOwner,
    listeners: &Listeners,
    labels: &BTreeMap<String, String>,
) -> Result<Vec<usize>, Refusal> {
    let at = FieldPath::new("spec").child("parentRefs").index(parent.index);
    let ListenerOwner { key, .. } = owner;
    if owner.excluded.is_some() {
        // A ListenerSet that is not allowed is no part of the Gateway, so it has no listeners here.
        return Err(Refusal::new(
            at,
            Reason::NoMatchingParent,
            format!("{key} has no listeners, because its Gateway does not allow it."),
        ));
    }
    let selected: Vec<(usize, &Listener)> = owner
        .listeners
        .clone()
        .zip(listeners.of(owner))
        .filter(|(_, listener)| parent.selects(&listener.name, listener.written_port))
        .collect();
    if selected.is_empty() {
        let wanted = match (parent.section(), parent.port) {
            (Some(name), Some(port)) => format!("listener \"{name}\" on port {port}"),
            (Some(name), None) => format!("listener \"{name}\""),
            (None, Some(port)) => format!("listener on port {port}"),
            (None, None) => "listener".to_owned(),
        };
        return Err(Refusal::new(at, Reason::NoMatchingParent, format!("{key} has no {wanted}.")));
    }
    let kind = route.key.kind;
    let namespace = &*route.key.name.namespace;
    let allowed: Vec<(usize, &Listener)> = selected
        .into_iter()
        .filter(|(_, listener)| {
            listener.supports(kind) && listener.namespaces.admits(&key.name.namespace, namespace, labels)
        })
        .collect();
    if allowed.is_empty() {
        return Err(Refusal::new(
            at,
            Reason::NotAllowedByListeners,
            format!("No selected listener of {key} allows routes of kind {kind} from namespace {namespace}."),
        ));
    }
    let attached: Vec<usize> = allowed
        .into_iter()
        .filter(|(_, listener)| !served_names(&route.hostnames, listener.hostname.as_ref()).is_empty())
        .map(|(index, _)| index)
        .collect();
    if attached.is_empty() {
        return Err(Refusal::new(
            FieldPath::new("spec").child("hostnames"),
            Reason::NoMatchingListenerHostname,
            format!("No hostname of the route is served by the selected listeners of {key}."),
        ));
    }
    Ok(attached)
}

/// The intersections of a route's names with a listener's (Gateway API, `HTTPRouteSpec.hostnames`).
pub(crate) fn served_names(hostnames: &Hostnames, listener: Option<&Hostname>) -> Vec<ServedName> {
    match hostnames {
        Hostnames::Any => vec![ServedName { served: listener.cloned(), original: None }],
        Hostnames::Named(names) => names
            .iter()
            .filter_map(|original| {
                let served = match listener {
                    None => original.clone(),
                    Some(listener) => listener.intersection(original)?,
                };
                Some(ServedName { served: Some(served), original: Some(original.clone()) })
            })
            .collect(),
    }
}

/// The listeners to which a route is attached, once for each parentRef.
pub(crate) fn attached_listeners(parents: &[Attachment]) -> impl Iterator<Item = usize> {
    parents.iter().filter_map(|parent| parent.outcome.as_ref().ok()).flatten().copied()
}

/// The hosts under which a route is served by the listeners that it is attached to; `None` is every host.
pub(crate) fn served_hosts<'a>(
    hostnames: &'a Hostnames,
    attached: impl Iterator<Item = usize> + 'a,
    listeners: &'a [Listener],
) -> impl Iterator<Item = Option<Hostname>> + 'a {
    attached.flat_map(|index| {
        let of_listener = listeners.get(index).and_then(|listener| listener.hostname.as_ref());
        served_names(hostnames, of_listener).into_iter().map(|name| name.served)
    })
}

/// The one host of all requests that reach a route through any listener; `None` if there may be several.
pub(crate) fn only_host(
    hostnames: &Hostnames,
    attached: impl Iterator<Item = usize>,
    listeners: &[Listener],
) -> Option<Hostname> {
    let mut served = served_hosts(hostnames, attached, listeners);
    let only = served.next()??;
    (!only.is_wildcard() && served.all(|other| other.as_ref() == Some(&only))).then_some(only)
}

#[cfg(test)]
mod tests;
