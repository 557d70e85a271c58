//! Canaries: Ingresses whose backends take a part of the requests of another Ingress.

use pingsix_translate::annotations::CanaryShare;
use serde_json::{Value, json};

use super::annotated::{Annotated, PathEntry, Target};
use crate::migrate::convert::Conversion;
use crate::migrate::report::Reason;

/// A canary for a path.
pub(super) struct Canary<'a> {
    pub(super) ingress: &'a Annotated,
    pub(super) share: &'a CanaryShare,
    pub(super) target: &'a Target,
}

/// The canary for a path of an Ingress: the oldest one of the namespace with the same host, path and type.
pub(super) fn find<'a>(
    ingresses: &'a [Annotated],
    main: &Annotated,
    host: &str,
    path: &PathEntry,
) -> Option<Canary<'a>> {
    let canaries = ingresses.iter().filter(|other| !other.is_closed && other.namespace() == main.namespace());
    canaries.into_iter().find_map(|ingress| {
        let share = ingress.read.canary.as_ref()?;
        let own = like(ingress, host, path)?;
        Some(Canary { ingress, share, target: own.target.as_ref()? })
    })
}

/// The path of an Ingress with the host, path and type of another one.
fn like<'a>(ingress: &'a Annotated, host: &str, path: &PathEntry) -> Option<&'a PathEntry> {
    let mut paths = ingress.entries.iter().filter(|entry| entry.host == host).flat_map(|entry| &entry.paths);
    paths.find(|own| own.path == path.path && own.kind == path.kind)
}

/// Reports the paths of a canary that take no requests.
pub(super) fn note_unused(canary: &Annotated, ingresses: &[Annotated], conversion: &mut Conversion) {
    for entry in &canary.entries {
        for path in &entry.paths {
            let mut mains = ingresses.iter().filter(|one| one.read.canary.is_none());
            let is_taken = mains.any(|one| {
                like(one, &entry.host, path).is_some()
                    && find(ingresses, one, &entry.host, path)
                        .is_some_and(|found| found.ingress.key == canary.key)
            });
            if !is_taken {
                let message = "No other Ingress of the namespace has the host, path and type, or an older canary takes the \
                               requests, so this one gets none, as before.";
                conversion.report.limited(&path.place, Reason::NoEffect, message);
            }
        }
    }
}

/// The rules for one path: items of `headers` of the match, and the backends. The rule for the rest comes last.
pub(super) fn divide(share: &CanaryShare, main: &Value, canary: &Value) -> Vec<(Option<Value>, Vec<Value>)> {
    let mut rules = Vec::with_capacity(3);
    if let Some((name, value)) = &share.header {
        let mut with = |value: &str, backend: &Value| {
            let header = json!({ "type": "Exact", "name": name, "value": value });
            rules.push((Some(json!([header])), vec![backend.clone()]));
        };
        if let Some(value) = value {
            with(value, canary);
        } else {
            with("always", canary);
            with("never", main);
        }
    }
    let weighted = |backend: &Value, weight: u32| {
        let mut backend = backend.clone();
        backend["weight"] = json!(weight);
        backend
    };
    let rest = match share.weight {
        0 => vec![main.clone()],
        weight => vec![weighted(main, share.total - weight), weighted(canary, weight)],
    };
    rules.push((None, rest));
    rules
}
