//! The documents of all owners, and the verdicts on all objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pingsix_translate::infrastructure::{SinkCredentials, SinkParameters};
use pingsix_translate::snapshot::{
    AnyPolicy, AnyRoute, Gateway, Ingress, ListenerSet, Proxies, class_of_ingress, class_or_default,
    default_ingress_classes, parent_of_listener_set,
};
use pingsix_translate::status::{
    JudgedTargets, Problem, Severity, judge_gateway_class, judge_ingress_class, judge_pingsix_proxy,
    judge_targets, with_delivery,
};
use pingsix_translate::{Kind, Object, ObjectKey, ObjectName, Objects, Options, PINGSIX_GROUP, Translation};

use super::{BridgedOwner, Caches, Finding, Output, ServedPlane, ServedStreams, reason};
use crate::bridge::BridgeError;
use crate::explain::{RelatedObjects, is_accepted};

/// The documents of all data planes, and the verdicts of their owners.
pub(super) fn translate(
    objects: &Objects,
    options: &Options,
    now: Option<Timestamp>,
    caches: &mut Caches,
) -> Output {
    caches.update(objects);
    let mut output = Output::default();
    let proxies = proxies(objects);
    let gateways =
        objects.gateways().filter(|(name, gateway)| class_finding(objects, options, name, gateway).is_none());
    let gateways = gateways.map(|(name, _)| ObjectKey { kind: Kind::Gateway, name: name.clone() });
    let classes = objects.ingress_classes();
    let classes = classes.filter_map(|(_, class)| judge_ingress_class(class, &proxies, options));
    for owner in gateways.chain(classes.map(|verdict| ObjectKey::clone(&verdict.key))) {
        if let Some((translation, bridged)) = caches.run(&owner, options, now) {
            output.add_owner(objects, owner, translation, bridged);
        }
    }
    output
}

/// Adds the verdicts and findings on all other objects to the documents.
pub(super) fn judge(objects: &Objects, options: &Options, mut output: Output) -> Output {
    let proxies = proxies(objects);
    output.proxies = objects.proxies().map(|(_, proxy)| judge_pingsix_proxy(proxy)).collect();
    let classes = objects.gateway_classes();
    output.classes = classes.filter_map(|(_, class)| judge_gateway_class(class, &proxies, options)).collect();
    let Output { findings, proxies: judged_proxies, classes, .. } = &mut output;
    findings.extend(judged_proxies.iter().flat_map(|verdict| &verdict.problems).map(Finding::from));
    findings.extend(classes.iter().flat_map(|verdict| &verdict.problems).map(Finding::from));
    findings.extend(
        objects.gateways().filter_map(|(name, gateway)| class_finding(objects, options, name, gateway)),
    );
    findings.extend(ingress_findings(objects, &proxies, options));
    findings.extend(objects.listener_sets().filter_map(|(name, set)| parent_finding(objects, name, set)));
    findings.extend(objects.routes().flat_map(|route| parents_findings(objects, &route)));
    output.merge_verdicts();
    for policy in objects.policies() {
        output.check_targets(objects, &policy);
    }
    output.findings.sort();
    output.findings.dedup();
    output.related = RelatedObjects::new(objects, |policy| {
        output.policies.get(policy).is_some_and(|verdicts| is_accepted(verdicts))
    });
    output
}

/// Every set of parameters.
fn proxies(objects: &Objects) -> Proxies {
    objects.proxies().map(|(name, proxy)| (name.clone(), proxy.clone())).collect()
}

/// The problem that prevents publication of an owner's data planes to the sink of its parameters.
fn problem_of_sink(objects: &Objects, owner: &ObjectKey, sink: &SinkParameters) -> Option<Problem> {
    let of_kind = |kind, name: &ObjectName| objects.get(&ObjectKey { kind, name: name.clone() });
    let secret = match sink.credentials.as_ref().and_then(|name| of_kind(Kind::Secret, name)) {
        Some(Object::Secret(secret)) => Some(secret),
        Some(_) | None => None,
    };
    let problem = SinkCredentials::read(sink, secret.as_deref()).err()?;
    let gateway = match of_kind(Kind::Gateway, &owner.name) {
        Some(Object::Gateway(gateway)) => Some(gateway),
        Some(_) | None => None,
    };
    Some(sink.problem(owner, gateway.as_deref(), &problem.to_string()))
}

/// The finding about the class that a Gateway names, if the class is absent or belongs to another controller. Of
/// parameters of the class that cannot be used, translation speaks.
fn class_finding(
    objects: &Objects,
    options: &Options,
    name: &ObjectName,
    gateway: &Gateway,
) -> Option<Finding> {
    let (wanted, ours) = (gateway.spec.gateway_class_name.as_str(), &options.controller_name);
    let (severity, reason, message) = match objects.get(&ObjectKey::new(Kind::GatewayClass, "", wanted)) {
        Some(Object::GatewayClass(class)) if class.spec.controller_name == *ours => return None,
        Some(Object::GatewayClass(class)) => (
            // Another controller may be meant to serve it.
            Severity::Warning,
            reason::CLASS_NOT_OURS,
            format!(
                "GatewayClass \"{wanted}\" has controllerName {}, not {ours}, so the Gateway is not served.",
                class.spec.controller_name
            ),
        ),
        Some(_) | None => (
            Severity::Error,
            reason::CLASS_NOT_FOUND,
            format!("GatewayClass \"{wanted}\" does not exist, so the Gateway is not served."),
        ),
    };
    let object = ObjectKey { kind: Kind::Gateway, name: name.clone() };
    Some(Finding { object, field: "spec.gatewayClassName".to_owned(), severity, reason, message })
}

