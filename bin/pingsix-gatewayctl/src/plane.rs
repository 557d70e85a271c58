//! Manifests to data planes: every Gateway and IngressClass that is ours is translated and bridged, the rest is reported.

mod ingress;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_gateway_api::explain::{
    Explanation, Inquiry, InquiryAnswerError, Plane, RelatedObjects, StreamPorts, is_accepted,
};
use pingsix_gateway_api::{
    BridgeError, Bridged, BridgedStream, bridge, bridge_stream, outdated_certificates,
    outdated_stream_certificates,
};
use pingsix_translate::infrastructure::{SinkCredentials, SinkParameters};
use pingsix_translate::pingsix::DocumentKey;
use pingsix_translate::snapshot::{AnyPolicy, AnyRoute, Gateway, Proxies, parent_of_listener_set};
use pingsix_translate::status::{
    GatewayClassVerdict, PingsixProxyVerdict, PolicyVerdict, Problem, Reason, RouteVerdict, Verdicts,
    judge_gateway_class, judge_pingsix_proxy, with_delivery,
};
use pingsix_translate::stream::StreamKey;
use pingsix_translate::{
    DataPlane, DataPlaneKey, Kind, ObjectKey, ObjectName, Objects, Options, Provenance, StreamProvenance,
    Translation, translate,
};

use crate::finding::{Finding, Level, reason};
use crate::manifest::Manifests;

fn findings(manifests: &Manifests, problems: &[Problem]) -> impl Iterator<Item = Finding> {
    problems.iter().map(|problem| Finding::of(problem, manifests.location(&problem.object)))
}

/// The fault that prevents publication of an owner's data planes to the sink of its parameters.
fn fault_of_sink(manifests: &Manifests, owner: &ObjectKey, sink: &SinkParameters) -> Option<Problem> {
    let objects = &manifests.objects;
    let secret =
        sink.credentials.as_ref().and_then(|wanted| objects.secrets().find(|(name, _)| *name == wanted));
    let fault = SinkCredentials::read(sink, secret.map(|(_, secret)| &**secret)).err()?;
    let gateway = objects.gateways().find(|(name, _)| **name == owner.name);
    Some(sink.problem(owner, gateway.map(|(_, gateway)| &**gateway), &fault.to_string()))
}

/// Every set of parameters.
fn proxies(manifests: &Manifests) -> Proxies {
    manifests.objects.proxies().map(|(name, proxy)| (name.clone(), proxy.clone())).collect()
}

/// The result of all manifests.
#[derive(Debug, Default)]
pub(crate) struct Translated {
    pub(crate) planes: BTreeMap<DataPlaneKey, ServedPlane>,
    /// The stream documents of each Gateway.
    pub(crate) streams: BTreeMap<DataPlaneKey, ServedStreams>,
    /// Gateways and IngressClasses with parameters that cannot be used: which data planes they have, and what those are to
    /// hold, is not known, so what was published of them stays.
    kept: BTreeSet<ObjectKey>,
    /// All objects.
    pub(crate) objects: Objects,
    /// The verdicts of each Gateway and IngressClass.
    pub(crate) owners: BTreeMap<ObjectKey, Arc<Verdicts>>,
    pub(crate) classes: Vec<GatewayClassVerdict>,
    pub(crate) proxies: Vec<PingsixProxyVerdict>,
    /// With `Programmed`, as far as that is known offline.
    pub(crate) gateways: Vec<Arc<Verdicts>>,
    /// Of all Gateways together.
    pub(crate) routes: BTreeMap<Arc<ObjectKey>, RouteVerdict>,
    /// Of each Gateway through which a policy counts.
    pub(crate) policies: BTreeMap<Arc<ObjectKey>, Vec<PolicyVerdict>>,
    /// Sorted, without repetitions.
    pub(crate) findings: Vec<Finding>,
    related: RelatedObjects,
}

/// A data plane and what it was made from.
#[derive(Debug)]
pub(crate) struct ServedPlane {
    verdicts: Arc<Verdicts>,
    data_plane: DataPlane,
    /// `None` without a publication; a finding has the reason.
    pub(crate) bridged: Option<Bridged>,
}

impl ServedPlane {
    pub(crate) fn to_explain<'a>(&'a self, key: &'a DataPlaneKey) -> Plane<'a> {
        Plane {
            key,
            config: self.bridged.as_ref().map_or(&self.data_plane.config, |bridged| &bridged.config),
            provenance: &self.data_plane.provenance,
            verdicts: &self.verdicts,
        }
    }

