//! Settings of connections: in the original those of an Ingress, in Gateway API those of its Services.

use std::collections::BTreeMap;

use pingsix_translate::annotations::BackendProtocol;
use pingsix_translate::crd::BackendTrafficPolicySpec;
use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::json;

use super::annotated::{Annotated, Target};
use super::canary::Canaries;
use super::dialect::Dialect;
use crate::convert::output::Output;
use crate::convert::{Context, Draft, settings};
use crate::report::{Place, Reason, Report};
use crate::source::{ServicePort, Sources};

/// The way in which an Ingress speaks to a port of a Service.
#[derive(Clone, PartialEq, Eq)]
struct Protocol {
    is_grpc: bool,
    /// The name that the certificate is verified for.
    verified: Option<String>,
}

/// Writes the policies of all Services. The settings of the oldest Ingress of a Service count.
pub(super) fn convert(ingresses: &mut [Annotated], draft: &mut Draft<'_>) {
    let context = draft.context;
    for ingress in ingresses.iter().filter(|ingress| ingress.is_closed) {
        let names = std::iter::once(&ingress.dialect.protocol).chain(ingress.dialect.settings);
        for (at, _) in places(ingress, names) {
            let message = "All paths of the Ingress answer 503, so no backend is reached.";
            draft.report.limited(&at, Reason::NoEffect, message);
        }
    }
    let canaries = Canaries::of(ingresses);
    let targets: Vec<Vec<Target>> = ingresses.iter().map(|ingress| targets(&canaries, ingress)).collect();
    traffic(ingresses, &targets, draft);
    let mut ports: BTreeMap<(ObjectName, u16), (Protocol, ObjectKey)> = BTreeMap::new();
    for (ingress, targets) in ingresses.iter_mut().zip(&targets).filter(|(one, _)| serves(one)) {
        let is_readable = protocols((ingress, targets), &mut ports, context, draft.report);
        if !is_readable && !ingress.may_be_weaker {
            ingress.is_closed = true;
            let message = "All paths answer 503, because requests would reach the backends in another way.";
            draft.report.withhold(&ingress.place, message);
        }
    }
    for ((service, port), (protocol, _)) in ports {
        write_protocol(&service, port, &protocol, context, draft.output);
    }
}

/// Whether the settings of an Ingress count. A canary has the settings of the Ingress whose requests it takes.
fn serves(ingress: &Annotated) -> bool {
    !ingress.is_closed && !ingress.is_bypassed && ingress.read.canary.is_none()
}

/// The backends of an Ingress and of its canaries.
fn targets(canaries: &Canaries<'_>, ingress: &Annotated) -> Vec<Target> {
    let canaries = ingress.paths().filter_map(|(entry, path)| canaries.find(ingress, entry, path));
    ingress.targets().cloned().chain(canaries.map(|canary| canary.target.clone())).collect()
}

/// The places of the settings that an Ingress has and that are honoured, with the difference of each.
fn places<'a>(
    ingress: &'a Annotated,
    names: impl IntoIterator<Item = &'a &'static str>,
) -> Vec<(Place, Option<&'a str>)> {
    let of = |name: &&'static str| {
        let whole = ingress.dialect.whole_name(name);
        let mut problems = ingress.read.problems().iter();
        let problem = problems.find(|problem| problem.annotation.as_ref() == Some(&whole));
        let is_honoured =
            ingress.annotations.contains_key(&whole) && problem.is_none_or(|problem| problem.is_honoured);
        is_honoured.then(|| (ingress.at(&whole), problem.map(|problem| problem.message.as_str())))
    };
    names.into_iter().filter_map(of).collect()
}

/// The most Ingresses that a message lists for a Service.
const MAX_LISTED_INGRESSES: usize = 4;

