//! PingSIX's answer to a request, in the terms of the oracle.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use pingsix_translate::pingsix::plugin::TrafficSplit;
use pingsix_translate::pingsix::router::{UpstreamRef, conditions_hold};
use pingsix_translate::pingsix::{
    DocumentKey, Outcome, PassHost, Plugins, Request, ResourceKind, Router, Scheme, Upstream,
};
use pingsix_translate::responder::parse_status_host;
use pingsix_translate::{DataPlane, Decision, Provenance};

use crate::effect::{Effect, collect, permission, resolve};
use crate::evaluate;
use crate::oracle::{Answer, BackendProtocol, Decided, Target, World};

/// Where the data planes of all cases reach the responder.
pub(crate) const RESPONDER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9080);

/// Asks the router model, and finds the way back from its outcome to rules and Services.
///
/// # Errors
///
/// The answer has no meaning for the oracle: the configuration or its provenance has a defect.
pub(crate) fn answer(
    world: &World,
    plane: &DataPlane,
    router: &Router<'_>,
    request: &Request,
) -> Result<Decided, String> {
    match router.outcome(request) {
        Outcome::NotFound => Ok(Decided::without_backend(None, Answer::status(404))),
        Outcome::Static { route, status, .. } => {
            // Guards of several rules may answer other spellings of their paths.
            let rule = rule_of(plane, route, request)?.filter(|_| status != 400);
            Ok(Decided::without_backend(rule, Answer::status(status)))
        }
        Outcome::Forward { route, candidates } => {
            let plugins = &plugins_of(plane, route)?;
            let mut shares: BTreeMap<Target, u64> = BTreeMap::new();
            let mut effect: Option<Effect> = None;
            for candidate in candidates {
                let (target, upstream) = target_of(world, plane, plugins, request, &candidate.upstream)?;
                if matches!(target, Target::Service { .. }) {
                    let own = evaluate::effect(plugins, upstream, request)?;
                    sends_alike(router, (route, upstream, request), plugins, &own)?;
                    if let Some(other) = effect.replace(own.clone()).filter(|other| *other != own) {
                        return Err(format!(
                            "{route} does {other:?} for one backend and {own:?} for another"
                        ));
                    }
                }
                *shares.entry(target).or_default() += u64::from(candidate.weight);
            }
            if shares.is_empty() {
                return Err(format!("{route} forwards to nothing"));
            }
            let answer = Answer::new(shares);
            let protection = evaluate::protection(plugins)?;
            let protection = answer.reaches_backend().then_some(protection);
            Ok(Decided { rule: rule_of(plane, route, request)?, answer, effect, protection })
        }
        Outcome::Preflight { route, allowed } => {
            let header = |name| request.first_header(name);
            let (origin, method) = (header("origin"), header("access-control-request-method"));
            let permission = match (allowed, origin, method) {
                (true, Some(origin), Some(method)) => {
                    let headers = evaluate::preflight(&plugins_of(plane, route)?, request)?;
                    permission(&headers, origin, method, header("access-control-request-headers"))
                }
                _ => None,
            };
            // Which rule of a list it was for, nobody can say.
            let answer = Answer::new([(Target::Preflight(permission), 1)].into());
            Ok(Decided::without_backend(None, answer))
        }
        Outcome::Redirect { route, status, location } => {
            let answer = Answer::new([(redirect(status, Some(&location), request), 1)].into());
            Ok(Decided::without_backend(rule_of(plane, route, request)?, answer))
        }
    }
}

/// Compares the model of PingSIX's requests to backends with the evaluation of plugins.
fn sends_alike(
    router: &Router<'_>,
    (route, upstream, request): (&DocumentKey, &Upstream, &Request),
    plugins: &Plugins,
    effect: &Effect,
) -> Result<(), String> {
    let sent = router.sent(route, upstream, request).ok_or_else(|| format!("there is no {route}"))?;
    let bare = |host: &Option<String>| {
        host.as_deref().map(|host| host.split(':').next().unwrap_or_default().to_ascii_lowercase())
    };
    let hides = ["basic-auth", "jwt-auth", "key-auth"].into_iter().any(|plugin| plugins.contains(plugin));
    let is_alike = sent.target.trim_end_matches('?') == effect.target.trim_end_matches('?')
        && bare(&sent.host) == bare(&effect.host)
        && (hides || collect(&sent.headers) == effect.request);
    if is_alike { Ok(()) } else { Err(format!("{route} sends {sent:?}, and the plugins {effect:?}")) }
}

/// Where a client goes that is told a `Location`, if the host it named is one that a URL can have, or plays no part.
pub(crate) fn redirect(status: u16, location: Option<&str>, request: &Request) -> Target {
    let host = request.host.as_deref().unwrap_or_default();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let name = host.split(':').next().unwrap_or_default();
    let is_usable = !name.is_empty() && name.chars().all(is_letter);
    let location = location.filter(|location| is_usable || !location.starts_with('/'));
    Target::Redirect { status, location: location.map(|location| resolve(location, request.tls, host)) }
}

/// The plugins of a Route, and those of its service that the Route does not replace.
pub(crate) fn plugins_of(plane: &DataPlane, route: &DocumentKey) -> Result<Plugins, String> {
    if plane.config.global_rules().next().is_some() {
        return Err("there are global rules".to_owned());
    }
    let route = plane.config.route(&route.id).ok_or_else(|| format!("there is no {route}"))?;
    let service = match &route.service_id {
        None => None,
        Some(id) => Some(plane.config.service(id).ok_or_else(|| format!("there is no service {id}"))?),
    };
    let of_service = service.iter().flat_map(|service| service.plugins.iter());
    let all = of_service.chain(route.plugins.iter());
    Ok(all.map(|(name, config)| (name.to_owned(), config.clone())).collect())
}

