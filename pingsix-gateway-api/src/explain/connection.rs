//! The handling of a connection to a stream port, which has no requests.

use std::collections::BTreeMap;

use pingsix_translate::pingsix::Request;
use pingsix_translate::status::{ListenerVerdict, Verdicts};
use pingsix_translate::stream::{
    Arrival, Destination, RejectReason, StreamConfig, StreamKey, StreamKind, StreamTarget,
};
use pingsix_translate::{DataPlaneKey, ObjectKey, StreamProvenance};

use super::candidates::{MissReason, RejectedMatch};
use super::decision::{Step, StepResult};
use super::explanation::{Answer, Backend, Explanation, Target};
use super::listener::{Listener, not_served};
use super::request_line;
use super::source::Source;

/// The stream documents of a Gateway with the verdicts of their translation.
#[derive(Clone, Copy, Debug)]
pub struct StreamPorts<'a> {
    /// The Gateway.
    pub gateway: &'a ObjectKey,
    /// The published documents and their provenance; none without a reader of stream documents.
    pub documents: Option<(&'a StreamConfig, &'a BTreeMap<StreamKey, StreamProvenance>)>,
    /// The verdicts of the translation.
    pub verdicts: &'a Verdicts,
}

/// The explanation of a request to a port whose listeners are for TCP, UDP or TLS; `None` for any other port.
///
/// PingSIX does not get such a connection. The stream documents decide by port and server name alone.
pub fn explain_connection(ports: &StreamPorts<'_>, request: &Request, port: u16) -> Option<Explanation> {
    let on_port: Vec<&ListenerVerdict> =
        ports.verdicts.listeners().filter(|listener| listener.port == i32::from(port)).collect();
    let of_requests = |listener: &&&ListenerVerdict| matches!(&*listener.protocol, "HTTP" | "HTTPS");
    let of_streams = |listener: &&&ListenerVerdict| matches!(&*listener.protocol, "TCP" | "UDP" | "TLS");
    if on_port.iter().any(|listener| of_requests(&listener))
        || !on_port.iter().any(|listener| of_streams(&listener))
    {
        return None;
    }
    let key = DataPlaneKey::Stream { gateway: ports.gateway.name.clone() };
    let explanation = Explanation::closed(
        request_line(request, Some(port)),
        ports.documents.map(|_| key.to_string()),
        on_port.iter().map(|listener| Listener::of(listener)).collect(),
        why_closed(ports, &on_port, request, port),
    );
    let Some((config, provenance)) = ports.documents else { return Some(explanation) };
    let of_tls =
        || Some(config.route_for(port, Arrival::Tls(request.routing_host()?))?).filter(|_| request.tls);
    let Some((key, route)) = config.route_for(port, Arrival::Tcp).or_else(of_tls) else {
        return Some(explanation);
    };
    let backends = route.targets.iter().map(|target| backend(config, provenance, target)).collect();
    let Some(StreamProvenance::Route { origin, shadowed, .. }) = provenance.get(key) else {
        // A document without a route is a guard.
        let why = "No route is for this server name, and listeners with a wider hostname must not take it.";
        return Some(Explanation { answer: Answer::closed(why.to_owned()), ..explanation });
    };
    let source = Source::of(origin);
    let is_its = |object: &ObjectKey| object.to_string() == source.object;
    let problems = ports.verdicts.problems.iter().filter(|problem| is_its(&problem.object));
    let problems = problems.map(ToString::to_string).collect();
    let by = "an older route, or one with a more specific hostname";
    let rejected = shadowed.iter().map(|origin| RejectedMatch {
        source: Source::of(origin),
        reason: MissReason::Outranked { by: by.to_owned() },
    });
    Some(Explanation {
        rejected: rejected.collect(),
        steps: vec![Step { source: Some(source), result: StepResult::Decides }],
        answer: Answer::Connection { backends },
        problems,
        ..explanation
    })
}

/// The reasons for which the connection is closed, in sentences.
fn why_closed(ports: &StreamPorts<'_>, on_port: &[&ListenerVerdict], request: &Request, port: u16) -> String {
    let mut protocols: Vec<&str> = on_port.iter().map(|listener| &*listener.protocol).collect();
    protocols.dedup();
    let protocols = protocols.join(" and ");
    let mut sentences = vec![format!(
        "Port {port} of {} is for {protocols}, so no request arrives there, and PingSIX has nothing to do with it.",
        ports.gateway
    )];
    let refused: Vec<String> = on_port
        .iter()
        .filter(|listener| listener.data_plane.is_none())
        .map(|listener| not_served(listener, ports.verdicts))
        .collect();
    let served = |protocol: &str| {
        on_port.iter().any(|listener| listener.data_plane.is_some() && listener.protocol == protocol)
    };
    if served("TLS") && !request.tls {
        sentences.push("A connection without TLS is closed.".to_owned());
    } else if served("TLS") {
        sentences.push("No route is for this server name, so the connection is closed.".to_owned());
    } else if served("TCP") {
        sentences.push("No route is attached, so the connection is closed.".to_owned());
    } else if served("UDP") {
        sentences.push("Nothing listens there for TCP.".to_owned());
    }
    sentences.extend(refused);
    sentences.join(" ")
}

fn backend(
    config: &StreamConfig,
    provenance: &BTreeMap<StreamKey, StreamProvenance>,
    target: &StreamTarget,
) -> Backend {
    let mut endpoints = BTreeMap::new();
    let (to, upstream) = match &target.to {
        Destination::Upstream(id) => {
            let found = config.upstream(id).map(|upstream| upstream.nodes.clone());
            endpoints = found.unwrap_or_default();
            let origin = provenance.get(&StreamKey::new(StreamKind::Upstream, id.as_str()));
            let to = if let Some(StreamProvenance::Backend { service, port }) = origin {
                Target::Service { service: service.name.to_string(), port: *port }
            } else {
                Target::Unknown {}
            };
            (to, Some(id.clone()))
        }
        Destination::Reject(why) => {
            let rejected = match why {
                RejectReason::Invalid => "invalid",
                RejectReason::NoEndpoints => "no_endpoints",
                RejectReason::NoRoute => "no_route",
            };
            (Target::Rejected { rejected }, None)
        }
    };
    Backend { weight: target.weight, target: to, upstream, endpoints, sends: None, objects: Vec::new() }
}