/// BackendTrafficPolicies.
fn traffic(ingresses: &[Annotated], targets: &[Vec<Target>], draft: &mut Draft<'_>) {
    let default = BackendTrafficPolicySpec::default();
    let mut written: BTreeMap<ObjectName, &Annotated> = BTreeMap::new();
    let mut without: BTreeMap<ObjectName, Vec<&ObjectKey>> = BTreeMap::new();
    let all = || ingresses.iter().zip(targets).filter(|(ingress, _)| serves(ingress));
    for (ingress, targets) in all().filter(|(ingress, _)| ingress.read.backend_traffic == default) {
        for service in services(ingress, targets) {
            without.entry(service).or_default().push(&ingress.key);
        }
    }
    for (ingress, targets) in all() {
        let spec = &ingress.read.backend_traffic;
        let settings = places(ingress, ingress.dialect.settings);
        if *spec == default {
            for (at, _) in settings {
                draft.report.exact(&at, "The value is that of PingSIX.");
            }
            continue;
        }
        let mut differences = Vec::new();
        for service in services(ingress, targets) {
            if let Some(older) = written.get(&service) {
                if older.read.backend_traffic != *spec {
                    let other = &older.key;
                    differences
                        .push(format!("{other} has other settings for Service {service}, which count"));
                }
                continue;
            }
            let affected = without.get(&service).into_iter().flatten().take(MAX_LISTED_INGRESSES);
            differences.extend(affected.map(|other| format!("{other} has the Service {service}, too")));
            let Ok(mut value) = serde_json::to_value(spec) else { continue };
            value["targetRefs"] = settings::targets(&service, None);
            draft.output.objects.add(Kind::BackendTrafficPolicy, &service.namespace, &service.name, value);
            written.insert(service, ingress);
        }
        for (at, difference) in settings {
            let mut message = "The annotation becomes a BackendTrafficPolicy of the Services".to_owned();
            if !differences.is_empty() {
                message.push_str(": ");
                message.push_str(&differences.join(", and "));
            }
            match difference {
                None if differences.is_empty() => draft.report.exact(&at, format!("{message}.")),
                None => draft.report.limited(&at, Reason::DifferentScope, format!("{message}.")),
                Some(difference) => {
                    draft.report.limited(&at, Reason::DifferentScope, format!("{message}. {difference}"));
                }
            }
        }
    }
}

fn services(ingress: &Annotated, targets: &[Target]) -> impl Iterator<Item = ObjectName> {
    let namespace = ingress.service_namespace.as_str();
    let names = targets.iter().map(|target| ObjectName::new(namespace, target.service.as_str()));
    names.collect::<std::collections::BTreeSet<_>>().into_iter()
}

/// The number of the port of a backend. ingress-nginx takes the first port of the Service with this number, name or target port
/// (`serviceEndpoints` of `internal/ingress/controller/controller.go`).
pub(super) fn number(ingress: &Annotated, target: &Target, sources: &Sources) -> Result<u16, String> {
    let service = ObjectName::new(ingress.service_namespace.as_str(), target.service.as_str());
    let port = if ingress.is_of_nginx() {
        sources.service_or_target_port(&service, &target.port)
    } else {
        sources.service_port(&service, &target.port)
    };
    match (target.port.parse::<u16>(), port) {
        (_, ServicePort::Known { number, .. }) => Ok(number),
        (Ok(number), ServicePort::NoService) if number > 0 => Ok(number),
        (_, ServicePort::NoService) => Err(format!(
            "The input has no Service {service}, so the number of the port is unknown. Give the Service, too."
        )),
        (_, ServicePort::NoPort) => Err(format!("Service {service} has no such port.")),
    }
}

