//! backendRefs of every kind of route, and the filters on the way to them.

use std::sync::Arc;

use gateway_api::experimental::{grpcroutes, httproutes, tcproutes, tlsroutes, udproutes};
use serde::Serialize;

use super::backend_ref::name_of;
use super::mirror::{MirrorFilter, mirrors};
use super::{
    BackendPort, BackendRef, FilterReader, FilterScope, Filters, Match, Mirror, OtherKind, ReadFilters,
};
use crate::model::{Capability, FieldPath, Reason, Refusal, field};

/// Largest weight of a backend (Gateway API, `BackendRef.weight`).
const MAX_WEIGHT: u32 = 1_000_000;

/// A backendRef of some kind of route.
pub(super) trait WrittenBackend {
    /// Reads it, but for the weight, in a route of `namespace`.
    fn read(&self, namespace: &Arc<str>, index: usize, weight: u32) -> BackendRef;

    fn weight(&self) -> Option<i32>;
}

/// A backendRef with filters of its own.
pub(super) trait FilteredBackend: WrittenBackend {
    type Filter: Serialize + MirrorFilter;

    fn filters(&self) -> &[Self::Filter];
}

macro_rules! written_backends {
    ($($backend:ty;)+) => {$(
        impl WrittenBackend for $backend {
            fn read(&self, namespace: &Arc<str>, index: usize, weight: u32) -> BackendRef {
                BackendRef {
                    index,
                    other: OtherKind::of(self.group.as_deref(), self.kind.as_deref()),
                    name: name_of(namespace, self.namespace.as_deref(), &self.name),
                    port: self.port.map(BackendPort::Number),
                    weight,
                }
            }

            fn weight(&self) -> Option<i32> {
                self.weight
            }
        }
    )+};
}

written_backends! {
    httproutes::HttpRouteRulesBackendRefs;
    grpcroutes::GrpcRouteRulesBackendRefs;
    tlsroutes::TlsRouteRulesBackendRefs;
    tcproutes::TcpRouteRulesBackendRefs;
    udproutes::UdpRouteRulesBackendRefs;
}

macro_rules! filtered_backends {
    ($($backend:ty, $filter:ty;)+) => {$(
        impl FilteredBackend for $backend {
            type Filter = $filter;

            fn filters(&self) -> &[$filter] {
                self.filters.as_deref().unwrap_or_default()
            }
        }
    )+};
}

filtered_backends! {
    httproutes::HttpRouteRulesBackendRefs, httproutes::HttpRouteRulesBackendRefsFilters;
    grpcroutes::GrpcRouteRulesBackendRefs, grpcroutes::GrpcRouteRulesBackendRefsFilters;
}

/// The backends of a rule without their filters.
pub(super) fn normalise_backends<B: WrittenBackend>(
    namespace: &Arc<str>,
    rule: usize,
    refs: &[B],
    refusals: &mut Vec<Refusal>,
) -> Vec<BackendRef> {
    refs.iter()
        .enumerate()
        .map(|(position, backend)| {
            let at = || field::rule(rule).child("backendRefs").index(position).child("weight");
            backend.read(namespace, position, normalise_weight(backend.weight(), at, refusals))
        })
        .collect()
}

/// The backend configuration of a rule.
pub(super) struct WrittenBackends<'a, B> {
    pub(super) scope: FilterScope<'a>,
    /// Index into `spec.rules`.
    pub(super) rule: usize,
    pub(super) refs: Option<&'a [B]>,
    /// Whether the rule has filters of its own.
    pub(super) has_filters: bool,
}

impl<B: FilteredBackend> WrittenBackends<'_, B> {
    /// The backends, and the filters of the rule, which `read` reads, with those of its only backend.
    pub(super) fn normalise(
        &self,
        read: impl FnOnce(&mut FilterReader<'_>, &FieldPath),
        matches: &[Match],
        refusals: &mut Vec<Refusal>,
    ) -> (Vec<BackendRef>, ReadFilters) {
        let at = |name: &str| field::rule(self.rule).child(name);
        let refs = self.refs.unwrap_or_default();
        let backends = normalise_backends(self.scope.namespace, self.rule, refs, refusals);
        let mut of_backends = Vec::new();
        for (position, backend) in refs.iter().enumerate() {
            let filters = backend.filters();
            if !filters.is_empty() {
                of_backends.push((at("backendRefs").index(position).child("filters"), filters));
            }
        }
        if refs.len() > 1 {
            let lacks = |(at, _)| Capability::FiltersOfOneBackend.refuse(at);
            refusals.extend(of_backends.drain(..).map(lacks));
        }
        if !self.has_filters && of_backends.is_empty() {
            return (backends, ReadFilters::default());
        }
        let mut reader = FilterReader::new(self.scope, matches, refusals);
        read(&mut reader, &at("filters"));
        for (at, filters) in of_backends {
            reader.read_as_http(filters, &at);
        }
        let filters = reader.finish();
        let unused =
            filters.filters.as_deref().filter(|_| !backends.is_empty()).and_then(Filters::no_backend);
        if let Some(message) = unused {
            refusals.push(Refusal::new(at("backendRefs"), Reason::UnsupportedValue, message));
        }
        (backends, filters)
    }

    /// The mirrors in the filters of the rule and of each backend.
    pub(super) fn mirrors<F: MirrorFilter>(&self, of_rule: &[F]) -> Vec<Mirror> {
        let at = |name: &str| field::rule(self.rule).child(name);
        let of_backends = self.refs.unwrap_or_default().iter().enumerate().flat_map(|(position, backend)| {
            mirrors(
                self.scope.namespace,
                backend.filters(),
                &at("backendRefs").index(position).child("filters"),
            )
            .collect::<Vec<_>>()
        });
        mirrors(self.scope.namespace, of_rule, &at("filters")).chain(of_backends).collect()
    }
}

fn normalise_weight(written: Option<i32>, at: impl Fn() -> FieldPath, refusals: &mut Vec<Refusal>) -> u32 {
    let weight = written.unwrap_or(1);
    u32::try_from(weight).ok().filter(|weight| *weight <= MAX_WEIGHT).unwrap_or_else(|| {
        refusals.push(Refusal::new(
            at(),
            Reason::UnsupportedValue,
            format!("Weight {weight} is not between 0 and {MAX_WEIGHT}."),
        ));
        0
    })
}
