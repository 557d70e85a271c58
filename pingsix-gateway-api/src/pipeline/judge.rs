//! The documents of all owners, and the verdicts on all objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pingsix_translate::infrastructure::{SinkCredentials, SinkParameters};
use pingsix_translate::snapshot::{AnyPolicy, AnyRoute, Gateway, Proxies, parent_of_listener_set};
use pingsix_translate::status::{
    JudgedTargets, Problem, Severity, Verdicts, judge_gateway_class, judge_pingsix_proxy, judge_targets,
    with_delivery,
};
use pingsix_translate::{Kind, Object, ObjectKey, ObjectName, Objects, Options, PINGSIX_GROUP, Translation};

use super::{Caches, Finding, Output, ServedPlane, ServedStreams, reason};
use crate::bridge::{BridgeError, bridge_stream};
use crate::expiry::{outdated_certificates, outdated_stream_certificates};
use crate::explain::{RelatedObjects, is_accepted};

/// The documents of all data planes, and the verdicts of their owners.
pub(super) fn translate(
    objects: &Objects,
    options: &Options,
    now: Option<Timestamp>,
    caches: &mut Caches,
) -> Output {
    caches.update(objects);
    let mut translating = Translating { objects, options, now, caches, output: Output::default() };
    for (name, gateway) in objects.gateways() {
        if problem_of_class(objects, options, gateway).is_none() {
            translating.add_gateway(name);
        }
    }
    translating.add_ingress_classes();
    translating.output
}

/// Adds the verdicts and findings on all other objects to the documents.
pub(super) fn judge(objects: &Objects, options: &Options, output: Output) -> Output {
    let mut judge = Judge { objects, options, output };
    judge.judge_proxies();
    judge.judge_classes();
    judge.check_gateways();
    judge.merge_verdicts();
    judge.check_listener_sets();
    judge.check_ingresses();
    for route in objects.routes() {
        judge.check_parents(&route);
    }
    for policy in objects.policies() {
        judge.check_targets(&policy);
    }
    let mut output = judge.output;
    output.findings.sort();
    output.findings.dedup();
    output.related = RelatedObjects::new(objects, |policy| {
        output.policies.get(policy).is_some_and(|verdicts| is_accepted(verdicts))
    });
    output
}

/// Objects, and the documents so far.
pub(super) struct Translating<'a> {
    pub(super) objects: &'a Objects,
    pub(super) options: &'a Options,
    now: Option<Timestamp>,
    pub(super) caches: &'a mut Caches,
    output: Output,
}

/// Objects, and the verdicts so far.
pub(super) struct Judge<'a> {
    pub(super) objects: &'a Objects,
    pub(super) options: &'a Options,
    output: Output,
}

