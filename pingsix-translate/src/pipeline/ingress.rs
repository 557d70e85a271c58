//! An IngressClass as an owner of data planes. Each of its Ingresses becomes several routes.
//!
//! Ingresses are read one by one. They share three indexes, which change by the difference of two snapshots: the
//! Ingresses that name a host ([`hosts`]), the fallback route of a host ([`fallbacks`]), and the certificate of a server
//! name ([`tls`]).

mod annotations;
mod bounded_problems;
mod canaries;
mod fallbacks;
mod host_ingresses;
mod hosts;
mod policies;
mod shadowed;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::annotations::{Annotated, add_custom_headers, warn_of_annotations};
pub use self::annotations::{read_annotations, read_custom_headers, read_regex_uri};
use self::canaries::Canaries;
use self::fallbacks::HostFallbacks;
use self::host_ingresses::IngressByAge;
use self::hosts::{FormerHosts, Hosts, tls_of};
use self::policies::{ChangedPolicies, ClassPolicies};
use self::shadowed::ShadowedParts;
use self::tls::certificates;
use super::RouteOutcome;
use super::Translation;
use super::diff::{ObjectDiff, difference, provenances};
use super::infrastructure;
use super::owner::{FullTranslationNeeded, Owner, OwnerDiff, OwnerUpdate, RouteResults, change_certificates};
use super::route_slab::Source;
use super::shared::Interners;
use crate::annotations::IngressAnnotations;
use crate::attach::Listener;
use crate::backends::{Backends, ResolvedRule};
use crate::crd::{AnnotationDialect, HostOwnership};
use crate::infrastructure::{INGRESS_PORTS, Infrastructure, executors};
use crate::lower::{
    Attachments, LoweredPlane, Plane, RouteInput, ServedCertificate, StreamListeners, ingress_planes,
};
use crate::model::{
    Executors, FieldPath, Hostname, Kind, Layout, ObjectKey, ObjectName, Options, Problem, Problems, Reason,
    Severity,
};
use crate::normalise::{Neighbours, PLAINTEXT, Part, Route, normalise_ingress};
use crate::parameters::{self, Parameters, PlaneSettings};
use crate::policy::{AnnotationPolicies, Policies};
use crate::quarantine::refuse_rules;
use crate::references::References;
use crate::shared_map::SharedMap;
use crate::snapshot::{Ingress, IngressSnapshot, Referents, key_of};
use crate::status::{
    Refusals, RouteVerdict, Verdicts, judge_ingress_class, judge_policies_of_ingresses, judge_route,
};

/// An IngressClass of ours with the state that its Ingresses share.
#[derive(Debug)]
pub(super) struct IngressClassOwner {
    context: ClassContext,
    planes: Vec<Plane>,
    hosts: Hosts,
    fallbacks: HostFallbacks,
    /// The Ingresses with `spec.tls`.
    with_tls: BTreeSet<IngressByAge>,
    certificate_problems: Vec<Problem>,
    /// The problems of Ingresses, apart from certificates and references; only Ingresses with a problem have an
    /// entry.
    ingress_problems: BTreeMap<ObjectName, Vec<Problem>>,
    /// The problems at the last translation, of Ingresses that were read again since.
    former_problems: BTreeMap<ObjectName, Vec<Problem>>,
    /// The Ingresses that are served.
    ingresses: SharedMap<Arc<ObjectKey>, ()>,
    /// Parts of Ingresses without requests.
    shadowed: ShadowedParts,
    /// The Ingresses whose annotations name a ConfigMap, by its name.
    with_config_map: BTreeSet<(ObjectName, ObjectName)>,
    /// The attachments to all ports, and to each port alone.
    attachments: Arc<Attachments>,
    attachments_by_port: [Arc<Attachments>; INGRESS_PORTS.len()],
    policies: ClassPolicies,
    canaries: Canaries,
}

/// The specification of the class and its parameters.
#[derive(Debug)]
struct ClassContext {
    key: Arc<ObjectKey>,
    class: Arc<str>,
    layout: Layout,
    is_served: bool,
    parameters: Parameters,
    executors: Executors,
    ownership: HostOwnership,
    /// The annotations of other controllers that change Ingresses.
    dialects: Vec<AnnotationDialect>,
    settings: PlaneSettings,
    infrastructure: Option<Arc<Infrastructure>>,
    problems: Vec<Problem>,
}

