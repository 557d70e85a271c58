//! Permission to attach: `allowedRoutes` of listeners and `allowedListeners` of Gateways.

use std::collections::BTreeMap;

use gateway_api::gateways as api;
use kube::core::{Selector, SelectorExt as _};

use super::protocol::Protocol;
use super::selector::{self, Requirement};
use crate::model::{FieldPath, GATEWAY_GROUP, Kind, Reason, Refusal, RouteKind};
use crate::snapshot::GatewaySpec;

/// The namespaces whose objects may attach: `allowedRoutes.namespaces` and `allowedListeners.namespaces`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AllowedNamespaces {
    /// No namespace, also if the field cannot be evaluated.
    None,
    /// The namespace of the listener or Gateway.
    Same,
    /// Every namespace.
    All,
    /// Namespaces whose labels are selected.
    Selector(Selector),
}

/// The namespaces of a selector of either generated type, at a field.
macro_rules! selected {
    ($selector:expr, $at:expr) => {{
        let selector = $selector.as_ref().ok_or_else(|| no_selector(&$at))?;
        let expressions = selector.match_expressions.iter().flatten().map(|one| Requirement {
            key: &one.key,
            operator: &one.operator,
            values: one.values.as_deref(),
        });
        selector::read(selector.match_labels.as_ref(), expressions, &$at).map(Self::Selector)
    }};
}

impl AllowedNamespaces {
    /// Reads `allowedRoutes.namespaces` of a listener.
    pub(super) fn of(listener: &api::GatewayListeners, at: &FieldPath) -> Result<Self, Refusal> {
        use api::GatewayListenersAllowedRoutesNamespacesFrom as From;
        let namespaces = listener.allowed_routes.as_ref().and_then(|allowed| allowed.namespaces.as_ref());
        let Some(namespaces) = namespaces else { return Ok(Self::Same) };
        match namespaces.from.as_ref().unwrap_or(&From::Same) {
            From::Same => Ok(Self::Same),
            From::All => Ok(Self::All),
            From::Selector => {
                let at = at.child("allowedRoutes").child("namespaces").child("selector");
                selected!(&namespaces.selector, at)
            }
        }
    }

    /// Reads `allowedListeners.namespaces` of a Gateway. Without this field, no ListenerSet is allowed.
    pub(super) fn of_listener_sets(gateway: &GatewaySpec) -> Result<Self, Refusal> {
        use api::GatewayAllowedListenersNamespacesFrom as From;
        let namespaces = gateway.allowed_listeners.as_ref().and_then(|allowed| allowed.namespaces.as_ref());
        let Some(namespaces) = namespaces else { return Ok(Self::None) };
        match namespaces.from.as_ref().unwrap_or(&From::None) {
            From::None => Ok(Self::None),
            From::Same => Ok(Self::Same),
            From::All => Ok(Self::All),
            From::Selector => {
                let at =
                    FieldPath::new("spec").child("allowedListeners").child("namespaces").child("selector");
                selected!(&namespaces.selector, at)
            }
        }
    }

    /// Whether objects of a namespace with these labels may attach to one of namespace `own`.
    pub(crate) fn admits(&self, own: &str, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::None => false,
            Self::Same => own == namespace,
            Self::All => true,
            Self::Selector(selector) => selector.matches(labels),
        }
    }
}

fn no_selector(at: &FieldPath) -> Refusal {
    Refusal::new(at.clone(), Reason::UnsupportedValue, "Namespaces from Selector need a selector.")
}

/// The kinds of routes that may attach, and a refusal for each kind in `allowedRoutes.kinds` that may not.
pub(super) fn supported_kinds(
    listener: &api::GatewayListeners,
    protocol: Protocol,
    at: &FieldPath,
) -> (Vec<RouteKind>, Vec<Refusal>) {
    let carried = protocol.route_kinds();
    let as_route_kind =
        |kind: Kind| RouteKind { group: kind.group().to_owned(), kind: kind.as_str().to_owned() };
    let requested =
        listener.allowed_routes.as_ref().and_then(|allowed| allowed.kinds.as_deref()).unwrap_or_default();
    if requested.is_empty() {
        return (carried.iter().copied().map(as_route_kind).collect(), Vec::new());
    }
    let mut supported = Vec::new();
    let mut refused = Vec::new();
    for (index, kind) in requested.iter().enumerate() {
        let group = kind.group.as_deref().unwrap_or(GATEWAY_GROUP);
        match Kind::from_group_kind(group, &kind.kind).filter(|known| carried.contains(known)) {
            Some(known) => {
                let kind = as_route_kind(known);
                if !supported.contains(&kind) {
                    supported.push(kind);
                }
            }
            None => refused.push(Refusal::new(
                at.child("allowedRoutes").child("kinds").index(index),
                Reason::InvalidRouteKinds,
                format!(
                    "Routes of kind {} of group \"{group}\" cannot attach to a listener with protocol {}.",
                    kind.kind, listener.protocol
                ),
            )),
        }
    }
    (supported, refused)
}

#[cfg(test)]
mod tests;
