//! The output of the pipeline for manifests, with the places of the findings.

use std::collections::BTreeSet;

use jiff::Timestamp;
use pingsix_gateway_api::IncrementalPipeline;
use pingsix_gateway_api::pipeline::Output;
use pingsix_translate::status::Reason;
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey, Objects, Options};

use crate::finding::{Finding, Level, Tally, reason};
use crate::manifest::Manifests;

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
        Self::again(manifests, &mut IncrementalPipeline::new(options.clone()))
    }

    /// As [`Self::new`], with the state of the last time.
    pub(crate) fn again(manifests: &Manifests, pipeline: &mut IncrementalPipeline) -> Self {
        let output = pipeline.run(&manifests.objects, Some(Timestamp::now()));
        let mut findings = manifests.findings.clone();
        let of_objects = output.findings.iter();
        findings.extend(of_objects.map(|one| Finding::of(one, manifests.location(&one.object))));
        if !pipeline.options().stream {
            findings.extend(hints_at_streams(manifests, &output));
        }
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
            Finding::nothing_to_check(format!(
                "No class, Gateway, Ingress, route or policy of the input is served by controller {}, so nothing was \
                 checked. --controller-name sets another controller.",
                options.controller_name
            ))
        } else {
            let kinds: Vec<&str> = judged.by_ref().map(Kind::as_str).collect();
            Finding::nothing_to_check(format!(
                "The input has none of these to check: class of this controller, {}.",
                kinds.join(", ")
            ))
        };
        self.findings.push(finding);
        self.findings.sort();
    }
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
    let routes = manifests.objects.routes().map(|route| route.key());
    let unserved = routes.filter(|key| !key.kind.has_requests() && !served.contains(key));
    let hints = unserved.map(|object| Finding {
        place: manifests.location(&object).cloned(),
        object: object.to_string(),
        field: String::new(),
        severity: Level::Info,
        reason: reason::NO_STREAMS.to_owned(),
        message: format!("--stream translates {}s too, for the sidecar beside PingSIX.", object.kind),
    });
    hints.collect()
}

/// Sorts findings, and keeps one of those that say the same.
fn drop_repetitions(findings: &mut Vec<Finding>) {
    // Manifests without any EndpointSlice imply that no endpoint is ready.
    let without_slices = findings.iter().filter(|finding| finding.reason == reason::NO_ENDPOINT_SLICES);
    let without_slices: BTreeSet<String> = without_slices.map(|finding| finding.object.clone()).collect();
    let no_endpoints = Reason::NoEndpoints.as_str();
    findings.retain(|finding| finding.reason != no_endpoints || !without_slices.contains(&finding.object));
    findings.sort();
    findings.dedup();
}