/// Every set of parameters.
pub(super) fn proxies(objects: &Objects) -> Proxies {
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

/// The problem of the class that a Gateway names, if the class is absent or belongs to another controller. Of
/// parameters of the class that cannot be used, translation speaks.
fn problem_of_class(
    objects: &Objects,
    options: &Options,
    gateway: &Gateway,
) -> Option<(Severity, FieldProblem)> {
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
    Some((severity, FieldProblem { field: "spec.gatewayClassName".to_owned(), reason, message }))
}

impl Translating<'_> {
    fn add_gateway(&mut self, name: &ObjectName) {
        let gateway = ObjectKey { kind: Kind::Gateway, name: name.clone() };
        let Some(translation) = self.caches.translate(&gateway, self.options) else { return };
        let verdicts = self.add_planes(&gateway, translation);
        self.output.gateways.push(verdicts);
    }

    /// Bridges the data planes of an owner, and reports what the bridge has to say.
    pub(super) fn add_planes(&mut self, owner: &ObjectKey, translation: Translation) -> Arc<Verdicts> {
        let verdicts = Arc::new(with_delivery(translation.verdicts, &BTreeMap::new()));
        let mut problems = Vec::new();
        let is_kept = translation.has_unusable_parameters;
        if is_kept {
            self.output.kept.insert(owner.clone());
        }
        let sink = translation.attached.as_ref().and_then(|attached| attached.sink.as_ref());
        problems.extend(sink.and_then(|sink| problem_of_sink(self.objects, owner, sink)));
        for (key, data_plane) in translation.data_planes {
            problems.extend(self.now.into_iter().flat_map(|now| outdated_certificates(&data_plane, now)));
            let bridge = self.caches.bridges.entry(key.clone()).or_default();
            let bridged = bridge.bridge(&key, &data_plane, self.options);
            let bridged = self.published(owner, bridged).filter(|_| !is_kept);
            problems.extend(bridged.iter().flat_map(|bridged| bridged.problems.iter().cloned()));
            let plane = ServedPlane { verdicts: verdicts.clone(), data_plane, bridged };
            self.output.planes.insert(key, plane);
        }
        for (key, plane) in translation.stream_planes {
            problems.extend(self.now.into_iter().flat_map(|now| outdated_stream_certificates(&plane, now)));
            let bridged =
                self.published(owner, bridge_stream(&key, &plane, self.options)).filter(|_| !is_kept);
            problems.extend(bridged.iter().flat_map(|bridged| bridged.problems.iter().cloned()));
            self.output.streams.insert(key, ServedStreams { bridged, plane });
        }
        self.output.add_findings(&problems);
        self.output.owners.insert(owner.clone(), verdicts.clone());
        verdicts
    }

    /// The documents of a data plane for a sink. Reports the error of a data plane without any.
    fn published<T>(&mut self, owner: &ObjectKey, bridged: Result<T, BridgeError>) -> Option<T> {
        let error = match bridged {
            Ok(bridged) => return Some(bridged),
            Err(error) => error,
        };
        let problem = FieldProblem {
            field: String::new(),
            reason: reason::NOT_PUBLISHED,
            message: format!("{error}."),
        };
        self.output.report(owner, Severity::Error, problem);
        None
    }
}