    /// The provenance of a document.
    pub(crate) fn provenance(&self, key: &DocumentKey) -> Option<&Provenance> {
        self.data_plane.provenance.get(key)
    }
}

/// The stream documents of a Gateway and where they come from.
#[derive(Debug)]
pub(crate) struct ServedStreams {
    pub(crate) provenance: BTreeMap<StreamKey, StreamProvenance>,
    /// `None` without a publication; a finding has the reason.
    pub(crate) bridged: Option<BridgedStream>,
}

impl Translated {
    pub(crate) fn new(manifests: &Manifests, options: &Options) -> Self {
        let (findings, objects) = (manifests.findings.clone(), manifests.objects.clone());
        let mut translated = Self { findings, objects, ..Self::default() };
        translated.judge_proxies(manifests);
        translated.judge_classes(manifests, options);
        for (name, gateway) in manifests.objects.gateways() {
            if translated.is_ours(manifests, name, gateway, options) {
                translated.add_gateway(manifests, name, options);
            }
        }
        translated.check_listener_sets(manifests);
        translated.add_ingress_classes(manifests, options);
        for route in manifests.objects.routes() {
            translated.check_parents(manifests, &route);
        }
        for policy in manifests.objects.policies() {
            translated.check_targets(manifests, &policy);
        }
        if !options.stream {
            translated.hint_at_streams(manifests);
        }
        translated.drop_repetitions();
        translated.related = RelatedObjects::new(&manifests.objects, |policy| {
            translated.policies.get(policy).is_some_and(|verdicts| is_accepted(verdicts))
        });
        translated
    }

    /// The objects that shape a document beside its owner.
    pub(crate) fn related(&self, plane: &DataPlaneKey, key: &str) -> Vec<String> {
        let documents = self.planes.get(plane).map(|plane| &plane.data_plane.provenance);
        documents.map(|documents| self.related.of_document(documents, key)).unwrap_or_default()
    }

    /// The explanations of a request.
    pub(crate) fn explain(&self, inquiry: &Inquiry) -> Result<Vec<Explanation>, InquiryAnswerError> {
        let planes: Vec<Plane<'_>> = self.planes.iter().map(|(key, plane)| plane.to_explain(key)).collect();
        let stream_ports: Vec<StreamPorts<'_>> = self.stream_ports().collect();
        inquiry.answer(&planes, &stream_ports, &self.related)
    }

    /// Whether there is such a data plane, or may be.
    pub(crate) fn has(&self, key: &DataPlaneKey) -> bool {
        self.planes.contains_key(key) || self.streams.contains_key(key) || self.kept.contains(&key.owner())
    }

