//! The output of the pipeline for manifests, with the places of the findings.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pingsix_gateway_api::Pipeline;
use pingsix_gateway_api::pipeline::{self, Output};
use pingsix_translate::status::{ConditionType, ListenerVerdict, ParentVerdict, Reason, StatusMerge};
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey, Objects, Options};
use serde_json::{Value, json};

use crate::finding::{Finding, Level, Tally, reason};
use crate::manifest::{Manifests, missing_endpoints};
use crate::schema::misspelled;

/// The result of all manifests.
#[derive(Debug, Default)]
pub(crate) struct Translated {
    pub(crate) output: Output,
    /// All objects.
    pub(crate) objects: Objects,
    /// Findings about manifests and objects; sorted, without repetitions.
    pub(crate) findings: Vec<Finding>,
}

impl Translated {
    pub(crate) fn new(manifests: &Manifests, options: &Options) -> Self {
        let pipeline = Pipeline::new(options.clone()).at(Timestamp::now());
        Self::of(manifests, pipeline.run(&manifests.objects), options)
    }

    /// An output of the objects of manifests, with all findings.
    pub(crate) fn of(manifests: &Manifests, output: Output, options: &Options) -> Self {
        let mut findings = manifests.findings();
        findings.extend(missing_endpoints::find(manifests, &output.findings));
        add_without_repeated(&mut findings, manifests.place(&output.findings));
        if !options.stream {
            findings.extend(hints_at_streams(manifests, &output));
        }
        let broken = consequences_of_listeners(&output);
        findings.retain(|finding| !broken.contains(&(finding.object.clone(), finding.field.clone())));
        drop_repetitions(&mut findings);
        Self { output, objects: manifests.objects.clone(), findings }
    }

    /// Adds an error to the findings of an input without an object to judge. A pipeline with the wrong input would pass
    /// otherwise.
    pub(crate) fn require_verdicts(&mut self, options: &Options) {
        if Tally::of(&self.findings).errors > 0 || has_verdicts(&self.output) {
            return;
        }
        let mut judged = Kind::ALL.iter().copied().filter(|kind| is_judged(*kind));
        let has_objects = judged.clone().any(|kind| self.objects.of_kind(kind).next().is_some());
        let finding = if has_objects {
            Finding::empty_input(format!(
                "No class, Gateway, Ingress, route or policy of the input is served by controller {}, so nothing was \
                 checked. --controller-name sets another controller.",
                options.controller_name
            ))
        } else {
            let kinds: Vec<&str> = judged.by_ref().map(Kind::as_str).collect();
            Finding::empty_input(format!(
                "The input has none of these to check: class of this controller, {}.",
                kinds.join(", ")
            ))
        };
        self.findings.push(finding);
        self.findings.sort();
    }

    /// The status of each object that gets one, as it would stand in the cluster but for times and addresses.
    pub(crate) fn statuses(&self, options: &Options) -> Vec<Value> {
        let (merge, none) = (StatusMerge::without_times(&options.controller_name), Value::Null);
        let mut statuses = Vec::new();
        for class in &self.output.classes {
            statuses.push(with_status(&class.key, &merge.gateway_class(&none, class)));
        }
        for proxy in &self.output.proxies {
            statuses.push(with_status(&proxy.key, &merge.pingsix_proxy(&none, proxy)));
        }
        for verdicts in &self.output.gateways {
            if let Some(gateway) = &verdicts.gateway {
                statuses.push(with_status(&gateway.key, &merge.gateway(&none, gateway)));
            }
            for (key, set) in &verdicts.listener_sets {
                statuses.push(with_status(key, &merge.listener_set(&none, set)));
            }
        }
        for (key, verdict) in &self.output.routes {
            statuses.push(with_status(key, &merge.route(&none, verdict)));
        }
        for (key, verdicts) in &self.output.policies {
            statuses.push(with_status(key, &merge.policy(&none, verdicts)));
        }
        statuses
    }
}

fn with_status(key: &ObjectKey, status: &Value) -> Value {
    let api_version = key.kind.api_version();
    let metadata = if Kind::is_namespaced(key.kind) {
        json!({ "namespace": &*key.name.namespace, "name": &*key.name.name })
    } else {
        json!({ "name": &*key.name.name })
    };
    json!({ "apiVersion": api_version, "kind": key.kind.as_str(), "metadata": metadata, "status": status })
}

/// Whether an object of the input got a verdict. Objects of other controllers get none; Services, Secrets and the like are
/// judged only as references of others.
fn has_verdicts(output: &Output) -> bool {
    !output.classes.is_empty()
        || !output.proxies.is_empty()
        || !output.owners.is_empty()
        || !output.routes.is_empty()
        || !output.policies.is_empty()
}

/// Whether objects of a kind get verdicts if they belong to this controller.
fn is_judged(kind: Kind) -> bool {
    kind.is_route()
        || kind.is_policy()
        || matches!(kind, Kind::Gateway | Kind::ListenerSet | Kind::Ingress | Kind::PingsixProxy)
}

/// The problems of stream routes hold for PingSIX alone, and the sidecar may serve them.
fn hints_at_streams(manifests: &Manifests, output: &Output) -> Vec<Finding> {
    let with_streams = output.gateways.iter().filter(|verdicts| {
        let gateway = verdicts.gateway.as_ref().map(|gateway| gateway.key.name.clone());
        gateway.is_some_and(|gateway| output.streams.contains_key(&DataPlaneKey::Stream { gateway }))
    });
    let served: BTreeSet<&ObjectKey> =
        with_streams.flat_map(|verdicts| verdicts.routes.keys()).map(|route| &**route).collect();
    let kinds = Kind::routes().filter(|kind| !kind.has_requests());
    let routes = kinds.flat_map(|kind| manifests.objects.of_kind(kind)).map(|route| route.key());
    let unserved = routes.filter(|key| !served.contains(key));
    let hints = unserved.map(|object| {
        let message = format!("--stream translates {}s too, for the sidecar beside PingSIX.", object.kind);
        Finding::new(Level::Info, reason::NO_STREAMS, message).about(&object, manifests.location(&object))
    });
    hints.collect()
}

