//! Normalise: generated types of routes in one kind-neutral shape.
//!
//! The files below are the only ones that know a route kind; later stages see [`Route`] and [`Rule`].

mod assemble;
mod backend;
mod backend_ref;
mod canary;
mod condition;
mod conditions;
mod filter;
mod grpc;
mod http;
mod ingress;
mod mirror;
mod path;
mod rule;
mod rule_match;
mod spelling;
mod stream;
mod timeouts;

pub(crate) use backend_ref::{BackendPort, BackendRef, OtherKind};
pub(crate) use canary::{Canary, PathKey, path_key};
pub(crate) use condition::{Condition, Expectation, Variable};
pub(crate) use conditions::{Conditions, VarsSize, vars_of};
pub(crate) use filter::{
    Cors, DirectResponse, Extensions, FilterReader, FilterScope, Filters, HeaderChanges, ReadFilters,
    Redirect, RegexRewrite, admits_any_origin, header_name, pattern_charge_of_policies, replace_prefix,
    rooted,
};
pub(crate) use ingress::{Neighbours, PLAINTEXT, host_fallback, normalise_ingress};
pub(crate) use mirror::Mirror;
pub(crate) use path::{Path, PathKind};
pub(crate) use rule::{BackendProtocol, BackendSettings, Hostnames, Part, Route, Rule, RuleRole};
pub(crate) use rule_match::Match;
pub(crate) use spelling::{SpellingEnds, beginnings, other_spellings};
pub(crate) use timeouts::{MAX_TIMEOUT, TimeoutsAndRetries};

use crate::snapshot::AnyRoute;

/// Normalises a route of any kind. Never fails: an unusable part becomes a refusal of its rule.
pub(crate) fn normalise_route(route: &AnyRoute, extensions: &Extensions) -> Route {
    match route {
        AnyRoute::HttpRoute(route) => http::normalise_http_route(route, extensions),
        AnyRoute::GrpcRoute(route) => grpc::normalise_grpc_route(route),
        AnyRoute::TlsRoute(route) => stream::normalise_tls_route(route),
        AnyRoute::TcpRoute(route) => stream::normalise_tcp_route(route),
        AnyRoute::UdpRoute(route) => stream::normalise_udp_route(route),
    }
}
