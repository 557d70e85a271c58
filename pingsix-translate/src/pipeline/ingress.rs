//! The translation of one IngressClass.

mod annotations;
mod hosts;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::annotations::warn_of_annotations;
use self::hosts::{Hosts, oldest_first, rests_of_hosts};
use self::tls::certificates;
use super::shared::Shared;
use super::{Translation, infrastructure};
use crate::backends::Backends;
use crate::crd::HostOwnership;
use crate::lower::{Attachments, DataPlane, Lowered, RouteInput, ingress_plane, lower_plane};
use crate::model::{
    DataPlaneKey, FieldPath, Kind, ObjectKey, Options, Origin, Problem, Provenance, Reason, Section, Severity,
};
use crate::normalise::normalise_ingress;
use crate::parameters::{self, Parameters};
use crate::policy::{BackendTlsPolicies, Carried};
use crate::quarantine::refuse_rules;
use crate::references::References;
use crate::shared_map::SharedMap;
use crate::snapshot::{IngressSnapshot, key_of};
use crate::status::{Verdicts, judge_ingress_class};

/// Translates what one IngressClass may see into PingSIX configuration and verdicts.
///
/// As [`crate::translate()`], it is total and deterministic. A class of another controller has no data plane; one of ours
/// that cannot be served has an empty one.
pub fn translate_ingress(snapshot: &IngressSnapshot, options: &Options) -> Translation {
    let mut verdicts = Verdicts {
        gateway: None,
        listener_sets: BTreeMap::new(),
        routes: SharedMap::new(),
        policies: BTreeMap::new(),
        ingresses: BTreeSet::new(),
        problems: Vec::new(),
    };
    let Some(class) = judge_ingress_class(&snapshot.class, &snapshot.referents.proxies, options) else {
        let (data_planes, stream_planes) = (BTreeMap::new(), BTreeMap::new());
        return Translation {
            data_planes,
            stream_planes,
            infrastructure: None,
            attached: None,
            has_unusable_parameters: false,
            verdicts,
        };
    };
    let is_served = class.is_served();
    let parameters = parameters::of_ingress_class(&snapshot.class, &snapshot.referents.proxies, options);
    let parameters = parameters.ok().filter(|_| is_served).unwrap_or_default();
    let infrastructure = match &parameters {
        Parameters::Managed(managed) => {
            Some(Arc::new(infrastructure::of_ingress_class(&class.key, &snapshot.class, managed)))
        }
        Parameters::Unsaid | Parameters::Attached(_) => None,
    };
    let mut problems = class.problems;
    problems.extend(several_defaults(&class.key, &snapshot.default_classes));
    let key = DataPlaneKey::Ingress { class: Arc::from(&*class.key.name.name) };
    let data_plane = if is_served {
        verdicts.ingresses = snapshot
            .ingresses
            .values()
            .map(|ingress| Arc::new(key_of(Kind::Ingress, &ingress.metadata)))
            .collect();
        let share = parameters::share_of_ingress_class(&snapshot.class, &snapshot.referents.proxies, options);
        lower(&key, share, snapshot, options, &mut problems)
    } else {
        DataPlane::default()
    };
    problems.sort();
    problems.dedup();
    verdicts.problems = problems;
    let data_planes = BTreeMap::from([(key, data_plane)]);
    let (stream_planes, attached) = (BTreeMap::new(), parameters.attached().cloned());
    let has_unusable_parameters = !is_served;
    Translation { data_planes, stream_planes, infrastructure, attached, has_unusable_parameters, verdicts }
}