impl Judge<'_> {
    fn judge_proxies(&mut self) {
        let objects = self.objects;
        for (_, proxy) in objects.proxies() {
            let verdict = judge_pingsix_proxy(proxy);
            self.add_findings(&verdict.problems);
            self.output.proxies.push(verdict);
        }
    }

    fn judge_classes(&mut self) {
        let objects = self.objects;
        let proxies = proxies(objects);
        for (_, class) in objects.gateway_classes() {
            if let Some(verdict) = judge_gateway_class(class, &proxies, self.options) {
                self.add_findings(&verdict.problems);
                self.output.classes.push(verdict);
            }
        }
    }

    /// Gateways without a class of ours.
    fn check_gateways(&mut self) {
        let (objects, options) = (self.objects, self.options);
        for (name, gateway) in objects.gateways() {
            if let Some((severity, problem)) = problem_of_class(objects, options, gateway) {
                self.report(&ObjectKey { kind: Kind::Gateway, name: name.clone() }, severity, problem);
            }
        }
    }

    /// Puts together the verdicts of all owners on each route and policy, and reports their findings.
    fn merge_verdicts(&mut self) {
        let Output { owners, gateways, routes, policies, findings, .. } = &mut self.output;
        findings.extend(owners.values().flat_map(|verdicts| &verdicts.problems).map(Finding::from));
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

    /// A route that names a parent that is not there; a cluster would leave it without a word.
    fn check_parents(&mut self, route: &AnyRoute) {
        let object = route.key();
        let parents = route.parent_refs();
        if !parents.iter().any(|parent| parent.target(&object.name.namespace).is_some()) {
            let problem = FieldProblem {
                field: "spec.parentRefs".to_owned(),
                reason: reason::NO_PARENT,
                message: "The route names no Gateway, so nothing serves it.".to_owned(),
            };
            self.report(&object, Severity::Warning, problem);
        }
        for parent_ref in &**parents {
            // Other kinds of parents are not ours to judge.
            let Some(parent) = parent_ref.target(&object.name.namespace) else { continue };
            if !self.objects.contains(&parent) {
                let problem = FieldProblem {
                    field: format!("spec.parentRefs[{}]", parent_ref.index),
                    reason: reason::PARENT_NOT_FOUND,
                    message: format!("{parent} does not exist."),
                };
                self.report(&object, Severity::Error, problem);
            }
        }
    }

    /// ListenerSets whose Gateway is not there; a cluster would leave them without a word.
    fn check_listener_sets(&mut self) {
        let objects = self.objects;
        for (name, set) in objects.listener_sets() {
            let parent = parent_of_listener_set(name, set);
            let (reason, message) = match parent.map(|name| ObjectKey { kind: Kind::Gateway, name }) {
                None => (
                    reason::NO_PARENT,
                    "The ListenerSet belongs to something that is no Gateway, so nothing serves it."
                        .to_owned(),
                ),
                Some(gateway) if !objects.contains(&gateway) => {
                    (reason::PARENT_NOT_FOUND, format!("{gateway} does not exist."))
                }
                Some(_) => continue,
            };
            let object = ObjectKey { kind: Kind::ListenerSet, name: name.clone() };
            let problem = FieldProblem { field: "spec.parentRef".to_owned(), reason, message };
            self.report(&object, Severity::Error, problem);
        }
    }

    /// Reports the targets of a policy that lead to no object, and a policy without an effect. The author would take the
    /// traffic for protected.
    fn check_targets(&mut self, policy: &AnyPolicy) {
        let object = policy.key();
        let objects = self.objects;
        let JudgedTargets { verdicts, problems } =
            judge_targets(policy, |target| Some(objects.contains(target)));
        self.add_findings(&problems);
        let is_served = self.output.policies.contains_key(&object);
        // In a cluster, a policy of another group may belong to another controller.
        if object.kind.group() == PINGSIX_GROUP && !verdicts.is_empty() {
            self.output.policies.entry(Arc::new(object.clone())).or_default().extend(verdicts);
        }
        let target_refs = policy.target_refs();
        if is_served || !target_refs.is_empty() && problems.len() == target_refs.len() {
            return;
        }
        let targets = target_refs.into_iter();
        let targets: Vec<String> = targets.map(|target| format!("{} {}", target.kind, target.name)).collect();
        let targets = if targets.is_empty() { "nothing".to_owned() } else { targets.join(", ") };
        self.report(
            &object,
            Severity::Warning,
            FieldProblem {
                field: "spec.targetRefs".to_owned(),
                reason: reason::NO_TARGET,
                message: if object.kind == Kind::BackendTrafficPolicy {
                    format!(
                        "The policy has no effect: no attached route or Ingress served here refers to a Service it targets \
                         ({targets})."
                    )
                } else if object.kind.is_inherited_policy() {
                    format!(
                        "The policy has no effect: no Gateway, ListenerSet, attached route or Ingress served here is a \
                         target of it ({targets})."
                    )
                } else {
                    format!(
                        "The policy has no effect: no route that is attached to a Gateway served here refers to a \
                         Service it targets ({targets})."
                    )
                },
            },
        );
    }

    fn add_findings(&mut self, problems: &[Problem]) {
        self.output.add_findings(problems);
    }

    pub(super) fn report(&mut self, object: &ObjectKey, severity: Severity, problem: FieldProblem) {
        self.output.report(object, severity, problem);
    }
}

impl Output {
    fn add_findings(&mut self, problems: &[Problem]) {
        self.findings.extend(problems.iter().map(Finding::from));
    }

    fn report(&mut self, object: &ObjectKey, severity: Severity, problem: FieldProblem) {
        let FieldProblem { field, reason, message } = problem;
        self.findings.push(Finding { object: object.clone(), field, severity, reason, message });
    }
}

pub(super) struct FieldProblem {
    pub(super) field: String,
    pub(super) reason: &'static str,
    pub(super) message: String,
}