    /// Each Gateway with its stream documents, if there are any.
    pub(crate) fn stream_ports(&self) -> impl Iterator<Item = StreamPorts<'_>> {
        self.gateways.iter().filter_map(|verdicts| {
            let gateway = &*verdicts.gateway.as_ref()?.key;
            let streams = self.streams.get(&DataPlaneKey::Stream { gateway: gateway.name.clone() });
            let documents =
                streams.and_then(|streams| Some((&streams.bridged.as_ref()?.config, &streams.provenance)));
            Some(StreamPorts { gateway, documents, verdicts })
        })
    }

    fn judge_proxies(&mut self, manifests: &Manifests) {
        for (_, proxy) in manifests.objects.proxies() {
            let verdict = judge_pingsix_proxy(proxy);
            self.findings.extend(findings(manifests, &verdict.problems));
            self.proxies.push(verdict);
        }
    }

    fn judge_classes(&mut self, manifests: &Manifests, options: &Options) {
        let proxies = proxies(manifests);
        for (_, class) in manifests.objects.gateway_classes() {
            if let Some(verdict) = judge_gateway_class(class, &proxies, options) {
                self.findings.extend(findings(manifests, &verdict.problems));
                self.classes.push(verdict);
            }
        }
    }

    /// The problems of stream routes hold for PingSIX alone, and the sidecar may serve them.
    fn hint_at_streams(&mut self, manifests: &Manifests) {
        let serves_streams = |verdicts: &&Arc<Verdicts>| {
            let gateway = verdicts.gateway.as_ref().map(|gateway| gateway.key.name.clone());
            gateway.is_some_and(|gateway| self.streams.contains_key(&DataPlaneKey::Stream { gateway }))
        };
        let served: BTreeSet<ObjectKey> = self
            .gateways
            .iter()
            .filter(serves_streams)
            .flat_map(|verdicts| verdicts.routes.keys().map(|route| ObjectKey::clone(route)))
            .collect();
        let routes = manifests.objects.routes().map(|route| route.key());
        for object in routes.filter(|key| !key.kind.has_requests() && !served.contains(key)) {
            let kind = object.kind;
            let fault = Fault {
                field: String::new(),
                reason: reason::NO_STREAMS,
                message: format!("--stream translates {kind}s too, for the sidecar beside PingSIX."),
            };
            self.report(manifests, &object, Level::Info, fault);
        }
    }

    /// Sorts findings, and keeps one of those that say the same.
    fn drop_repetitions(&mut self) {
        // Manifests without any EndpointSlice imply that no endpoint is ready.
        let without_slices: BTreeSet<String> = self
            .findings
            .iter()
            .filter(|finding| finding.reason == reason::NO_ENDPOINT_SLICES)
            .map(|finding| finding.object.clone())
            .collect();
        let no_endpoints = Reason::NoEndpoints.as_str();
        self.findings
            .retain(|finding| finding.reason != no_endpoints || !without_slices.contains(&finding.object));
        self.findings.sort();
        self.findings.dedup();
    }

    /// Whether a Gateway's class is there and ours; says so if not. Of parameters of the class that cannot be used,
    /// translation speaks.
    fn is_ours(
        &mut self,
        manifests: &Manifests,
        name: &ObjectName,
        gateway: &Gateway,
        options: &Options,
    ) -> bool {
        let wanted = gateway.spec.gateway_class_name.as_str();
        let class = manifests
            .objects
            .gateway_classes()
            .find(|(name, _)| &*name.name == wanted)
            .map(|(_, class)| class);
        let (severity, reason, message) = match class {
            None => (
                Level::Error,
                reason::CLASS_NOT_FOUND,
                format!("GatewayClass \"{wanted}\" does not exist, so the Gateway is not served."),
            ),
            Some(class) if class.spec.controller_name != options.controller_name => (
                // Another controller may be meant to serve it.
                Level::Warning,
                reason::CLASS_NOT_OURS,
                format!(
                    "GatewayClass \"{wanted}\" has controllerName {}, not {}, so the Gateway is not served.",
                    class.spec.controller_name, options.controller_name
                ),
            ),
            Some(_) => return true,
        };
        self.report(
            manifests,
            &ObjectKey { kind: Kind::Gateway, name: name.clone() },
            severity,
            Fault { field: "spec.gatewayClassName".to_owned(), reason, message },
        );
        false
    }

    fn add_gateway(&mut self, manifests: &Manifests, name: &ObjectName, options: &Options) {
        let Some(snapshot) = manifests.objects.snapshot(name) else { return };
        let gateway = ObjectKey { kind: Kind::Gateway, name: name.clone() };
        let verdicts = self.add_planes(manifests, &gateway, translate(&snapshot, options), options);
        for (key, verdict) in &verdicts.routes {
            match self.routes.get_mut(key) {
                Some(held) => held.merge(verdict),
                None => {
                    self.routes.insert(key.clone(), verdict.clone());
                }
            }
        }
        self.add_policies(&verdicts);
        self.gateways.push(verdicts);
    }

    /// Adds the verdicts of an owner on policies.
    fn add_policies(&mut self, verdicts: &Verdicts) {
        for (key, verdict) in &verdicts.policies {
            self.policies.entry(key.clone()).or_default().push(verdict.clone());
        }
    }

    /// Bridges the data planes of an owner, and reports what its verdicts and the bridge have to say.
    fn add_planes(
        &mut self,
        manifests: &Manifests,
        owner: &ObjectKey,
        translation: Translation,
        options: &Options,
    ) -> Arc<Verdicts> {
        let verdicts = Arc::new(with_delivery(translation.verdicts, &BTreeMap::new()));
        let mut problems = verdicts.problems.clone();
        let is_kept = translation.has_unusable_parameters;
        if is_kept {
            self.kept.insert(owner.clone());
        }
        let sink = translation.attached.as_ref().and_then(|attached| attached.sink.as_ref());
        problems.extend(sink.and_then(|sink| fault_of_sink(manifests, owner, sink)));
        for (key, data_plane) in translation.data_planes {
            problems.extend(outdated_certificates(&data_plane, jiff::Timestamp::now()));
            let bridged = match bridge(&key, &data_plane, options) {
                Ok(_) if is_kept => None,
                Ok(bridged) => {
                    problems.extend(bridged.problems.iter().cloned());
                    Some(bridged)
                }
                Err(error) => {
                    self.report_unpublished(manifests, owner, &error);
                    None
                }
            };
            let plane = ServedPlane { verdicts: verdicts.clone(), data_plane, bridged };
            self.planes.insert(key, plane);
        }
        for (key, plane) in translation.stream_planes {
            problems.extend(outdated_stream_certificates(&plane, jiff::Timestamp::now()));
            let bridged = match bridge_stream(&key, &plane, options) {
                Ok(_) if is_kept => None,
                Ok(bridged) => {
                    problems.extend(bridged.problems.iter().cloned());
                    Some(bridged)
                }
                Err(error) => {
                    self.report_unpublished(manifests, owner, &error);
                    None
                }
            };
            self.streams.insert(key, ServedStreams { provenance: plane.provenance, bridged });
        }
        self.findings.extend(findings(manifests, &problems));
        self.owners.insert(owner.clone(), verdicts.clone());
        verdicts
    }

    fn report_unpublished(&mut self, manifests: &Manifests, owner: &ObjectKey, error: &BridgeError) {
        let fault =
            Fault { field: String::new(), reason: reason::NOT_PUBLISHED, message: format!("{error}.") };
        self.report(manifests, owner, Level::Error, fault);
    }

    /// A route that names a parent that is not there; a cluster would leave it without a word.
    fn check_parents(&mut self, manifests: &Manifests, route: &AnyRoute) {
        let object = route.key();
        let parents = route.parent_refs();
        if parents.is_empty() {
            let fault = Fault {
                field: "spec.parentRefs".to_owned(),
                reason: reason::NO_PARENT,
                message: "The route names no Gateway, so nothing serves it.".to_owned(),
            };
            self.report(manifests, &object, Level::Warning, fault);
        }
        for parent_ref in &**parents {
            // Other kinds of parents are not ours to judge.
            let Some(parent) = parent_ref.target(&object.name.namespace) else { continue };
            if !manifests.objects.contains(&parent) {
                let fault = Fault {
                    field: format!("spec.parentRefs[{}]", parent_ref.index),
                    reason: reason::PARENT_NOT_FOUND,
                    message: format!("{parent} does not exist."),
                };
                self.report(manifests, &object, Level::Error, fault);
            }
        }
    }

    /// ListenerSets whose Gateway is not there; a cluster would leave them without a word.
    fn check_listener_sets(&mut self, manifests: &Manifests) {
        for (name, set) in manifests.objects.listener_sets() {
            let parent = parent_of_listener_set(name, set);
            let (reason, message) = match parent.map(|name| ObjectKey { kind: Kind::Gateway, name }) {
                None => (
                    reason::NO_PARENT,
                    "The ListenerSet belongs to something that is no Gateway, so nothing serves it."
                        .to_owned(),
                ),
                Some(gateway) if !manifests.objects.contains(&gateway) => {
                    (reason::PARENT_NOT_FOUND, format!("{gateway} does not exist."))
                }
                Some(_) => continue,
            };
            let object = ObjectKey { kind: Kind::ListenerSet, name: name.clone() };
            let fault = Fault { field: "spec.parentRef".to_owned(), reason, message };
            self.report(manifests, &object, Level::Error, fault);
        }
    }

    /// Reports a policy without an effect. In a cluster, such a policy has no status, and its author would take the traffic
    /// for protected.
    fn check_targets(&mut self, manifests: &Manifests, policy: &AnyPolicy) {
        let object = policy.key();
        if self.policies.contains_key(&object) {
            return;
        }
        let targets = policy.target_refs().into_iter();
        let targets: Vec<String> = targets.map(|target| format!("{} {}", target.kind, target.name)).collect();
        let targets = if targets.is_empty() { "nothing".to_owned() } else { targets.join(", ") };
        self.report(
            manifests,
            &object,
            Level::Warning,
            Fault {
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

    fn report(&mut self, manifests: &Manifests, object: &ObjectKey, severity: Level, fault: Fault) {
        let Fault { field, reason, message } = fault;
        self.findings.push(Finding {
            place: manifests.location(object).cloned(),
            object: object.to_string(),
            field,
            severity,
            reason: reason.to_owned(),
            message,
        });
    }
}

struct Fault {
    field: String,
    reason: &'static str,
    message: String,
}