fn lower(
    key: &DataPlaneKey,
    namespace_share: u8,
    snapshot: &IngressSnapshot,
    options: &Options,
    problems: &mut Vec<Problem>,
) -> DataPlane {
    let references = References::new(&snapshot.referents);
    // Policies of Gateway API are for what Gateways serve.
    let policies = BackendTlsPolicies::default();
    let in_effect = policies.for_route(Carried::Requests(None));
    let mut backends = Backends::default();
    let (mut routes, mut shared) = (Vec::new(), Shared::default());
    let attached = Arc::new(Attachments::everywhere());
    let ownership = parameters::host_ownership(&snapshot.class, &snapshot.referents.proxies);
    let oldest_first = oldest_first(snapshot);
    let hosts = Hosts::new(ownership, &oldest_first);
    hosts.tell(problems);
    for ingress in snapshot.ingresses.values() {
        problems.extend(warn_of_annotations(ingress));
        for route in normalise_ingress(ingress, problems) {
            if hosts.is_refused(&route) {
                continue;
            }
            let route = shared.route(refuse_rules(&snapshot.referents.quarantine, route));
            let resolve = |rule| references.resolve_rule(&route, rule, in_effect, &mut backends, problems);
            let rules = route.rules.iter().map(resolve).collect();
            routes.push(Arc::new(RouteInput::new(route, rules, attached.clone())));
        }
    }
    if ownership == HostOwnership::OldestNamespace {
        routes.extend(rests_of_hosts(&routes));
    }
    let certificates = certificates(snapshot, (&oldest_first, &hosts), &references, problems);
    drop(hosts);
    let plane = ingress_plane(key.clone(), certificates, namespace_share);
    let Lowered { data_plane, refused_rules, refused_certificates, problems: of_plane, .. } =
        lower_plane(&plane, &routes, &backends, options);
    for input in &routes {
        let of_rules = input.route.rules.iter().flat_map(|rule| &rule.refusals);
        let of_references = input.rules.iter().flat_map(|rule| rule.unresolved.iter().chain(&rule.refused));
        let refusals = input.route.refusals.iter().chain(of_rules).chain(of_references);
        problems.extend(refusals.map(|refusal| refusal.of(&input.route.key)));
        let limits = input.route.rules.iter().flat_map(|rule| &rule.limits);
        problems.extend(limits.map(|limit| limit.of(&input.route.key)));
    }
    problems.extend(refused_rules.iter().map(|(rule, refusal)| refusal.of(&routes[rule.route].route.key)));
    problems.extend(refused_certificates.iter().map(|(owner, refusal)| refusal.of(owner)));
    problems.extend(of_plane);
    problems.extend(shadowed(&data_plane));
    data_plane
}

/// What never gets a request because something for the same requests comes first. A default backend is there to yield
/// to every path, and only another default backend leaves it nothing that its author would have expected.
fn shadowed(data_plane: &DataPlane) -> Vec<Problem> {
    let mut problems = Vec::new();
    for provenance in data_plane.provenance.values() {
        let Provenance::Rules { decisions, shadowed, .. } = provenance else { continue };
        let Some(first) = decisions.iter().find_map(|decision| decision.origin.as_ref()) else { continue };
        let is_path = |origin: &Origin| matches!(origin.section, Section::Match { .. });
        let unexpected = shadowed.iter().filter(|origin| is_path(origin) || !is_path(first));
        problems.extend(unexpected.map(|origin| Problem {
            object: origin.object.clone(),
            field: origin.field(),
            severity: Severity::Warning,
            reason: Reason::Shadowed,
            message: format!(
                "It gets no requests: {} of {} is for the same requests and comes first.",
                first.field(),
                first.object
            ),
        }));
    }
    problems
}

/// There should be one default class, and whose Ingresses are served must not be a riddle.
fn several_defaults(class: &Arc<ObjectKey>, defaults: &[Arc<str>]) -> Option<Problem> {
    let [first, _, ..] = defaults else { return None };
    defaults.iter().any(|default| **default == *class.name.name).then(|| Problem {
        object: class.clone(),
        field: FieldPath::new("metadata").child("annotations"),
        severity: Severity::Warning,
        reason: Reason::Shadowed,
        message: format!(
            "IngressClasses {} are all marked as the default; Ingresses without a class belong to the newest, {first}.",
            defaults.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests;