/// The findings about Ingresses whose class is absent, not ours or not served; a cluster would leave them without a word.
fn ingress_findings(objects: &Objects, proxies: &Proxies, options: &Options) -> Vec<Finding> {
    let defaults = default_ingress_classes(objects.ingress_classes().map(|(_, class)| &**class));
    let finding = |(name, ingress): (&ObjectName, &Arc<Ingress>)| {
        let (severity, reason, message) = refused_ingress(objects, proxies, ingress, &defaults, options)?;
        let is_named = ingress.spec.as_ref().is_some_and(|spec| spec.ingress_class_name.is_some());
        let field = if is_named || class_of_ingress(ingress).is_none() {
            "spec.ingressClassName"
        } else {
            "metadata.annotations"
        };
        let object = ObjectKey { kind: Kind::Ingress, name: name.clone() };
        Some(Finding { object, field: field.to_owned(), severity, reason, message })
    };
    objects.ingresses().filter_map(finding).collect()
}

/// Why no class of ours serves an Ingress.
fn refused_ingress(
    objects: &Objects,
    proxies: &Proxies,
    ingress: &Ingress,
    defaults: &[Arc<str>],
    options: &Options,
) -> Option<(Severity, &'static str, String)> {
    let Some(wanted) = class_or_default(ingress, defaults) else {
        let message = "The Ingress names no IngressClass and none is the default, so it is not served.";
        return Some((Severity::Error, reason::NO_INGRESS_CLASS, message.to_owned()));
    };
    let class = objects.get(&ObjectKey::new(Kind::IngressClass, "", wanted));
    let Some(Object::IngressClass(class)) = class else {
        let message = format!("IngressClass \"{wanted}\" does not exist, so the Ingress is not served.");
        return Some((Severity::Error, reason::INGRESS_CLASS_NOT_FOUND, message));
    };
    match judge_ingress_class(&class, proxies, options) {
        None => {
            let controller =
                class.spec.as_ref().and_then(|spec| spec.controller.as_deref()).unwrap_or_default();
            let message = format!(
                "IngressClass \"{wanted}\" has controller \"{controller}\", not {}, so the Ingress is not served.",
                options.controller_name
            );
            // Another controller may be meant to serve it.
            Some((Severity::Warning, reason::INGRESS_CLASS_NOT_OURS, message))
        }
        Some(verdict) if !verdict.is_served() => {
            let message = format!("IngressClass \"{wanted}\" is not served, so neither is the Ingress.");
            Some((Severity::Error, reason::INGRESS_CLASS_NOT_SERVED, message))
        }
        Some(_) => None,
    }
}

/// The finding about a ListenerSet whose Gateway is not there; a cluster would leave it without a word.
fn parent_finding(objects: &Objects, name: &ObjectName, set: &ListenerSet) -> Option<Finding> {
    let parent = parent_of_listener_set(name, set);
    let (reason, message) = match parent.map(|name| ObjectKey { kind: Kind::Gateway, name }) {
        None => (
            reason::NO_PARENT,
            "The ListenerSet belongs to something that is no Gateway, so nothing serves it.".to_owned(),
        ),
        Some(gateway) if !objects.contains(&gateway) => {
            (reason::PARENT_NOT_FOUND, format!("{gateway} does not exist."))
        }
        Some(_) => return None,
    };
    let object = ObjectKey { kind: Kind::ListenerSet, name: name.clone() };
    let field = "spec.parentRef".to_owned();
    Some(Finding { object, field, severity: Severity::Error, reason, message })
}

/// The findings about a route that names a parent that is not there; a cluster would leave it without a word.
fn parents_findings(objects: &Objects, route: &AnyRoute) -> Vec<Finding> {
    let object = route.key();
    // Other kinds of parents are not ours to judge.
    let parents = route.parent_refs().iter();
    let parents: Vec<_> = parents
        .filter_map(|parent_ref| Some((parent_ref.index, parent_ref.target(&object.name.namespace)?)))
        .collect();
    if parents.is_empty() {
        let message = "The route names no Gateway, so nothing serves it.".to_owned();
        let (field, severity) = ("spec.parentRefs".to_owned(), Severity::Warning);
        return vec![Finding { object, field, severity, reason: reason::NO_PARENT, message }];
    }
    let missing = parents.into_iter().filter(|(_, parent)| !objects.contains(parent));
    let finding = |(index, parent): (usize, ObjectKey)| Finding {
        object: object.clone(),
        field: format!("spec.parentRefs[{index}]"),
        severity: Severity::Error,
        reason: reason::PARENT_NOT_FOUND,
        message: format!("{parent} does not exist."),
    };
    missing.map(finding).collect()
}