/// The routes with the fields of parentRefs whose listeners are all refused. The findings of the listeners say why.
fn consequences_of_listeners(output: &Output) -> BTreeSet<(String, String)> {
    let mut consequences = BTreeSet::new();
    for verdicts in &output.gateways {
        let of_gateway = verdicts.gateway.iter().map(|gateway| (&gateway.key, &gateway.listeners));
        let of_sets = verdicts.listener_sets.iter().map(|(key, set)| (key, &set.listeners));
        let owners: BTreeMap<&ObjectKey, &Vec<ListenerVerdict>> =
            of_gateway.chain(of_sets).map(|(key, listeners)| (&**key, listeners)).collect();
        for (route, verdict) in &verdicts.routes {
            for ParentVerdict { parent_ref, conditions } in verdict.parents.iter() {
                let accepted = conditions.get(ConditionType::Accepted);
                if accepted.is_none_or(|accepted| accepted.reason != Reason::NotAllowedByListeners) {
                    continue;
                }
                let owner = parent_ref.target(&route.name.namespace);
                let listeners = owner.and_then(|owner| owners.get(&owner)).into_iter().copied().flatten();
                let mut selected =
                    listeners.filter(|listener| parent_ref.selects(&listener.name, listener.port));
                if selected.all(|listener| !listener.conditions.is_true(ConditionType::Accepted)) {
                    consequences
                        .insert((route.to_string(), format!("spec.parentRefs[{}]", parent_ref.index)));
                }
            }
        }
    }
    consequences
}

/// Adds the findings about objects, and keeps one of two about one problem of a field. The definition of the kind
/// reports a field that is misspelled, or that an API server cannot read. For a limit, an error about the object has
/// the consequence as well.
fn add_without_repeated(findings: &mut Vec<Finding>, mut of_objects: Vec<Finding>) {
    let is_problem = |finding: &&Finding| {
        let reason = finding.reason.as_str();
        matches!(reason, reason::UNKNOWN_FIELD | reason::DOES_NOT_DECODE | reason::INVALID_FIELD)
    };
    let place = |finding: &Finding| (finding.object.clone(), finding.field.clone());
    let errors = of_objects.iter().filter(|finding| finding.severity == Level::Error);
    let errors: BTreeSet<_> = errors.map(place).collect();
    findings.retain(|problem| problem.reason != reason::INVALID_FIELD || !errors.contains(&place(problem)));
    let problems: BTreeSet<_> = findings.iter().filter(is_problem).map(place).collect();
    let mut unknown: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for problem in findings.iter().filter(|finding| finding.reason == reason::UNKNOWN_FIELD) {
        let (parent, name) = problem.field.rsplit_once('.').unwrap_or(("", &problem.field));
        unknown.entry((problem.object.clone(), parent.to_owned())).or_default().push(name.to_owned());
    }
    of_objects.retain(|finding| {
        let (parent, meant) = finding.field.rsplit_once('.').unwrap_or(("", &finding.field));
        let beside = unknown.get(&(finding.object.clone(), parent.to_owned()));
        let is_misspelled =
            beside.is_some_and(|names| names.iter().any(|name| misspelled(name, [meant]).is_some()));
        finding.field.is_empty() || !(is_misspelled || problems.contains(&place(finding)))
    });
    findings.append(&mut of_objects);
}

/// Sorts findings, and keeps one of those with equal messages, with the fields of the others.
fn drop_repetitions(findings: &mut Vec<Finding>) {
    // Manifests without any EndpointSlice imply that no endpoint is ready.
    let without_slices = findings.iter().filter(|finding| finding.reason == reason::NO_ENDPOINT_SLICES);
    let without_slices: BTreeSet<String> = without_slices.map(|finding| finding.object.clone()).collect();
    let no_endpoints = Reason::NoEndpoints.as_str();
    let is_implied = |object: &str| without_slices.contains(object) || without_slices.contains("");
    findings.retain(|finding| finding.reason != no_endpoints || !is_implied(&finding.object));
    findings.sort();
    findings.dedup();
    let mut first: BTreeMap<Finding, usize> = BTreeMap::new();
    let mut kept: Vec<Finding> = Vec::with_capacity(findings.len());
    let mut others: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for finding in findings.drain(..) {
        let problem = Finding { field: String::new(), ..finding.clone() };
        match first.get(&problem) {
            Some(&index) if OF_REFERENCES.contains(&&*finding.reason) => {
                others.entry(index).or_default().push(finding.field);
            }
            Some(_) | None => {
                first.entry(problem).or_insert(kept.len());
                kept.push(finding);
            }
        }
    }
    for (index, fields) in others {
        let (named, more) = fields.split_at(fields.len().min(NAMED_FIELDS));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let message = &mut kept[index].message;
        *message = format!("{message} The same at {}{more}.", named.join(", "));
    }
    *findings = kept;
}

/// The reasons of references: those of one object that lead to one missing object are one problem.
const OF_REFERENCES: [&str; 6] = [
    Reason::BackendNotFound.as_str(),
    Reason::InvalidCertificateRef.as_str(),
    Reason::RefNotFound.as_str(),
    Reason::RefNotPermitted.as_str(),
    Reason::NoMatchingParent.as_str(),
    pipeline::reason::PARENT_NOT_FOUND,
];

/// The number of fields that a finding names beside its own.
const NAMED_FIELDS: usize = 3;