/// Notes the protocols of the backends of an Ingress. Returns whether all of them can be reached.
fn protocols(
    (ingress, targets): (&Annotated, &[Target]),
    ports: &mut BTreeMap<(ObjectName, u16), (Protocol, ObjectKey)>,
    context: &Context<'_>,
    report: &mut Report,
) -> bool {
    let (is_grpc, is_tls) = match ingress.read.backend_protocol {
        BackendProtocol::OfService => {
            for (at, _) in places(ingress, [&ingress.dialect.protocol]) {
                report.exact(&at, "This is the default.");
            }
            return true;
        }
        BackendProtocol::Grpc => (true, false),
        BackendProtocol::Https => (false, true),
        BackendProtocol::Grpcs => (true, true),
    };
    let at = ingress.at_own(ingress.dialect.protocol);
    let hosts: Vec<&String> = ingress.entries.iter().map(|entry| &entry.host).collect();
    let verified = match (&ingress.read.host, hosts.as_slice()) {
        (Some(host), _) => Some(host.to_string()),
        (None, [host]) if !host.is_empty() && !host.starts_with('*') && ingress.default_backend.is_none() => {
            Some((*host).clone())
        }
        (None, _) => None,
    };
    if is_tls && verified.is_none() {
        let message = "PingSIX verifies the certificate of a backend for one name, so the Ingress needs one host without a \
                       wildcard, or upstream-vhost.";
        report.blocking(&at, Reason::UnsupportedProtocol, message);
        return false;
    }
    let protocol = Protocol { is_grpc, verified: verified.filter(|_| is_tls) };
    for target in targets {
        let service = ObjectName::new(ingress.service_namespace.as_str(), target.service.as_str());
        let Ok(number) = number(ingress, target, context.sources) else { continue };
        if is_grpc
            && !context.sources.kept.contains_key(&ObjectKey { kind: Kind::Service, name: service.clone() })
        {
            let message =
                format!("The protocol is appProtocol of Service {service}, which is not among the input.");
            report.blocking(&at, Reason::MissingReferent, message);
            return false;
        }
        let key = (service, number);
        match ports.get(&key) {
            Some((other, by)) if *other != protocol => {
                let message = format!("{by} reaches the same port of a Service in another way.");
                report.blocking(&at, Reason::Conflict, message);
                return false;
            }
            Some(_) => {}
            None => {
                ports.insert(key, (protocol.clone(), ingress.key.clone()));
            }
        }
    }
    let mut sentences = Vec::new();
    if let Some(name) = &protocol.verified {
        sentences.push(verification(ingress, name));
    }
    if is_grpc {
        sentences.push(
            "The port of the Service gets appProtocol kubernetes.io/h2c, which other programs may read."
                .to_owned(),
        );
    }
    let reason =
        if protocol.verified.is_some() { Reason::VerifiedCertificate } else { Reason::DifferentConnection };
    report.limited(&at, reason, sentences.join(" "));
    true
}

/// The difference between verified certificates of backends and those of the original, which mostly verifies none.
fn verification(ingress: &Annotated, name: &str) -> String {
    let Dialect { verification, verifies, .. } = ingress.dialect;
    let policy =
        format!("A BackendTLSPolicy verifies the certificate for {name}, with the authorities of PingSIX.");
    if verifies.is_some_and(|verifies| ingress.own(verifies) == Some("on")) {
        return policy;
    }
    format!(
        "Backends with a self-signed certificate will fail: {verification} {policy} Add the authority of the backends to the file \
         pingora.ca_file of PingSIX, or let them serve plaintext and leave the annotation out."
    )
}

fn write_protocol(
    service: &ObjectName,
    number: u16,
    protocol: &Protocol,
    context: &Context<'_>,
    output: &mut Output,
) {
    if protocol.is_grpc {
        settings::speak_h2c(service, |port| port.get("port") == Some(&json!(number)), &mut output.objects);
    }
    if let Some(hostname) = &protocol.verified {
        let section = match context.sources.service_port(service, &number.to_string()) {
            ServicePort::Known { name, .. } if !name.is_empty() => Some(name),
            ServicePort::Known { .. } | ServicePort::NoPort | ServicePort::NoService => None,
        };
        let targets = settings::targets(service, section.as_deref());
        settings::verify(hostname, &targets, (&service.namespace, &service.name), &mut output.objects);
    }
}
