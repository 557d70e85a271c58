//! `stream` of an ApisixRoute, and L4RoutePolicy: connections instead of requests.

use pingsix_translate::{Kind, ObjectKey, ObjectName, is_dns_subdomain};
use serde_json::{Value, json};

use super::Draft;
use crate::objects::label;
use crate::report::Reason;
use crate::source::{Field, Predecessors, ServicePort, Source, SourceKind};

/// Converts the stream rules of an ApisixRoute.
pub(super) fn convert(items: Vec<Field>, route: &ObjectName, draft: &mut Draft<'_>) {
    for item in items {
        let place = item.place.clone();
        let before = draft.report.losses();
        let written = one(item, route, draft);
        if draft.report.losses() > before {
            draft.report.withhold(&place, "The rule is not written.");
        } else if let Some((kind, name, spec)) = written {
            let name = draft.output.objects.add(kind, &route.namespace, &name, spec);
            draft.output.gateway.note_route(kind, &route.namespace, &name);
            let key = ObjectKey::new(kind, route.namespace.clone(), name);
            draft.output.objects.origins.note_rules(key, vec![place]);
        }
    }
}

fn one(item: Field, route: &ObjectName, draft: &mut Draft<'_>) -> Option<(Kind, String, Value)> {
    let context = draft.context;
    let before = draft.report.losses();
    let report = &mut *draft.report;
    let mut fields = item.object(report)?;
    let place = fields.place.clone();
    let name = fields.text_or_empty("name", report);
    let protocol = fields.text("protocol", report);
    let mut port = None;
    if let Some(mut matching) = fields.object("match", report) {
        port = matching.number("ingressPort", report);
        if let Some((place, _)) = matching.filled("host", report) {
            let message = "A TCPRoute takes all connections of a port, whatever server name they have. Write a TLSRoute.";
            report.blocking(&place, Reason::UnsupportedMatch, message);
        }
        matching.finish(report);
    }
    for plugin in fields.list("plugins", report) {
        let message =
            "Connections have no plugins. Remove the plugins, or leave the connections to the original.";
        report.blocking(&plugin.place, Reason::UnsupportedPlugin, message);
    }
    let mut backend = None;
    if let Some(mut field) = fields.object("backend", report) {
        let at = field.place.clone();
        let service = field.text("serviceName", report).filter(|(_, name)| is_dns_subdomain(name));
        let service_port = field.text_or_number("servicePort", report);
        field.drop(["resolveGranularity"], report, "Connections go to the endpoints.");
        if let Some((place, _)) = field.filled("subset", report) {
            let message = "A backend has all endpoints of a Service. Make a Service for the subset.";
            report.blocking(&place, Reason::UnsupportedBackend, message);
        }
        field.finish(report);
        if let (Some((_, service)), Some((_, service_port))) = (service, service_port) {
            let known =
                context.sources.service_port(&ObjectName::new(&*route.namespace, &service), &service_port);
            let number = match known {
                ServicePort::Known { number, .. } => Some(number),
                ServicePort::NoPort | ServicePort::NoService => service_port.parse().ok(),
            };
            if let Some(number) = number {
                report.exact(&at, format!("The backend becomes Service {service} port {number}."));
                backend = Some(json!({ "name": service, "port": number }));
            } else {
                let message = "The number of the port is unknown. Give the Service, too.";
                report.blocking(&at, Reason::MissingReferent, message);
            }
        }
    }
    fields.finish(report);
    let protocol = protocol.map(|(_, protocol)| protocol.to_ascii_uppercase()).unwrap_or_default();
    let kind = match protocol.as_str() {
        "TCP" => Kind::TcpRoute,
        "UDP" => Kind::UdpRoute,
        _ => {
            report.blocking(&place.at("protocol"), Reason::InvalidValue, "The protocol is TCP or UDP.");
            return None;
        }
    };
    let port = port.and_then(|(_, port)| u16::try_from(port).ok()).filter(|port| *port > 0);
    let (Some(port), Some(backend)) = (port, backend) else {
        report.blocking(&place, Reason::MissingField, "The rule lacks a port or a backend.");
        return None;
    };
    if report.losses() > before {
        return None;
    }
    let listener = draft.output.gateway.listen(&place, &protocol, port);
    let message = format!(
        "The rule becomes a {kind} on the listener {listener}, for a program beside PingSIX (--stream)."
    );
    draft.report.limited(&place, Reason::ManualStep, message);
    let mut parent = draft.output.gateway.reference(&route.namespace, super::parent::Section::All);
    parent["sectionName"] = json!(listener);
    let spec = json!({ "parentRefs": [parent], "rules": [{ "backendRefs": [backend] }] });
    Some((kind, format!("{}-{}", route.name, label(&name, "stream")), spec))
}

/// Withholds the targets of L4RoutePolicies.
pub(super) fn refuse_policies(predecessors: &mut Predecessors, draft: &mut Draft<'_>) {
    let context = draft.context;
    for source in predecessors.take(SourceKind::L4RoutePolicy) {
        let Source { kind, name, place, mut spec } = source;
        let is_allowed = context.choices.may_be_weaker(kind.as_str(), &name);
        let plugins = spec.list("plugins", draft.report);
        for plugin in &plugins {
            let message =
                "Connections have no plugins. Remove the plugins, or leave the connections to the original.";
            draft.report.blocking(&plugin.place, Reason::UnsupportedPlugin, message);
        }
        for target in spec.list("targetRefs", draft.report) {
            let text = |field: &str| target.value.get(field).and_then(Value::as_str).unwrap_or_default();
            let kind = [Kind::TcpRoute, Kind::UdpRoute, Kind::TlsRoute]
                .into_iter()
                .find(|kind| kind.as_str() == text("kind"));
            let Some(kind) = kind else {
                let message = "The target is not a route for connections.";
                draft.report.impossible(&target.place, Reason::UnsuitableReferent, message);
                continue;
            };
            let key = ObjectKey::new(kind, &*name.namespace, text("name"));
            if plugins.is_empty() || is_allowed {
                draft.report.impossible(&target.place, Reason::LostReferent, "The policy is not written.");
            } else {
                let message = format!("{key} has a policy that cannot be converted.");
                draft.report.impossible(&target.place, Reason::LostReferent, message);
                draft.report.withhold(&place, format!("{key} is not written."));
                draft.output.objects.remove(&key);
            }
        }
        spec.finish(draft.report);
    }
}
