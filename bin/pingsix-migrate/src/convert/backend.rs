//! Backends of a rule of an ApisixRoute.

use pingsix_translate::{ObjectName, is_dns_subdomain};
use serde_json::{Value, json};

use super::Context;
use super::upstream::Upstream;
use crate::plugin::Effects;
use crate::report::{Place, Reason, Report};
use crate::source::{Field, Fields, ServicePort};

/// The most backends of a rule of an HTTPRoute.
const MAX_BACKENDS_PER_RULE: usize = 16;

/// The greatest weight of a backend.
const MAX_WEIGHT: u64 = 1_000_000;

/// A backend with the host that its requests get.
struct Backend {
    place: Place,
    value: Value,
    host: Option<String>,
}

/// Reads `backends` and `upstreams` as items of `backendRefs`. A common host becomes an effect of the rule.
pub(super) fn of_rule(
    fields: &mut Fields,
    route: &ObjectName,
    effects: &mut Effects,
    context: &Context<'_>,
    report: &mut Report,
) -> Vec<Value> {
    let services = fields.list("backends", report);
    let upstreams = fields.list("upstreams", report);
    let is_single = services.len() + upstreams.len() == 1;
    let mut backends: Vec<Backend> = Vec::new();
    for item in services {
        backends.extend(service(item, route, is_single, context, report));
    }
    for item in upstreams {
        backends.extend(upstream(item, route, is_single, context, report));
    }
    if backends.len() > MAX_BACKENDS_PER_RULE {
        let place = fields.place.at("backends");
        let message = format!("A rule has at most {MAX_BACKENDS_PER_RULE} backends.");
        report.blocking(&place, Reason::TooMany, message);
        return Vec::new();
    }
    let hosts: Vec<&Option<String>> = backends.iter().map(|backend| &backend.host).collect();
    if let (Some(Some(host)), None) = (hosts.first(), &effects.hostname)
        && hosts.iter().all(|other| other.as_ref() == Some(host))
    {
        effects.hostname = Some(host.clone());
    }
    if effects.hostname.is_none()
        && let Some(backend) = backends.iter().find(|backend| backend.host.is_some())
    {
        let message = "The upstreams of the rule have different hosts, and a rule has one.";
        report.blocking(&backend.place, Reason::LostReferent, message);
    }
    backends.into_iter().map(|backend| backend.value).collect()
}

fn weight(fields: &mut Fields, is_single: bool, report: &mut Report) -> Option<u64> {
    match fields.number("weight", report) {
        Some((place, weight)) if weight <= MAX_WEIGHT => {
            report.exact(&place, "The weight stays.");
            (!is_single).then_some(weight)
        }
        Some((place, _)) => {
            report.blocking(&place, Reason::TooMany, format!("A weight is at most {MAX_WEIGHT}."));
            None
        }
        None => (!is_single).then_some(100),
    }
}

fn reference(service: &str, port: u16, weight: Option<u64>) -> Value {
    let mut value = json!({ "name": service, "port": port });
    if let Some(weight) = weight {
        value["weight"] = json!(weight);
    }
    value
}

fn service(
    item: Field,
    route: &ObjectName,
    is_single: bool,
    context: &Context<'_>,
    report: &mut Report,
) -> Option<Backend> {
    let mut fields = item.object(report)?;
    let place = fields.place.clone();
    let name = fields.text("serviceName", report);
    let port = fields.text_or_number("servicePort", report);
    let weight = weight(&mut fields, is_single, report);
    if let Some((place, granularity)) = fields.text("resolveGranularity", report) {
        match granularity.as_str() {
            "endpoint" | "endpoints" => report.exact(&place, "Requests go to the endpoints."),
            "service" => {
                let message = "Requests go to the endpoints, not to the address of the Service.";
                report.limited(&place, Reason::DifferentConnection, message);
            }
            _ => report.blocking(&place, Reason::InvalidValue, "The value is unknown."),
        }
    }
    if let Some((place, subset)) = fields.text("subset", report)
        && !subset.is_empty()
    {
        let message = "A backend has all endpoints of a Service. Make a Service for the subset.";
        report.blocking(&place, Reason::UnsupportedBackend, message);
    }
    fields.finish(report);
    let (Some((name_place, name)), Some((port_place, port))) = (name, port) else {
        report.blocking(&place, Reason::MissingField, "The backend lacks serviceName or servicePort.");
        return None;
    };
    if !is_dns_subdomain(&name) {
        report.blocking(&name_place, Reason::InvalidValue, "The value is not the name of a Service.");
        return None;
    }
    let service = ObjectName::new(&*route.namespace, &name);
    let number = match (port.parse::<u16>(), context.sources.service_port(&service, &port)) {
        (_, ServicePort::Known { number, .. }) => number,
        (Ok(number), _) if number > 0 => number,
        (_, ServicePort::NoService) => {
            let message = format!(
                "The input has no Service {service}, so the number of the port is unknown. Give the Service, too."
            );
            report.blocking(&port_place, Reason::LostReferent, message);
            return None;
        }
        (_, ServicePort::NoPort) => {
            let message = format!("Service {service} has no such port.");
            report.blocking(&port_place, Reason::InvalidValue, message);
            return None;
        }
    };
    report.exact(&place, format!("The backend becomes Service {service} port {number}."));
    let mut host = None;
    if let Some(upstream) = context.upstreams.get(&service) {
        host.clone_from(&upstream.host);
        if upstream.is_lost {
            let message = format!("ApisixUpstream {service} has parts that cannot be converted.");
            report.blocking(&place, Reason::LostReferent, message);
        }
    }
    Some(Backend { place, value: reference(&name, number, weight), host })
}

fn upstream(
    item: Field,
    route: &ObjectName,
    is_single: bool,
    context: &Context<'_>,
    report: &mut Report,
) -> Option<Backend> {
    let mut fields = item.object(report)?;
    let place = fields.place.clone();
    let name = fields.text("name", report);
    let weight = weight(&mut fields, is_single, report);
    fields.finish(report);
    let Some((name_place, name)) = name else {
        report.blocking(&place, Reason::MissingField, "The item has no name.");
        return None;
    };
    let name = ObjectName::new(&*route.namespace, name);
    let Some(Upstream { external, host, is_lost }) = context.upstreams.get(&name).cloned() else {
        let message = format!("The input has no ApisixUpstream {name}. Give it, too.");
        report.blocking(&name_place, Reason::MissingReferent, message);
        return None;
    };
    let Some((service, port)) = external.filter(|_| !is_lost) else {
        let message = format!("ApisixUpstream {name} has no nodes that can be converted.");
        report.blocking(&name_place, Reason::LostReferent, message);
        return None;
    };
    report.exact(&name_place, format!("The upstream becomes Service {}/{service}.", name.namespace));
    Some(Backend { place, value: reference(&service, port, weight), host })
}