/// The translation of a class of another controller: it has no data plane.
pub(super) fn of_another_controller(snapshot: &IngressSnapshot, options: &Options) -> Option<Translation> {
    let is_ours = judge_ingress_class(&snapshot.class, &snapshot.referents.proxies, options).is_some();
    (!is_ours).then(|| Translation {
        data_planes: BTreeMap::new(),
        stream_planes: BTreeMap::new(),
        infrastructure: None,
        attached: None,
        feed_cpu_percent: parameters::WHOLE_CORE,
        has_unusable_parameters: false,
        verdicts: verdicts(SharedMap::new(), Problems::new()),
    })
}

fn verdicts(ingresses: SharedMap<Arc<ObjectKey>, ()>, problems: Problems) -> Verdicts {
    Verdicts {
        gateway: None,
        listener_sets: BTreeMap::new(),
        routes: SharedMap::new(),
        policies: BTreeMap::new(),
        ingresses,
        problems,
    }
}

impl ClassContext {
    fn new(snapshot: &IngressSnapshot, options: &Options) -> Self {
        let (class, proxies) = (&snapshot.class, &snapshot.referents.proxies);
        let verdict = judge_ingress_class(class, proxies, options);
        let is_served = matches!(&verdict, Some(verdict) if verdict.is_served());
        let parameters = parameters::of_ingress_class(class, proxies, options);
        let parameters = parameters.ok().filter(|_| is_served).unwrap_or_default();
        let key = Arc::new(key_of(Kind::IngressClass, &class.metadata));
        let settings = parameters::ingress_settings(class, proxies);
        let infrastructure = match &parameters {
            Parameters::Managed(managed) => {
                Some(Arc::new(infrastructure::of_ingress_class(&key, class, managed)))
            }
            Parameters::Unset | Parameters::Attached(_) => None,
        };
        let mut problems = verdict.map(|verdict| verdict.problems).unwrap_or_default();
        problems.extend(several_defaults(&key, &snapshot.default_classes));
        Self {
            class: Arc::from(&*key.name.name),
            key,
            layout: parameters.layout(options),
            is_served,
            parameters,
            // No sidecar serves Ingresses: neither streams, nor TLS in front of PingSIX.
            executors: Executors { stream_proxy: false, tls_front: false, ..executors(options, None) },
            ownership: settings.host_ownership,
            dialects: settings.annotations,
            settings: PlaneSettings::of_ingress_class(class, proxies, options),
            infrastructure,
            problems,
        }
    }

    /// Whether another context serves Ingresses in the same way.
    fn serves_like(&self, other: &Self) -> bool {
        self.class == other.class
            && self.layout == other.layout
            && self.is_served == other.is_served
            && self.ownership == other.ownership
            && self.dialects == other.dialects
            && self.settings == other.settings
            && self.parameters.hides_clients() == other.parameters.hides_clients()
    }

    /// Whether hosts with a certificate are redirected to HTTPS by default.
    fn redirects_to_tls(&self) -> bool {
        self.dialects.contains(&AnnotationDialect::IngressNginx)
    }

    /// Reads the annotations of an Ingress.
    fn annotated<'i>(&self, ingress: &'i Ingress) -> Annotated<'i> {
        Annotated::read(ingress, &self.dialects)
    }

    /// The data planes, with these certificates.
    fn planes(&self, certificates: &[ServedCertificate]) -> Vec<Plane> {
        ingress_planes(&self.class, self.layout, certificates, &self.settings)
    }
}

impl Owner for IngressClassOwner {
    type Snapshot = IngressSnapshot;

    fn referents(snapshot: &IngressSnapshot) -> &Referents {
        &snapshot.referents
    }