impl Output {
    /// Adds the data planes of an owner, and their findings.
    fn add_owner(
        &mut self,
        objects: &Objects,
        owner: ObjectKey,
        translation: Translation,
        bridged: BridgedOwner,
    ) {
        let verdicts = Arc::new(with_delivery(translation.verdicts, &BTreeMap::new()));
        let is_kept = translation.has_unusable_parameters;
        let mut problems = bridged.outdated;
        let sink = translation.attached.as_ref().and_then(|attached| attached.sink.as_ref());
        problems.extend(sink.and_then(|sink| problem_of_sink(objects, &owner, sink)));
        let (mut planes, mut streams) = (bridged.planes, bridged.streams);
        for (key, data_plane) in translation.data_planes {
            let bridged = planes.remove(&key).and_then(|bridged| self.published(&owner, bridged));
            let bridged = bridged.filter(|_| !is_kept);
            problems.extend(bridged.iter().flat_map(|bridged| bridged.problems.iter().cloned()));
            self.planes.insert(key, ServedPlane { verdicts: verdicts.clone(), data_plane, bridged });
        }
        for (key, plane) in translation.stream_planes {
            let bridged = streams.remove(&key).and_then(|bridged| self.published(&owner, bridged));
            let bridged = bridged.filter(|_| !is_kept);
            problems.extend(bridged.iter().flat_map(|bridged| bridged.problems.iter().cloned()));
            self.streams.insert(key, ServedStreams { bridged, plane });
        }
        self.findings.extend(problems.iter().map(Finding::from));
        if is_kept {
            self.kept.insert(owner.clone());
        }
        if owner.kind == Kind::Gateway {
            self.gateways.push(verdicts.clone());
        }
        self.owners.insert(owner, verdicts);
    }

    /// The documents of a data plane for a sink. Reports the error of a data plane without any.
    fn published<T>(&mut self, owner: &ObjectKey, bridged: Result<T, BridgeError>) -> Option<T> {
        let report = |error: BridgeError| {
            self.findings.push(Finding {
                object: owner.clone(),
                field: String::new(),
                severity: Severity::Error,
                reason: reason::NOT_PUBLISHED,
                message: format!("{error}."),
            });
        };
        bridged.map_err(report).ok()
    }

    /// Puts together the verdicts of all owners on each route and policy, and reports their findings.
    fn merge_verdicts(&mut self) {
        let Self { owners, gateways, routes, policies, findings, .. } = self;
        findings.extend(owners.values().flat_map(|verdicts| verdicts.problems.iter()).map(Finding::from));
        for (key, verdict) in gateways.iter().flat_map(|verdicts| &verdicts.routes) {
            match routes.get_mut(key) {
                Some(held) => held.merge(verdict),
                None => {
                    routes.insert(key.clone(), verdict.clone());
                }
            }
        }
        // Gateways come before IngressClasses, as their kinds do.
        for (key, verdict) in owners.values().flat_map(|verdicts| &verdicts.policies) {
            policies.entry(key.clone()).or_default().push(verdict.clone());
        }
    }

    /// Reports the targets of a policy that lead to no object, and a policy without an effect. The author would take the
    /// traffic for protected.
    fn check_targets(&mut self, objects: &Objects, policy: &AnyPolicy) {
        let object = policy.key();
        let JudgedTargets { verdicts, problems } =
            judge_targets(policy, |target| Some(objects.contains(target)));
        self.findings.extend(problems.iter().map(Finding::from));
        let is_served = self.policies.contains_key(&object);
        // In a cluster, a policy of another group may belong to another controller.
        if object.kind.group() == PINGSIX_GROUP && !verdicts.is_empty() {
            self.policies.entry(Arc::new(object.clone())).or_default().extend(verdicts);
        }
        let target_refs = policy.target_refs();
        if is_served || !target_refs.is_empty() && problems.len() == target_refs.len() {
            return;
        }
        let targets = target_refs.into_iter();
        let targets: Vec<String> = targets.map(|target| format!("{} {}", target.kind, target.name)).collect();
        let targets = if targets.is_empty() { "nothing".to_owned() } else { targets.join(", ") };
        let lacking = if object.kind.is_inherited_policy() {
            "no Gateway, ListenerSet, attached route or Ingress served here is a target of it"
        } else if policy.is_for_ingresses() {
            "no attached route or Ingress served here refers to a Service it targets"
        } else {
            "no route that is attached to a Gateway served here refers to a Service it targets"
        };
        self.findings.push(Finding {
            object,
            field: "spec.targetRefs".to_owned(),
            severity: Severity::Warning,
            reason: reason::NO_TARGET,
            message: format!("The policy has no effect: {lacking} ({targets})."),
        });
    }
}