/// The Service, status or redirect that an upstream stands for, with nodes that are the Service's.
pub(crate) fn target_of<'u>(
    world: &World,
    plane: &'u DataPlane,
    plugins: &Plugins,
    request: &Request,
    upstream: &'u UpstreamRef,
) -> Result<(Target, &'u Upstream), String> {
    match upstream {
        UpstreamRef::Inline(upstream) => Ok((target_by_nodes(world, upstream)?, upstream)),
        UpstreamRef::Named(id) => {
            let key = DocumentKey::new(ResourceKind::Upstream, id.clone());
            let upstream = plane.config.upstream(id).ok_or_else(|| format!("there is no upstream {id}"))?;
            match plane.provenance.get(&key) {
                Some(Provenance::Backend { service, port }) => {
                    let target = Target::Service {
                        namespace: service.name.namespace.to_string(),
                        name: service.name.name.to_string(),
                        port: u16::try_from(*port).unwrap(),
                        protocol: protocol_of(upstream)?,
                        way: evaluate::way(upstream),
                    };
                    let by_nodes = target_by_nodes(world, upstream)?;
                    if by_nodes == target {
                        return Ok((target, upstream));
                    }
                    Err(format!("{key} is said to be {target:?}, and its nodes are those of {by_nodes:?}"))
                }
                Some(Provenance::Status { status: Some(status) }) => {
                    let host = upstream.upstream_host.as_deref().unwrap_or_default();
                    let asks_for = parse_status_host(host).map(|status| status.as_u16());
                    if asks_for == Some(*status) && upstream.nodes.keys().eq([&RESPONDER.to_string()]) {
                        return Ok((Target::Status(*status), upstream));
                    }
                    Err(format!("{key} is said to answer {status}, and asks for {asks_for:?}"))
                }
                Some(Provenance::Redirect) => {
                    if upstream.pass_host != PassHost::Pass
                        || upstream.scheme != Scheme::Http
                        || !upstream.nodes.keys().eq([&RESPONDER.to_string()])
                    {
                        return Err(format!("{key} does not lead to the responder"));
                    }
                    let (status, location) = evaluate::instructed(plugins, request)?;
                    Ok((redirect(status, location.as_deref(), request), upstream))
                }
                other => Err(format!("{key} is a target and has provenance {other:?}")),
            }
        }
    }
}

/// The protocol of an upstream.
fn protocol_of(upstream: &Upstream) -> Result<BackendProtocol, String> {
    match upstream.scheme {
        Scheme::Http => Ok(BackendProtocol::Http1),
        Scheme::Grpc => Ok(BackendProtocol::H2c),
        other @ (Scheme::Https | Scheme::Grpcs) => {
            Err(format!("an upstream is spoken to in an unusual way: {other:?}"))
        }
    }
}

/// The Service port that exactly these nodes belong to: no two have a node in common.
fn target_by_nodes(world: &World, upstream: &Upstream) -> Result<Target, String> {
    let mut weights = upstream.nodes.values();
    let first = weights.next();
    if !weights.all(|weight| Some(weight) == first) {
        return Err(format!("endpoints have different weights: {:?}", upstream.nodes));
    }
    for ((namespace, name), service) in &world.services {
        for port in &service.spec.ports {
            if world.nodes(namespace, name, port.port).iter().eq(upstream.nodes.keys()) {
                return Ok(Target::Service {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    port: port.port,
                    protocol: protocol_of(upstream)?,
                    way: evaluate::way(upstream),
                });
            }
        }
    }
    Err(format!("no Service has exactly the nodes {:?}", upstream.nodes))
}

/// The rule that decided, from the provenance of the route that served.
fn rule_of(
    plane: &DataPlane,
    route: &DocumentKey,
    request: &Request,
) -> Result<Option<(String, usize)>, String> {
    let decision = match plane.provenance.get(route) {
        Some(Provenance::Guard { .. }) => return Ok(None),
        Some(Provenance::Rules { decisions, .. }) => decision_of(plane, route, decisions, request)?,
        other => return Err(format!("{route} has provenance {other:?}")),
    };
    Ok(decision.origin.as_ref().map(|origin| {
        (origin.object.name.to_string(), origin.section.rule().expect("a route's origin names its rule"))
    }))
}

fn decision_of<'d>(
    plane: &DataPlane,
    route: &DocumentKey,
    decisions: &'d [Decision],
    request: &Request,
) -> Result<&'d Decision, String> {
    let document = plane.config.route(&route.id).ok_or_else(|| format!("there is no {route}"))?;
    let split = document.plugins.get::<TrafficSplit>().map(Result::unwrap);
    let rules = split.map(|split| split.rules).unwrap_or_default();
    let taken = rules.iter().position(|rule| conditions_hold(&rule.vars, request));
    let stated: usize = decisions.iter().map(|decision| decision.split_rules).sum();
    if stated != rules.len() {
        return Err(format!("{route} has {} split rules, and its decisions state {stated}", rules.len()));
    }
    let Some(mut taken) = taken else {
        let own = decisions.iter().find(|decision| decision.split_rules == 0);
        return own.ok_or_else(|| format!("no decision of {route} is its own answer"));
    };
    for decision in decisions {
        if taken < decision.split_rules {
            return Ok(decision);
        }
        taken -= decision.split_rules;
    }
    unreachable!("the rules of the decisions were counted")
}
