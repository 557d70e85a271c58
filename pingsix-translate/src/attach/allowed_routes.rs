//! Which routes a listener lets attach: `allowedRoutes`.

use std::collections::BTreeMap;

use gateway_api::gateways as api;

use super::listener::Protocol;
use crate::field::FieldPath;
use crate::object::{GATEWAY_GROUP, Kind};
use crate::route::Refusal;
use crate::verdict::{Reason, RouteKind};

/// `allowedRoutes.namespaces`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AllowedNamespaces {
    /// None: what was asked for cannot be evaluated.
    None,
    /// That of the Gateway.
    Same,
    /// Every namespace.
    All,
    /// Those whose labels meet every requirement.
    Selector(Vec<Requirement>),
}

/// What a selector asks of one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
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
                let Some(selector) = &namespaces.selector else {
                    let message = "Namespaces from Selector need a selector.";
                    return Err(Refusal::new(at, Reason::UnsupportedValue, message));
                };
                let labels = selector.match_labels.iter().flatten().map(|(key, value)| {
                    Ok(Requirement { key: key.clone(), operator: Operator::In(vec![value.clone()]) })
                });
                let expressions =
                    selector.match_expressions.iter().flatten().enumerate().map(|(index, expression)| {
                        let operator = Operator::parse(
                            &expression.operator,
                            expression.values.as_deref().unwrap_or_default(),
                        );
                        let operator = operator.map_err(|message| {
                            let at = at.child("matchExpressions").index(index);
                            Refusal::new(at, Reason::UnsupportedValue, message)
                        })?;
                        Ok(Requirement { key: expression.key.clone(), operator })
                    });
                labels.chain(expressions).collect::<Result<_, _>>().map(Self::Selector)
            }
        }
    }

    /// Whether routes of a namespace with these labels may attach.
    pub(crate) fn admits(&self, own: &str, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::None => false,
            Self::Same => own == namespace,
            Self::All => true,
            Self::Selector(requirements) => requirements.iter().all(|requirement| requirement.holds(labels)),
        }
    }
}

impl Operator {
    /// As Kubernetes reads it (`LabelSelectorRequirement`): the schema of the API leaves the word open.
    fn parse(text: &str, values: &[String]) -> Result<Self, String> {
        match text {
            "In" | "NotIn" if values.is_empty() => Err(format!("Operator {text} needs values.")),
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                Err(format!("Operator {text} takes no values."))
            }
            "In" => Ok(Self::In(values.to_vec())),
            "NotIn" => Ok(Self::NotIn(values.to_vec())),
            "Exists" => Ok(Self::Exists),
            "DoesNotExist" => Ok(Self::DoesNotExist),
            _ => Err(format!("\"{text}\" is not an operator; In, NotIn, Exists and DoesNotExist are.")),
        }
    }
}

impl Requirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// The kinds of routes that may attach, and one refusal for each kind asked for that may not.
pub(super) fn supported_kinds(
    listener: &api::GatewayListeners,
    protocol: Protocol,
    at: &FieldPath,
) -> (Vec<RouteKind>, Vec<Refusal>) {
    let carried = protocol.route_kinds();
    let as_route_kind =
        |kind: Kind| RouteKind { group: kind.group().to_owned(), kind: kind.as_str().to_owned() };
    let asked =
        listener.allowed_routes.as_ref().and_then(|allowed| allowed.kinds.as_deref()).unwrap_or_default();
    if asked.is_empty() {
        return (carried.iter().copied().map(as_route_kind).collect(), Vec::new());
    }
    let mut supported = Vec::new();
    let mut refused = Vec::new();
    for (index, kind) in asked.iter().enumerate() {
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
