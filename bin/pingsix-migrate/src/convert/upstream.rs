//! ApisixUpstream, and BackendTrafficPolicy of the Go controller: settings of Services, and nodes outside of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::{Value, json};

use super::Conversion;
use super::settings::Settings;
use crate::output::label;
use crate::report::{Place, Reason, Report};
use crate::source::{Field, ServicePort, Source, SourceKind, Sources};

/// The most nodes of an EndpointSlice.
const NODES: usize = 1_000;

/// The parts of an ApisixUpstream on which rules depend.
#[derive(Clone, Debug, Default)]
pub(super) struct Upstream {
    /// The Service for its nodes outside of the cluster, with the port.
    pub(super) external: Option<(String, u16)>,
    /// The host of requests.
    pub(super) host: Option<String>,
    /// Whether requests would go elsewhere, or in another way, than in the original.
    pub(super) is_lost: bool,
}

/// ApisixUpstreams by name, and settings of Services for rules that are written otherwise.
#[derive(Debug, Default)]
pub(super) struct Upstreams(BTreeMap<ObjectName, Upstream>);

impl Upstreams {
    pub(super) fn get(&self, name: &ObjectName) -> Option<&Upstream> {
        self.0.get(name)
    }
}

/// Converts all ApisixUpstreams.
pub(super) fn convert(sources: &mut Sources, conversion: &mut Conversion) {
    for source in sources.take(SourceKind::ApisixUpstream) {
        let Source { kind, name, place, mut spec } = source;
        let is_allowed = conversion.may_be_weaker(kind, &name);
        let before = conversion.report.losses();
        let _ = conversion.class(&mut spec);
        let nodes = spec.list("externalNodes", &mut conversion.report);
        let ports = spec.list("portLevelSettings", &mut conversion.report);
        let has_nodes = !nodes.is_empty();
        let scheme = spec.clone().text("scheme", &mut Report::default()).map(|(_, scheme)| scheme);
        let external = if has_nodes { external(nodes, &name, scheme.as_deref(), conversion) } else { None };
        let service = external.as_ref().map_or_else(|| name.name.to_string(), |(service, _)| service.clone());
        let target = ObjectName::new(&*name.namespace, service);
        let mut settings = Settings::read(&mut spec, &target, None, conversion);
        spec.finish(&mut conversion.report);
        if !has_nodes || external.is_some() {
            settings.write(&target, None, conversion);
        }
        for item in ports {
            port_settings(item, &target, sources, conversion);
        }
        let is_lost = conversion.report.losses() > before && !is_allowed;
        if is_lost {
            let message = "Rules with the upstream are not written.";
            if has_nodes && external.is_none() {
                // There is nothing that rules could refer to.
                conversion.withhold(&place, message);
            } else {
                conversion.withhold_until_named(&place, message);
            }
        }
        conversion.upstreams.0.insert(name, Upstream { external, host: settings.host.take(), is_lost });
    }
}

fn port_settings(item: Field, target: &ObjectName, sources: &Sources, conversion: &mut Conversion) {
    let Some(mut fields) = item.object(&mut conversion.report) else { return };
    let Some((place, port)) = fields.text_or_number("port", &mut conversion.report) else {
        conversion.report.blocking(&fields.place, Reason::MissingField, "The settings name no port.");
        return;
    };
    let section = match sources.service_port(target, &port) {
        ServicePort::Known { name, .. } if !name.is_empty() => name,
        ServicePort::Known { .. } | ServicePort::NoPort | ServicePort::NoService => {
            conversion.report.blocking(
                &place,
                Reason::MissingReferent,
                format!(
                    "A policy names a port by its name, which Service {target} of the input does not have."
                ),
            );
            return;
        }
    };
    conversion.report.exact(&place, format!("The settings become a policy for the port {section}."));
    let settings = Settings::read(&mut fields, target, Some(&section), conversion);
    if settings.host.is_some() {
        conversion.report.blocking(
            &fields.place,
            Reason::UnsupportedField,
            "The host of requests is one for all ports.",
        );
    }
    fields.finish(&mut conversion.report);
    settings.write(target, Some(&section), conversion);
}

