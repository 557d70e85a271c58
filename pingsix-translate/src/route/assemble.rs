//! What routes of every kind have in common: identity, parents, hostnames, backendRefs.

use std::collections::BTreeSet;
use std::sync::Arc;

use gateway_api::experimental::{grpcroutes, httproutes};
use kube::core::ObjectMeta;

use super::{BackendRef, Hostnames, Limit, Refusal, Route, Rule, Traffic};
use crate::attach::Hostname;
use crate::field::{self, FieldPath};
use crate::object::{Age, Kind};
use crate::snapshot::{RouteReferences, key_of};
use crate::verdict::Reason;

/// Largest weight of a backend (Gateway API, `BackendRef.weight`).
const MAX_WEIGHT: u32 = 1_000_000;

/// What is left of a route's spec when parents and rules are taken away.
pub(super) struct RouteFrame<'a> {
    pub(super) metadata: &'a ObjectMeta,
    pub(super) hostnames: Option<&'a [String]>,
    /// Whether `useDefaultGateways` asks for Gateways that the route does not name.
    pub(super) uses_default_gateways: bool,
}

/// Puts a route together.
pub(super) fn assemble<R: RouteReferences>(
    route: &R,
    frame: &RouteFrame<'_>,
    traffic: Traffic,
    rules: Vec<Rule>,
) -> Route {
    let mut refusals = Vec::new();
    let hostnames = normalise_hostnames(frame.hostnames, &mut refusals);
    let default_gateways = frame.uses_default_gateways.then(|| {
        Limit::new(
            FieldPath::new("spec").child("useDefaultGateways"),
            "There are no default Gateways; only those that parentRefs name serve the route.",
        )
    });
    Route {
        key: Arc::new(key_of(R::KIND, frame.metadata)),
        traffic,
        generation: frame.metadata.generation.unwrap_or_default(),
        age: Age::of(frame.metadata),
        parent_refs: route.parent_refs(),
        hostnames,
        rules,
        refusals,
        limits: default_gateways.into_iter().collect(),
    }
}

fn normalise_hostnames(names: Option<&[String]>, refusals: &mut Vec<Refusal>) -> Hostnames {
    let names = names.unwrap_or_default();
    if names.is_empty() {
        return Hostnames::Any;
    }
    let mut usable = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        match Hostname::parse(name) {
            Ok(hostname) => {
                usable.insert(hostname);
            }
            Err(flaw) => refusals.push(Refusal::new(
                FieldPath::new("spec").child("hostnames").index(index),
                Reason::UnsupportedValue,
                format!("\"{name}\" is not a hostname a request could have: {flaw}."),
            )),
        }
    }
    Hostnames::Named(usable.into_iter().collect())
}

/// A backendRef as written, whatever kind of route it is of.
pub(super) struct WrittenBackend<'a> {
    group: Option<&'a str>,
    kind: Option<&'a str>,
    namespace: Option<&'a str>,
    name: &'a str,
    port: Option<i32>,
    weight: Option<i32>,
}

macro_rules! written_backends {
    ($($backend:ty),+) => {$(
        impl<'a> From<&'a $backend> for WrittenBackend<'a> {
            fn from(backend: &'a $backend) -> Self {
                Self {
                    group: backend.group.as_deref(),
                    kind: backend.kind.as_deref(),
                    namespace: backend.namespace.as_deref(),
                    name: &backend.name,
                    port: backend.port,
                    weight: backend.weight,
                }
            }
        }
    )+};
}

written_backends!(httproutes::HttpRouteRulesBackendRefs, grpcroutes::GrpcRouteRulesBackendRefs);

/// Reads a backendRef.
pub(super) fn normalise_backend<'a>(
    (rule, index): (usize, usize),
    backend: impl Into<WrittenBackend<'a>>,
    refusals: &mut Vec<Refusal>,
) -> BackendRef {
    let WrittenBackend { group, kind, namespace, name, port, weight } = backend.into();
    let weight = weight.unwrap_or(1);
    BackendRef {
        index,
        group: group.unwrap_or_default().to_owned(),
        kind: kind.unwrap_or(Kind::Service.as_str()).to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        port,
        weight: u32::try_from(weight).ok().filter(|weight| *weight <= MAX_WEIGHT).unwrap_or_else(|| {
            refusals.push(Refusal::new(
                field::rule(rule).child("backendRefs").index(index).child("weight"),
                Reason::UnsupportedValue,
                format!("Weight {weight} is not between 0 and {MAX_WEIGHT}."),
            ));
            0
        }),
    }
}
