//! Flaws that policies of every inherited kind may have.

use crate::crd::{MergeStrategy, PolicyTargetReference, UnreadableField};
use crate::model::{FieldPath, Kind, Reason, Refusal};
use crate::pingsix::validate::{Severity, ValidateOptions, validate};
use crate::pingsix::{Config, Plugins, Service, Upstream};

/// Whether a target hands its policies down to routes.
fn is_wide(target: &PolicyTargetReference) -> bool {
    [Kind::Gateway, Kind::ListenerSet].iter().any(|wide| wide.as_str() == target.kind)
}

/// Flaws of the targets and the strategy. The API server checks the same.
pub(crate) fn target_flaws(target_refs: &[PolicyTargetReference], strategy: MergeStrategy) -> Vec<Refusal> {
    let spec = FieldPath::new("spec");
    let wide = target_refs.iter().filter(|target| is_wide(target)).count();
    let mut flaws = Vec::new();
    let mut flaw = |field, message: String| {
        flaws.push(Refusal::new(spec.child(field), Reason::Invalid, message));
    };
    if target_refs.is_empty() || target_refs.len() > 16 {
        flaw("targetRefs", format!("A policy has 1 to 16 targets, not {}.", target_refs.len()));
    }
    if wide > 0 && wide < target_refs.len() {
        let message = "The targets have to be Gateways and ListenerSets, or routes, not both.";
        flaw("targetRefs", message.to_owned());
    }
    if strategy == MergeStrategy::Overrides && wide == 0 {
        flaw("strategy", "Only policies of Gateways and ListenerSets may override others.".to_owned());
    }
    flaws
}

/// The refusal of a field that cannot be read.
pub(crate) fn unreadable_flaw(UnreadableField { field, message, .. }: &UnreadableField) -> Refusal {
    let at = FieldPath::new(&format!("spec.{field}"));
    Refusal::new(at, Reason::Invalid, format!("The field cannot be read: {message}."))
}

/// Flaws of plugins by the acceptance rules of PingSIX, so that no policy makes PingSIX refuse a configuration. A plugin that
/// PingSIX gets wrong has no effect either.
pub(crate) fn acceptance_flaws(plugins: Plugins, at: &FieldPath) -> Vec<Refusal> {
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
