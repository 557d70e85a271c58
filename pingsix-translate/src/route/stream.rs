//! TLSRoute, TCPRoute and UDPRoute to the kind-neutral shape.

use std::sync::Arc;

use kube::core::ObjectMeta;

use super::http::{MAX_WEIGHT, normalise_hostnames};
use super::{BackendRef, Exchange, Hostnames, ParentRef, Refusal, Route, Rule};
use crate::field::{self, FieldPath};
use crate::object::{Age, Kind};
use crate::snapshot::{RouteReferences as _, TcpRoute, TlsRoute, UdpRoute, key_of};
use crate::verdict::Reason;

/// Reads the fields of a backendRef of whichever generated type.
macro_rules! written {
    () => {
        |backend| Written {
            group: backend.group.as_deref(),
            kind: backend.kind.as_deref(),
            namespace: backend.namespace.as_deref(),
            name: &backend.name,
            port: backend.port,
            weight: backend.weight,
        }
    };
}

/// Reads a TLSRoute. Never fails: what cannot be honoured becomes a refusal of its rule.
pub(crate) fn normalise_tls_route(route: &TlsRoute) -> Route {
    let mut refusals = Vec::new();
    let hostnames = match normalise_hostnames(Some(&route.spec.hostnames), |refusal| refusals.push(refusal)) {
        // Nothing says whose connections are meant, so nobody's are.
        Hostnames::Any => {
            refusals.push(Refusal::new(
                FieldPath::new("spec").child("hostnames"),
                Reason::UnsupportedValue,
                "A TLSRoute needs a hostname.",
            ));
            Hostnames::Named(Vec::new())
        }
        named @ Hostnames::Named(_) => named,
    };
    let rules = route.spec.rules.iter().map(|rule| rule.backend_refs.iter().map(written!()).collect());
    Route { hostnames, refusals, ..stream_route(Kind::TlsRoute, &route.metadata, route.parent_refs(), rules) }
}

/// Reads a TCPRoute. Never fails: what cannot be honoured becomes a refusal of its rule.
pub(crate) fn normalise_tcp_route(route: &TcpRoute) -> Route {
    let rules = route.spec.rules.iter().map(|rule| rule.backend_refs.iter().map(written!()).collect());
    stream_route(Kind::TcpRoute, &route.metadata, route.parent_refs(), rules)
}

/// Reads a UDPRoute. Never fails: what cannot be honoured becomes a refusal of its rule.
pub(crate) fn normalise_udp_route(route: &UdpRoute) -> Route {
    let rules = route.spec.rules.iter().map(|rule| rule.backend_refs.iter().map(written!()).collect());
    stream_route(Kind::UdpRoute, &route.metadata, route.parent_refs(), rules)
}

/// A backendRef as written: the same fields in every generated type.
struct Written<'a> {
    group: Option<&'a str>,
    kind: Option<&'a str>,
    namespace: Option<&'a str>,
    name: &'a str,
    port: Option<i32>,
    weight: Option<i32>,
}

/// A route with exactly one rule, whatever was written: every connection it stands for meets the same fate.
fn stream_route<'a>(
    kind: Kind,
    metadata: &ObjectMeta,
    parent_refs: Vec<ParentRef>,
    rules: impl ExactSizeIterator<Item = Vec<Written<'a>>>,
) -> Route {
    let mut refusals = Vec::new();
    if rules.len() != 1 {
        refusals.push(Refusal::new(
            FieldPath::new("spec").child("rules"),
            Reason::UnsupportedValue,
            format!("A {kind} has exactly one rule, not {}.", rules.len()),
        ));
    }
    let backends = rules
        .take(1)
        .flatten()
        .enumerate()
        .map(|(index, backend)| normalise_backend(index, &backend, &mut refusals))
        .collect();
    Route {
        key: Arc::new(key_of(kind, metadata)),
        generation: metadata.generation.unwrap_or_default(),
        age: Age::of(metadata),
        parent_refs,
        hostnames: Hostnames::Any,
        rules: vec![Rule {
            index: 0,
            matches: Vec::new(),
            backends,
            filters: None,
            host: None,
            exchange: Exchange::default(),
            limits: Vec::new(),
            refusals,
        }],
        refusals: Vec::new(),
    }
}

fn normalise_backend(index: usize, backend: &Written<'_>, refusals: &mut Vec<Refusal>) -> BackendRef {
    let weight = backend.weight.unwrap_or(1);
    BackendRef {
        index,
        group: backend.group.unwrap_or_default().to_owned(),
        kind: backend.kind.unwrap_or(Kind::Service.as_str()).to_owned(),
        namespace: backend.namespace.map(str::to_owned),
        name: backend.name.to_owned(),
        port: backend.port,
        weight: u32::try_from(weight).ok().filter(|weight| *weight <= MAX_WEIGHT).unwrap_or_else(|| {
            refusals.push(Refusal::new(
                field::rule(0).child("backendRefs").index(index).child("weight"),
                Reason::UnsupportedValue,
                format!("Weight {weight} is not between 0 and {MAX_WEIGHT}."),
            ));
            0
        }),
    }
}