    fn new(snapshot: &IngressSnapshot, references: &References<'_>, options: &Options) -> Self {
        let context = ClassContext::new(snapshot, options);
        let served = || snapshot.ingresses.iter().filter(|_| context.is_served);
        let with_tls = served().filter(|(_, ingress)| !tls_of(ingress).is_empty());
        let with_tls: BTreeSet<IngressByAge> =
            with_tls.map(|(name, ingress)| IngressByAge::of(name, ingress)).collect();
        let (mut hosts, mut canaries) =
            (Hosts::new(context.ownership, context.redirects_to_tls()), Canaries::default());
        let mut annotation_policies = AnnotationPolicies::default();
        let mut with_config_map = BTreeSet::new();
        for (name, ingress) in served() {
            let annotated = context.annotated(ingress);
            hosts.add_first(name, &annotated);
            canaries.replace(name, Some(&annotated));
            with_config_map
                .extend(annotated.annotations.custom_headers.clone().map(|named| (named, name.clone())));
            let policies = annotated.annotations.policies(name);
            if !policies.is_empty() {
                annotation_policies.insert(ingress_key(name), policies);
            }
        }
        hosts.find_overlaps();
        let policies = ClassPolicies::new(snapshot, annotation_policies, references, &context.settings);
        let mut certificate_problems = Vec::new();
        let certificates =
            certificates(snapshot, (with_tls.iter(), &hosts), references, &mut certificate_problems);
        let ingresses = served().map(|(name, _)| (ingress_key(name), ())).collect();
        Self {
            planes: context.planes(&certificates),
            context,
            hosts,
            fallbacks: HostFallbacks::default(),
            with_tls,
            certificate_problems,
            ingress_problems: BTreeMap::new(),
            former_problems: BTreeMap::new(),
            ingresses,
            shadowed: ShadowedParts::default(),
            attachments: Arc::new(Attachments::to_ports(0..INGRESS_PORTS.len())),
            attachments_by_port: std::array::from_fn(|port| Arc::new(Attachments::to_ports([port]))),
            policies,
            canaries,
            with_config_map,
        }
    }

    fn take_routes(&mut self, snapshot: &IngressSnapshot, mut take: impl FnMut(&Self, Source, Vec<Route>)) {
        if !self.context.is_served {
            return;
        }
        let keys: Vec<Arc<ObjectKey>> = self.ingresses.keys().cloned().collect();
        for (key, ingress) in keys.into_iter().zip(snapshot.ingresses.values()) {
            let routes = self.read(&key, ingress, snapshot);
            if self.context.ownership == HostOwnership::OldestNamespace {
                self.fallbacks.replace(std::iter::empty(), &routes);
            }
            take(self, Source::Object(key), routes);
        }
        for (host, fallback) in self.take_fallbacks(snapshot) {
            take(self, Source::Host(host), fallback.into_iter().collect());
        }
    }

    fn planes(&self) -> &[Plane] {
        &self.planes
    }

    fn policies(&self) -> &Policies {
        &self.policies.policies
    }

    fn listeners(&self) -> &[Listener] {
        &[]
    }

