//! Refusals that policies of every inherited kind may have.

use crate::crd::{MergeStrategy, PolicyTargetReference, UnreadableField};
use crate::model::{FieldPath, Kind, Reason, Refusal};
use crate::pingsix::validate::{Severity, ValidateOptions, validate};
use crate::pingsix::{Config, Plugins, Service, Upstream};

/// Refusals of the targets and the strategy. The API server checks the same.
pub(crate) fn target_refusals(
    target_refs: &[PolicyTargetReference],
    strategy: MergeStrategy,
) -> Vec<Refusal> {
    let spec = FieldPath::new("spec");
    let count = |is_one: fn(&PolicyTargetReference) -> bool| {
        target_refs.iter().filter(|target| is_one(target)).count()
    };
    let is_ingress = |target: &PolicyTargetReference| target.kind == Kind::Ingress.as_str();
    let (wide, ingresses) = (count(PolicyTargetReference::is_wide), count(is_ingress));
    let mut refusals = Vec::new();
    let mut refuse =
        |at: FieldPath, message: String| refusals.push(Refusal::new(at, Reason::Invalid, message));
    if target_refs.is_empty() || target_refs.len() > 16 {
        let message = format!("A policy has 1 to 16 targets, not {}.", target_refs.len());
        refuse(spec.child("targetRefs"), message);
    }
    if [wide, ingresses].iter().any(|count| (1..target_refs.len()).contains(count)) {
        let message = "The targets have to be Gateways and ListenerSets, or routes, or Ingresses.";
        refuse(spec.child("targetRefs"), message.to_owned());
    }
    for (index, target) in target_refs.iter().enumerate() {
        let has_section = target.section_name.as_deref().is_some_and(|name| !name.is_empty());
        if has_section && target.kind == Kind::Ingress.as_str() {
            let at = spec.child("targetRefs").index(index).child("sectionName");
            refuse(at, "An Ingress has no sections.".to_owned());
        }
    }
    if strategy == MergeStrategy::Overrides && wide == 0 {
        let message = "Only policies of Gateways and ListenerSets may override others.";
        refuse(spec.child("strategy"), message.to_owned());
    }
    refusals
}

/// The refusal of a field that cannot be read.
pub(crate) fn unreadable_refusal(UnreadableField { field, message, .. }: &UnreadableField) -> Refusal {
    let at = FieldPath::new(&format!("spec.{field}"));
    Refusal::new(at, Reason::Invalid, format!("The field cannot be read: {message}."))
}

/// Refusals of plugins by the acceptance rules of PingSIX, so that no policy makes PingSIX refuse a configuration. A
/// plugin that PingSIX gets wrong has no effect either.
pub(crate) fn acceptance_refusals(plugins: Plugins, at: &FieldPath) -> Vec<Refusal> {
    let service = Service { plugins, upstream: Some(Box::new(Upstream::default())), ..Service::default() };
    let mut config = Config::new();
    config.insert("policy", service);
    let violations = validate(&config, &ValidateOptions::default()).into_iter();
    let of_plugins = violations.filter(|violation| {
        violation.severity >= Severity::Misbehaves && violation.field.starts_with("plugins")
    });
    of_plugins
        .map(|violation| Refusal::new(at.clone(), Reason::UnsupportedValue, violation.message))
        .collect()
}