/// A headless Service and its EndpointSlices for nodes with addresses.
fn external(
    nodes: Vec<Field>,
    upstream: &ObjectName,
    scheme: Option<&str>,
    conversion: &mut Conversion,
) -> Option<(String, u16)> {
    let report = &mut conversion.report;
    let mut addresses: BTreeSet<IpAddr> = BTreeSet::new();
    let mut ports = BTreeSet::new();
    let mut weights = BTreeSet::new();
    let before = report.losses();
    let place = nodes.first().map(|node| node.place.clone())?;
    if nodes.len() > NODES {
        report.blocking(&place, Reason::TooMany, format!("The upstream has more than {NODES} nodes."));
        return None;
    }
    for node in nodes {
        let Some(mut fields) = node.object(report) else { continue };
        let node_type = fields.text("type", report).map(|(_, text)| text).unwrap_or_default();
        let name = fields.text("name", report);
        let weight = fields.number("weight", report).map_or(100, |(_, weight)| weight);
        let default_port = if matches!(scheme, Some("https" | "grpcs")) { 443 } else { 80 };
        let port = fields.number("port", report).map_or(default_port, |(_, port)| port);
        fields.finish(report);
        let Some((name_place, name)) = name else { continue };
        match (node_type.as_str(), name.parse::<IpAddr>()) {
            ("Domain", Ok(address)) => {
                report.exact(&name_place, "The address becomes an endpoint of a Service without selector.");
                addresses.insert(address);
            }
            _ => report.blocking(
                &name_place,
                Reason::UnsupportedBackend,
                "A backend has addresses, and names are not looked up. Give the addresses instead.",
            ),
        }
        match u16::try_from(port) {
            Ok(port) if port > 0 => {
                ports.insert(port);
            }
            _ => report.blocking(&name_place, Reason::InvalidValue, "The port is not one."),
        }
        weights.insert(weight);
    }
    if ports.len() > 1 || weights.len() > 1 {
        report.blocking(
            &place,
            Reason::UnsupportedBackend,
            "The nodes have different ports or weights, and endpoints of one Service have equal ones.",
        );
    }
    let port = ports.into_iter().next()?;
    if report.losses() > before || addresses.is_empty() {
        return None;
    }
    let spec = json!({ "clusterIP": "None", "ports": [{ "name": "main", "port": port, "protocol": "TCP" }] });
    // The name of a Service is a label that begins with a letter.
    let mut wanted = label(&upstream.name, "upstream");
    if wanted.starts_with(|letter: char| letter.is_ascii_digit()) {
        wanted = format!("upstream-{wanted}");
    }
    let service = conversion.output.add(Kind::Service, &upstream.namespace, &wanted, ("spec", spec));
    for (family, wanted) in [("IPv4", true), ("IPv6", false)] {
        let endpoints: Vec<Value> = addresses
            .iter()
            .filter(|address| address.is_ipv4() == wanted)
            .map(|address| json!({ "addresses": [address.to_string()] }))
            .collect();
        if endpoints.is_empty() {
            continue;
        }
        let wanted = format!("{service}-{}", family.to_ascii_lowercase());
        let kind = Kind::EndpointSlice;
        let slice =
            conversion.output.add(kind, &upstream.namespace, &wanted, ("endpoints", json!(endpoints)));
        if let Some(slice) = conversion.output.get_mut(&ObjectKey::new(kind, &*upstream.namespace, slice)) {
            slice["addressType"] = json!(family);
            slice["ports"] = json!([{ "name": "main", "port": port, "protocol": "TCP" }]);
            slice["metadata"]["labels"] = json!({ "kubernetes.io/service-name": service });
        }
    }
    Some((service, port))
}

/// Converts the BackendTrafficPolicies of the Go controller.
pub(super) fn convert_policies(
    sources: &mut Sources,
    conversion: &mut Conversion,
) -> BTreeMap<ObjectName, Upstream> {
    let mut hosts: BTreeMap<ObjectName, Upstream> = BTreeMap::new();
    for source in sources.take(SourceKind::BackendTrafficPolicy) {
        let Source { kind, name, place, mut spec } = source;
        let is_allowed = conversion.may_be_weaker(kind, &name);
        let before = conversion.report.losses();
        let mut targets = Vec::new();
        for target in spec.list("targetRefs", &mut conversion.report) {
            let Some(mut fields) = target.object(&mut conversion.report) else { continue };
            let service = fields.text("name", &mut conversion.report);
            let kind = fields.text("kind", &mut conversion.report).map(|(_, kind)| kind);
            let _ = fields.text("group", &mut conversion.report);
            let section = fields.text("sectionName", &mut conversion.report).map(|(_, section)| section);
            let at: Place = fields.place.clone();
            fields.finish(&mut conversion.report);
            let Some((_, service)) = service.filter(|_| kind.is_none_or(|kind| kind == "Service")) else {
                conversion.report.impossible(
                    &at,
                    Reason::UnsuitableReferent,
                    "The policy is for Services alone.",
                );
                continue;
            };
            conversion.report.exact(&at, format!("The target stays Service {service}."));
            let target = ObjectName::new(&*name.namespace, service);
            let mut each = spec.clone();
            let mut settings = Settings::read(&mut each, &target, section.as_deref(), conversion);
            each.finish(&mut conversion.report);
            settings.write(&target, section.as_deref(), conversion);
            targets.push(target.clone());
            hosts.insert(target, Upstream { external: None, host: settings.host.take(), is_lost: false });
        }
        if targets.is_empty() {
            let message = "The policy has no target that can be read, so it becomes nothing.";
            conversion.report.impossible(&place.at("spec"), Reason::MissingField, message);
        }
        if conversion.report.losses() > before && !is_allowed {
            conversion.withhold_until_named(&place, "Rules with the Services of the policy answer 503.");
            for target in targets {
                hosts.entry(target).or_default().is_lost = true;
            }
        }
    }
    hosts
}
