//! TLSRoute, TCPRoute and UDPRoute to the kind-neutral shape.

use gateway_api::experimental::{tcproutes, tlsroutes, udproutes};

use super::assemble::{RouteHeader, assemble};
use super::backend::{WrittenBackend, normalise_backends};
use super::{Hostnames, Route, Rule};
use crate::model::{FieldPath, Kind, ObjectName, Reason, Refusal};
use crate::snapshot::{OfKind, RouteObject, RouteSpec, TcpRoute, TlsRoute, UdpRoute};

/// Normalises a TLSRoute. Never fails: an unusable part becomes a refusal of its rule.
pub(super) fn normalise_tls_route(route: &TlsRoute) -> Route {
    let spec = route.spec();
    let header = RouteHeader {
        hostnames: Some(&spec.hostnames),
        uses_default_gateways: spec.use_default_gateways == Some(tlsroutes::TlsRouteUseDefaultGateways::All),
    };
    let mut normal =
        with_one_rule(route, &header, spec.rules.iter().map(|rule| rule.backend_refs.as_slice()));
    if normal.hostnames == Hostnames::Any {
        // Without hostnames the route matches no connection.
        normal.hostnames = Hostnames::Named(Box::default());
        normal.refusals.push(Refusal::new(
            FieldPath::new("spec").child("hostnames"),
            Reason::UnsupportedValue,
            "A TLSRoute needs a hostname.",
        ));
    }
    normal
}

/// Normalises a TCPRoute. Never fails: an unusable part becomes a refusal of its rule.
pub(super) fn normalise_tcp_route(route: &TcpRoute) -> Route {
    let spec = route.spec();
    let header = RouteHeader {
        hostnames: None,
        uses_default_gateways: spec.use_default_gateways == Some(tcproutes::TcpRouteUseDefaultGateways::All),
    };
    with_one_rule(route, &header, spec.rules.iter().map(|rule| rule.backend_refs.as_slice()))
}

/// Normalises a UDPRoute. Never fails: an unusable part becomes a refusal of its rule.
pub(super) fn normalise_udp_route(route: &UdpRoute) -> Route {
    let spec = route.spec();
    let header = RouteHeader {
        hostnames: None,
        uses_default_gateways: spec.use_default_gateways == Some(udproutes::UdpRouteUseDefaultGateways::All),
    };
    with_one_rule(route, &header, spec.rules.iter().map(|rule| rule.backend_refs.as_slice()))
}

fn with_one_rule<'a, S: RouteSpec, B: WrittenBackend + 'a>(
    route: &RouteObject<S>,
    header: &RouteHeader<'_>,
    rules: impl ExactSizeIterator<Item = &'a [B]>,
) -> Route
where
    RouteObject<S>: OfKind,
{
    assemble(route, header, vec![only_rule(&route.metadata.name, RouteObject::<S>::KIND, rules)])
}

/// Exactly one rule, however many are written: all connections of the route are handled alike.
fn only_rule<'a, B: WrittenBackend + 'a>(
    route: &ObjectName,
    kind: Kind,
    mut rules: impl ExactSizeIterator<Item = &'a [B]>,
) -> Rule {
    let mut refusals = Vec::new();
    if rules.len() != 1 {
        refusals.push(Refusal::new(
            FieldPath::new("spec").child("rules"),
            Reason::UnsupportedValue,
            format!("A {kind} has exactly one rule, not {}.", rules.len()),
        ));
    }
    let backends = normalise_backends(&route.namespace, 0, rules.next().unwrap_or_default(), &mut refusals);
    Rule { backends: backends.into(), refusals: refusals.into(), ..Rule::default() }
}
