//! ApisixUpstream, and BackendTrafficPolicy of the Go controller: settings of Services, and nodes outside of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::{Value, json};

use super::Draft;
use super::settings::Settings;
use crate::objects::label;
use crate::report::{Place, Reason, Report};
use crate::source::{Field, Predecessors, ServicePort, Source, SourceKind};

/// The most nodes of an EndpointSlice.
const MAX_NODES: usize = 1_000;

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
pub(super) fn convert(predecessors: &mut Predecessors, draft: &mut Draft<'_>) -> Upstreams {
    let context = draft.context;
    let mut upstreams = Upstreams::default();
    for source in predecessors.take(SourceKind::ApisixUpstream) {
        let Source { kind, name, place, mut spec } = source;
        let is_allowed = context.choices.may_be_weaker(kind.as_str(), &name);
        let before = draft.report.losses();
        let _ = context.owners.of_class(&mut spec, draft.report);
        let nodes = spec.list("externalNodes", draft.report);
        let ports = spec.list("portLevelSettings", draft.report);
        let has_nodes = !nodes.is_empty();
        let scheme = spec.clone().text("scheme", &mut Report::default()).map(|(_, scheme)| scheme);
        let external = if has_nodes { external(nodes, &name, scheme.as_deref(), draft) } else { None };
        let service = external.as_ref().map_or_else(|| name.name.to_string(), |(service, _)| service.clone());
        let target = ObjectName::new(&*name.namespace, service);
        let mut settings = Settings::read(&mut spec, &target, None, draft);
        spec.finish(draft.report);
        if !has_nodes || external.is_some() {
            settings.write(&target, None, draft.output);
        }
        for item in ports {
            port_settings(item, &target, draft);
        }
        let is_lost = draft.report.losses() > before && !is_allowed;
        if is_lost {
            let message = "Rules with the upstream are not written.";
            if has_nodes && external.is_none() {
                // Rules have no object to refer to.
                draft.report.withhold(&place, message);
            } else {
                draft.report.withhold_until_named(&place, message);
            }
        }
        upstreams.0.insert(name, Upstream { external, host: settings.host.take(), is_lost });
    }
    upstreams
}

fn port_settings(item: Field, target: &ObjectName, draft: &mut Draft<'_>) {
    let context = draft.context;
    let Some(mut fields) = item.object(draft.report) else { return };
    let Some((place, port)) = fields.text_or_number("port", draft.report) else {
        return draft.report.blocking(&fields.place, Reason::MissingField, "The settings name no port.");
    };
    let section = match context.sources.service_port(target, &port) {
        ServicePort::Known { name, .. } if !name.is_empty() => name,
        ServicePort::Known { .. } | ServicePort::NoPort | ServicePort::NoService => {
            let message = format!(
                "A policy names a port by its name, which Service {target} of the input does not have."
            );
            return draft.report.blocking(&place, Reason::MissingReferent, message);
        }
    };
    draft.report.exact(&place, format!("The settings become a policy for the port {section}."));
    let settings = Settings::read(&mut fields, target, Some(&section), draft);
    if settings.host.is_some() {
        let message = "The host of requests is one for all ports.";
        draft.report.blocking(&fields.place, Reason::UnsupportedField, message);
    }
    fields.finish(draft.report);
    settings.write(target, Some(&section), draft.output);
}

