//! Canaries: Ingresses whose backends take a part of the requests of another Ingress.

use pingsix_translate::annotations::CanaryShare;
use serde_json::{Value, json};

use super::annotated::{Annotated, PathEntry, Target};

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
        let paths = ingress.entries.iter().filter(|entry| entry.host == host).flat_map(|entry| &entry.paths);
        let same = paths.into_iter().find(|own| own.path == path.path && own.kind == path.kind)?;
        Some(Canary { ingress, share, target: same.target.as_ref()? })
    })
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