    fn stream_listeners(&self) -> Option<StreamListeners<'_>> {
        None
    }

    fn is_refused(&self) -> bool {
        !self.context.is_served
    }

    fn attach(
        &self,
        route: Route,
        references: &References<'_>,
        (backends, shared): (&mut Backends, &mut Interners),
        problems: &mut Vec<Problem>,
    ) -> RouteInput {
        let route = route.without_served_lacks(self.context.executors);
        let policies = self.policies();
        let of_route = policies.for_ingress(&route.key);
        let rules = if let Part::HostFallback(_) = route.part {
            Box::from([ResolvedRule::answering(404)])
        } else {
            // Redirects to HTTPS and to another host come before policies, which are for the requests that are served.
            let is_redirect =
                route.ingress_port == Some(PLAINTEXT) || matches!(route.part, Part::HostRedirect(_));
            let rules = route.rules.iter().map(|rule| {
                let share = |chain| shared.chains.share(chain);
                let ports = 0..INGRESS_PORTS.len();
                let chains = policies.chains_of_ingress(&route, rule, ports, share);
                let chains = if is_redirect { chains.without_chains() } else { chains };
                ResolvedRule { chains, ..references.resolve_rule(&route, rule, of_route, backends, problems) }
            });
            rules.collect()
        };
        let attachments = match route.ingress_port {
            None => &self.attachments,
            Some(port) => &self.attachments_by_port[usize::from(port)],
        };
        let attachments = attachments.clone();
        RouteInput::new(route, rules, attachments)
    }

    fn judge_policies(
        &mut self,
        inputs: &[Arc<RouteInput>],
        references: &References<'_>,
    ) -> BTreeSet<ObjectKey> {
        let of_class = (&self.context.key, &self.ingresses, self.context.parameters.hides_clients());
        let is_canary = |target: &ObjectKey| self.canaries.contains(&target.name);
        self.policies.judged =
            judge_policies_of_ingresses(self.policies(), of_class, is_canary, inputs, references);
        // Ingresses have no conditions that name policies.
        BTreeSet::new()
    }

    fn judge(
        &self,
        index: usize,
        input: &RouteInput,
        refusals: &Refusals,
        _: &mut Interners,
    ) -> (Option<RouteVerdict>, RouteOutcome) {
        let mut problems = Vec::new();
        // An Ingress has no conditions.
        judge_route(index, input, refusals, None, &mut problems);
        (None, RouteOutcome { problems, ..RouteOutcome::default() })
    }

    fn update(&mut self, update: OwnerUpdate<'_, Self>) -> Result<OwnerDiff, FullTranslationNeeded> {
        let OwnerUpdate { before: last, snapshot, diff, references, options, limit, slab, planes, to_attach } =
            update;
        let has_new_context = diff.of_proxies
            || !Arc::ptr_eq(&last.class, &snapshot.class)
            || last.default_classes != snapshot.default_classes;
        if has_new_context {
            let context = ClassContext::new(snapshot, options);
            if !context.serves_like(&self.context) {
                return Err(FullTranslationNeeded);
            }
            self.context = context;
        }
        let differences = difference(&snapshot.ingresses, &last.ingresses);
        if !self.context.is_served {
            return Ok(OwnerDiff { routes: Vec::new(), has_new_context, policies: BTreeSet::new() });
        }
        if differences.len() > limit {
            return Err(FullTranslationNeeded);
        }
        let mut read: BTreeSet<ObjectName> = BTreeSet::new();
        let mut former = FormerHosts::new();
        let mut has_other_tls = !diff.secrets.is_empty();
        for ObjectDiff { name, before, now } in differences {
            let (before, now) = (before.as_deref(), now.as_deref());
            let annotated = now.map(|now| self.context.annotated(now));
            self.policies.replace_annotations(ingress_key(&name), annotated.as_ref());
            // The hosts are those before and after the change.
            let ingresses: Vec<&Ingress> = [before, now].into_iter().flatten().collect();
            if self.canaries.replace(&name, annotated.as_ref()) {
                let sharing = ingresses.iter().map(|ingress| self.hosts.sharing(&name.namespace, ingress));
                read.extend(sharing.flatten());
            } else {
                read.extend(self.canaries.sharing(&name.namespace, &ingresses));
            }
            self.replace_config_map((&name, before), annotated.as_ref());
            let has_other_hosts = self.hosts.replace(&name, before, annotated.as_ref(), &mut former);
            has_other_tls |= self.replace_tls(&name, before, now) || has_other_hosts;
            match (before, now) {
                (None, Some(_)) => {
                    self.ingresses.insert(ingress_key(&name), ());
                }
                (Some(_), None) => {
                    self.ingresses.remove(&ingress_key(&name));
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
            read.insert(name);
        }
        for config_map in &diff.config_maps {
            let first = (config_map.clone(), ObjectName::new("", ""));
            let named = self.with_config_map.range(first..).take_while(|(named, _)| named == config_map);
            read.extend(named.map(|(_, ingress)| ingress.clone()));
        }
        let ChangedPolicies { contents, targets } = self.policies.update((last, snapshot), diff, references);
        to_attach.extend(targets.iter().flat_map(|target| slab.of_target(target)));
        // A policy that annotations stand for closes the Ingress, if PingSIX cannot honour it.
        let annotated = targets.iter().filter(|target| self.policies.annotations.contains_key(*target));
        read.extend(annotated.map(|target| target.name.clone()));
        has_other_tls |= self.hosts.refresh_overlaps(former, limit, &mut read)?;
        for key in diff.quarantined.iter().filter(|key| key.kind == Kind::Ingress) {
            has_other_tls = true;
            read.insert(key.name.clone());
        }
        let mut routes = Vec::with_capacity(read.len());
        for name in read {
            let key = ingress_key(&name);
            let now = if let Some(ingress) = snapshot.ingresses.get(&name) {
                self.read(&key, ingress, snapshot)
            } else {
                self.note_problems(&name, Vec::new());
                Vec::new()
            };
            let source = Source::Object(key);
            if self.context.ownership == HostOwnership::OldestNamespace {
                self.fallbacks.replace(slab.of_source(&source), &now);
            }
            routes.push((source, now));
        }
        for (host, fallback) in self.take_fallbacks(snapshot) {
            routes.push((Source::Host(host), fallback.into_iter().collect()));
        }
        if has_other_tls {
            self.replace_certificates(snapshot, references, planes);
        }
        Ok(OwnerDiff { routes, has_new_context, policies: contents })
    }

    fn targets(&self) -> impl Iterator<Item = &ObjectKey> {
        // Verdicts on policies of Ingresses need no routes.
        self.policies().targets().filter(|target| target.kind == Kind::Service)
    }

    fn translation(
        &mut self,
        _: &IngressSnapshot,
        _: &References<'_>,
        served: RouteResults<'_>,
    ) -> Translation {
        let RouteResults { data_planes, stream_planes, problems, mut recomputed, .. } = served;
        let judged = &self.policies.judged;
        let policies = judged.verdicts.clone();
        self.shadowed.update(provenances(&data_planes), problems);
        for (ingress, before) in std::mem::take(&mut self.former_problems) {
            problems.replace(&before, self.ingress_problems.get(&ingress).map_or(&[], Vec::as_slice));
        }
        let of_class = self.context.problems.iter().chain(&self.certificate_problems);
        recomputed.extend(judged.problems.iter().chain(of_class).cloned());
        problems.replace_recomputed(recomputed);
        Translation {
            data_planes,
            stream_planes,
            infrastructure: self.context.infrastructure.clone(),
            attached: self.context.parameters.attached().cloned(),
            feed_cpu_percent: self.context.settings.feed_cpu_percent,
            has_unusable_parameters: !self.context.is_served,
            verdicts: Verdicts { policies, ..verdicts(self.ingresses.clone(), problems.all().clone()) },
        }
    }
}

impl IngressClassOwner {
    /// Reads an Ingress. Returns its served routes, and keeps its problems.
    fn read(&mut self, key: &Arc<ObjectKey>, ingress: &Ingress, snapshot: &IngressSnapshot) -> Vec<Route> {
        let mut problems = Vec::new();
        self.hosts.report(key, ingress, &mut problems);
        problems.extend(warn_of_annotations(key, ingress, &self.context.dialects));
        let mut annotations = annotations_of(&self.context, &self.policies, key, ingress);
        let more_hosts = self.hosts.more_hosts(key);
        let tls_hosts = if annotations.https.with_tls || !more_hosts.redirects.is_empty() {
            self.hosts.tls_hosts(key, ingress)
        } else {
            BTreeSet::new()
        };
        // A canary has no requests of its own, and a redirect comes before the one to HTTPS.
        let is_served = annotations.canary.is_none() && !annotations.redirects();
        let is_lost = self.context.layout == Layout::Shared && is_served;
        if is_lost && annotations.redirects_to_https(!tls_hosts.is_empty()) {
            annotations.lose_https_redirect();
        }
        add_custom_headers(&mut annotations, key, &snapshot.referents);
        problems.extend(annotations.problems_of(key));
        if annotations.canary.is_some() {
            let sharing = self.hosts.sharing(&key.name.namespace, ingress);
            let sharing: Vec<&Ingress> =
                sharing.iter().filter_map(|name| snapshot.ingresses.get(name)).map(AsRef::as_ref).collect();
            self.canaries.report(key, ingress, &sharing, &mut problems);
        }
        let led_hosts =
            if annotations.redirects_hosts { self.hosts.led_hosts(key, ingress) } else { BTreeSet::new() };
        let neighbours = Neighbours {
            led_hosts,
            canaries: &self.canaries.of_namespace(&key.name.namespace),
            more_hosts,
            tls_hosts,
            keeps_scheme: self.context.layout == Layout::PerPort,
        };
        let mut routes = normalise_ingress(key, ingress, &annotations, &neighbours, &mut problems);
        routes.retain(|route| !self.hosts.is_refused(route));
        self.note_problems(&key.name, problems);
        let quarantine = &snapshot.referents.quarantine;
        routes.into_iter().map(|route| refuse_rules(quarantine, route)).collect()
    }

    /// Replaces the problems of an Ingress.
    fn note_problems(&mut self, ingress: &ObjectName, now: Vec<Problem>) {
        let before = if now.is_empty() {
            self.ingress_problems.remove(ingress)
        } else {
            self.ingress_problems.insert(ingress.clone(), now)
        };
        self.former_problems.entry(ingress.clone()).or_insert_with(|| before.unwrap_or_default());
    }

    /// The fallback routes that may have changed.
    fn take_fallbacks(&mut self, snapshot: &IngressSnapshot) -> Vec<(Hostname, Option<Route>)> {
        self.fallbacks.take(|key| {
            let ingress = snapshot.ingresses.get(&key.name)?;
            let mut annotations = annotations_of(&self.context, &self.policies, key, ingress);
            add_custom_headers(&mut annotations, key, &snapshot.referents);
            let routes =
                normalise_ingress(key, ingress, &annotations, &Neighbours::default(), &mut Vec::new());
            let default = routes.into_iter().find(|route| route.part == Part::DefaultBackend)?;
            Some(refuse_rules(&snapshot.referents.quarantine, default))
        })
    }

    /// Determines the certificate of each server name again.
    fn replace_certificates(
        &mut self,
        snapshot: &IngressSnapshot,
        references: &References<'_>,
        planes: &mut [LoweredPlane],
    ) {
        self.certificate_problems.clear();
        let with_tls = self.with_tls.iter();
        let shown =
            certificates(snapshot, (with_tls, &self.hosts), references, &mut self.certificate_problems);
        let now = self.context.planes(&shown);
        change_certificates(planes, &self.planes, &now);
        self.planes = now;
    }

    /// Replaces the ConfigMap that the annotations of an Ingress name.
    fn replace_config_map(
        &mut self,
        (name, before): (&ObjectName, Option<&Ingress>),
        now: Option<&Annotated<'_>>,
    ) {
        let before = before.and_then(|before| self.context.annotated(before).annotations.custom_headers);
        if let Some(before) = before {
            self.with_config_map.remove(&(before, name.clone()));
        }
        let now = now.and_then(|now| now.annotations.custom_headers.clone());
        self.with_config_map.extend(now.map(|now| (now, name.clone())));
    }

    /// Replaces `spec.tls` of an Ingress. Returns whether the entries or the age changed.
    fn replace_tls(&mut self, name: &ObjectName, before: Option<&Ingress>, now: Option<&Ingress>) -> bool {
        let [old, new] = [before, now].map(|ingress| {
            let ingress = ingress.filter(|ingress| !tls_of(ingress).is_empty())?;
            Some((IngressByAge::of(name, ingress), tls_of(ingress)))
        });
        if old == new {
            return false;
        }
        if let Some((key, _)) = old {
            self.with_tls.remove(&key);
        }
        self.with_tls.extend(new.map(|(key, _)| key));
        true
    }
}

/// The annotations of an Ingress, with the problems of the policies that they stand for.
fn annotations_of(
    context: &ClassContext,
    policies: &ClassPolicies,
    key: &ObjectKey,
    ingress: &Ingress,
) -> IngressAnnotations {
    let Annotated { mut annotations, .. } = context.annotated(ingress);
    for (protects, refusal) in policies.policies.refusals_of_annotations(key) {
        let field = refusal.at.to_string();
        let field = field.split(['.', '[']).nth(1).unwrap_or_default();
        annotations.add_problem(protects, field, refusal.message.clone());
    }
    if context.parameters.hides_clients() {
        annotations.limit_addresses();
    }
    annotations
}

fn ingress_key(name: &ObjectName) -> Arc<ObjectKey> {
    Arc::new(ObjectKey { kind: Kind::Ingress, name: name.clone() })
}

/// The warning about several default classes.
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