/// A headless Service and its EndpointSlices for nodes with addresses.
fn external(
    nodes: Vec<Field>,
    upstream: &ObjectName,
    scheme: Option<&str>,
    draft: &mut Draft<'_>,
) -> Option<(String, u16)> {
    let report = &mut *draft.report;
    let mut addresses: BTreeSet<IpAddr> = BTreeSet::new();
    let mut ports = BTreeSet::new();
    let mut weights = BTreeSet::new();
    let before = report.losses();
    let place = nodes.first().map(|node| node.place.clone())?;
    if nodes.len() > MAX_NODES {
        report.blocking(&place, Reason::TooMany, format!("The upstream has more than {MAX_NODES} nodes."));
        return None;
    }
    for node in nodes {
        let Some(mut fields) = node.object(report) else { continue };
        let node_type = fields.text_or_empty("type", report);
        let name = fields.text("name", report);
        let weight = fields.number("weight", report).map_or(100, |(_, weight)| weight);
        let default_port = if matches!(scheme, Some("https" | "grpcs")) { 443 } else { 80 };
        let port = fields.number("port", report).map_or(default_port, |(_, port)| port);
        fields.finish(report);
        let Some((name_place, name)) = name else { continue };
        if let ("Domain", Ok(address)) = (node_type.as_str(), name.parse::<IpAddr>()) {
            report.exact(&name_place, "The address becomes an endpoint of a Service without selector.");
            addresses.insert(address);
        } else {
            let message = "A backend has addresses, and names are not looked up. Give the addresses instead.";
            report.blocking(&name_place, Reason::UnsupportedBackend, message);
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
        let message =
            "The nodes have different ports or weights, and endpoints of one Service have equal ones.";
        report.blocking(&place, Reason::UnsupportedBackend, message);
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
    let service = draft.output.objects.add(Kind::Service, &upstream.namespace, &wanted, spec);
    for (family, wanted) in [("IPv4", true), ("IPv6", false)] {
        let endpoints: Vec<Value> = addresses
            .iter()
            .filter(|address| address.is_ipv4() == wanted)
            .map(|address| json!({ "addresses": [address.to_string()] }))
            .collect();
        if endpoints.is_empty() {
            continue;
        }
        let (kind, wanted) = (Kind::EndpointSlice, format!("{service}-{}", family.to_ascii_lowercase()));
        let ports = json!([{ "name": "main", "port": port, "protocol": "TCP" }]);
        let fields = json!({ "endpoints": endpoints, "addressType": family, "ports": ports });
        let slice = draft.output.objects.add_with(kind, &upstream.namespace, &wanted, fields);
        if let Some(slice) = draft.output.objects.get_mut(&ObjectKey::new(kind, &*upstream.namespace, slice))
        {
            slice["metadata"]["labels"] = json!({ "kubernetes.io/service-name": service });
        }
    }
    Some((service, port))
}

/// Converts the BackendTrafficPolicies of the Go controller.
pub(super) fn convert_policies(
    predecessors: &mut Predecessors,
    draft: &mut Draft<'_>,
) -> BTreeMap<ObjectName, Upstream> {
    let context = draft.context;
    let mut hosts: BTreeMap<ObjectName, Upstream> = BTreeMap::new();
    for source in predecessors.take(SourceKind::BackendTrafficPolicy) {
        let Source { kind, name, place, mut spec } = source;
        let is_allowed = context.choices.may_be_weaker(kind.as_str(), &name);
        let before = draft.report.losses();
        let mut targets = Vec::new();
        for target in spec.list("targetRefs", draft.report) {
            let Some(mut fields) = target.object(draft.report) else { continue };
            let service = fields.text("name", draft.report);
            let kind = fields.text("kind", draft.report).map(|(_, kind)| kind);
            let _ = fields.text("group", draft.report);
            let section = fields.text("sectionName", draft.report).map(|(_, section)| section);
            let at: Place = fields.place.clone();
            fields.finish(draft.report);
            let Some((_, service)) = service.filter(|_| kind.is_none_or(|kind| kind == "Service")) else {
                draft.report.impossible(&at, Reason::UnsuitableReferent, "The policy is for Services alone.");
                continue;
            };
            draft.report.exact(&at, format!("The target stays Service {service}."));
            let target = ObjectName::new(&*name.namespace, service);
            let mut each = spec.clone();
            let mut settings = Settings::read(&mut each, &target, section.as_deref(), draft);
            each.finish(draft.report);
            settings.write(&target, section.as_deref(), draft.output);
            targets.push(target.clone());
            hosts.insert(target, Upstream { external: None, host: settings.host.take(), is_lost: false });
        }
        if targets.is_empty() {
            let message = "The policy has no target that can be read, so it becomes nothing.";
            draft.report.impossible(&place.at("spec"), Reason::MissingField, message);
        }
        if draft.report.losses() > before && !is_allowed {
            draft.report.withhold_until_named(&place, "Rules with the Services of the policy answer 503.");
            for target in targets {
                hosts.entry(target).or_default().is_lost = true;
            }
        }
    }
    hosts
}
