//! The translation of one snapshot, stage by stage.

mod ingress;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use ingress::translate_ingress;

use crate::attach::{attach_route, judge_listeners, only_host};
use crate::lower::{Lowered, LoweredStreams, RouteInput, lower_plane, lower_streams, planes};
use crate::object::Kind;
use crate::options::Options;
use crate::policy::{BackendTlsPolicies, Carried};
use crate::resolve::{Backends, References};
use crate::route::{
    Route, normalise_grpc_route, normalise_http_route, normalise_tcp_route, normalise_tls_route,
    normalise_udp_route,
};
use crate::snapshot::{Snapshot, key_of};
use crate::translation::{DataPlane, DataPlaneKey, StreamPlane, Translation};
use crate::verdict::{
    Judged, Refusals, Verdicts, attached_routes, judge_gateway, judge_listener_sets, judge_policies,
    judge_route, refuse_gateway,
};

/// Translates what one Gateway may see into PingSIX configuration and verdicts.
///
/// Total and deterministic: whatever the objects hold, there is a result, and the same snapshot and options give
/// the same bytes. What cannot be honoured answers an error to the requests it stands for and is named in the
/// verdicts; everything else is served.
pub fn translate(snapshot: &Snapshot, options: &Options) -> Translation {
    let gateway = Arc::new(key_of(Kind::Gateway, &snapshot.gateway.metadata));
    let references = References::new(&snapshot.referents);
    let mut problems = Vec::new();
    let mut listeners = judge_listeners(snapshot, &gateway, &references, options, &mut problems);
    let planes = planes(&gateway.name, &listeners.all, options.layout);
    for (listener, limit) in planes.iter().flat_map(|plane| &plane.certificates.limits) {
        listeners.all[*listener].limits.push(limit.clone());
    }
    for listener in &listeners.all {
        problems.extend(listener.limits.iter().map(|limit| limit.of(&listener.owner)));
    }

    let policies = BackendTlsPolicies::new(&snapshot.backend_tls_policies, &references);
    let mut backends = Backends::default();
    let mut routes = Vec::new();
    for route in normalised(snapshot) {
        let parents = attach_route(&route, &listeners, &references);
        let host = only_host(&route.hostnames, &parents, &listeners.all);
        let carried = Carried::by(route.traffic, &parents, &listeners.all, host.as_ref());
        let in_effect = policies.for_route(carried);
        let rules = route
            .rules
            .iter()
            .map(|rule| references.resolve_rule(&route, rule, in_effect, &mut backends, &mut problems))
            .collect();
        routes.push(RouteInput::new(route, rules, parents));
    }

    let refused = refuse_gateway(&snapshot.gateway);
    let mut data_planes: BTreeMap<DataPlaneKey, DataPlane> = BTreeMap::new();
    let mut refusals = Refusals::default();
    for (number, plane) in planes.into_iter().enumerate() {
        let Lowered { data_plane, refused_rules, refused_zones, served_zones } =
            lower_plane(&plane, &routes, &backends, options);
        let served = plane.zones.iter().flat_map(|zone| &zone.listeners).copied();
        refusals.add_rules(number, served, refused_rules);
        refusals.add_zones(&listeners.all, &refused_zones, served_zones);
        // A Gateway that is not accepted serves nothing, and its data planes must come to hold nothing.
        data_planes.insert(plane.key, if refused.is_some() { DataPlane::default() } else { data_plane });
    }

    let mut stream_planes: BTreeMap<DataPlaneKey, StreamPlane> = BTreeMap::new();
    if options.stream {
        let streams = lower_streams(&gateway.name, &listeners.all, &routes, &backends, options);
        let LoweredStreams { key, plane, listeners, refused_rules, problems: lost } = streams;
        refusals.add_rules(data_planes.len(), listeners, refused_rules);
        problems.extend(lost);
        stream_planes.insert(key, if refused.is_some() { StreamPlane::default() } else { plane });
    }

    let mut route_verdicts = BTreeMap::new();
    for (index, route) in routes.iter().enumerate() {
        route_verdicts.insert(route.route.key.clone(), judge_route(index, route, &refusals, &mut problems));
    }
    let policy_verdicts = judge_policies(&policies, &gateway, &routes, &references, &mut problems);
    let attached = attached_routes(&routes, &route_verdicts, &refusals, listeners.all.len());
    let judged = Judged {
        listeners: &listeners,
        attached: &attached,
        layout: options.layout,
        refused: refused.as_ref(),
    };
    let listener_sets = judge_listener_sets(&judged);
    let gateway = judge_gateway(&snapshot.gateway, &judged, &listener_sets, &references, &mut problems);
    problems.sort();
    problems.dedup();
    let verdicts = Verdicts {
        gateway: Some(gateway),
        listener_sets,
        routes: route_verdicts,
        policies: policy_verdicts,
        ingresses: BTreeSet::new(),
        problems,
    };
    Translation { data_planes, stream_planes, verdicts }
}

/// The routes of every kind.
fn normalised(snapshot: &Snapshot) -> impl Iterator<Item = Route> {
    let http = snapshot.http_routes.values().map(|route| normalise_http_route(route));
    let grpc = snapshot.grpc_routes.values().map(|route| normalise_grpc_route(route));
    let tls = snapshot.tls_routes.values().map(|route| normalise_tls_route(route));
    let tcp = snapshot.tcp_routes.values().map(|route| normalise_tcp_route(route));
    let udp = snapshot.udp_routes.values().map(|route| normalise_udp_route(route));
    http.chain(grpc).chain(tls).chain(tcp).chain(udp)
}
