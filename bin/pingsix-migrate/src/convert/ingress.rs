//! Ingresses of ingress-nginx and of APISIX become HTTPRoutes with policies, or keep their annotations in a class that
//! reads them.
//!
//! ```text
//! Ingresses ──► chosen ──► annotated ──► verdicts ──┬─► hosts, plugins, tls, services, passthrough, canary, paths ──► rules ──► routes
//!               dialect                             └─► keep (--keep-ingress)
//! ```
//!
//! Ingresses of other controllers stay as they are. So do those of our own classes, unless an annotation that the class does
//! not read may protect them.

mod annotated;
mod canary;
mod chosen;
mod dialect;
mod exposure;
mod hosts;
mod keep;
mod passthrough;
mod paths;
mod plugin_annotations;
mod plugins;
mod precedence;
mod routes;
mod rules;
mod scope;
mod services;
mod tls;
mod tls_hosts;
mod verdicts;

use pingsix_translate::{Kind, ObjectKey};
use serde_json::{Map, Value};

use self::annotated::Annotated;
pub(super) use self::chosen::is_foreign;
use self::chosen::{Classes, Owner, loss_without};
use self::passthrough::Passthrough;
use self::tls_hosts::TlsHosts;
use super::Draft;
use crate::report::{Place, Reason};
use crate::source::Sources;

/// The namespaces of the Ingresses that are converted.
pub(super) fn namespaces(sources: &Sources) -> impl Iterator<Item = String> {
    let classes = Classes::of(sources);
    sources
        .kept_of(Kind::Ingress)
        .filter(move |(_, ingress)| matches!(classes.owner(ingress), Owner::Of(_)))
        .map(|(key, _)| key.name.namespace.to_string())
}

/// Converts the Ingresses of known controllers, and withholds those with annotations of others.
pub(super) fn convert(draft: &mut Draft<'_>) {
    let context = draft.context;
    let mut annotated = Vec::new();
    let classes = Classes::of(context.sources);
    for (key, ingress) in context.sources.kept_of(Kind::Ingress) {
        // An Ingress may be withheld already.
        if !draft.output.objects.contains(key) {
            continue;
        }
        match classes.owner(ingress) {
            Owner::Of(dialect) => {
                draft.output.objects.remove(key);
                annotated.push(Annotated::read((key, ingress), dialect, &classes, context, draft.report));
            }
            Owner::Own(read) => {
                let counts = |domain: &str| !read.iter().any(|known| known == domain);
                withhold(key, ingress, counts, draft);
            }
            Owner::Other(why) => {
                let message = format!("The Ingress stays as it is. {why}");
                draft.report.limited(&Place::object(key.to_string()), Reason::OtherClass, message);
            }
        }
    }
    // The oldest Ingress is preferred, as in ingress-nginx.
    annotated.sort_by(Annotated::by_age);
    // An Ingress without rules asks for nothing, and neither do its annotations.
    annotated.retain(|ingress| !ingress.is_empty());
    let exposed = exposure::exposed(&annotated);
    let passthrough = Passthrough::of(&annotated);
    let tls_hosts = TlsHosts::of(&annotated);
    let policies = verdicts::policies_of_ingresses(context.sources);
    let bypassed: Vec<bool> = annotated
        .iter()
        .map(|one| !context.choices.keep_ingress && passthrough.takes_all(one, &tls_hosts))
        .collect();
    for ((ingress, is_exposed), is_bypassed) in annotated.iter_mut().zip(exposed).zip(bypassed) {
        ingress.is_exposed = is_exposed;
        ingress.is_bypassed = is_bypassed;
        let policies = policies.get(&ingress.key.name).map(Vec::as_slice).unwrap_or_default();
        verdicts::judge(ingress, policies, draft);
    }
    scope::note(&annotated, context, draft.report);
    if context.choices.keep_ingress {
        keep::write(&annotated, draft);
        return;
    }
    let added = hosts::added(&annotated, draft.report);
    tls::convert(&annotated, &added, &passthrough, draft);
    services::convert(&mut annotated, draft);
    passthrough::convert(&annotated, &passthrough, draft);
    routes::convert(&annotated, &added, &passthrough, draft);
}

/// Withholds an Ingress with annotations of other controllers.
fn withhold(key: &ObjectKey, ingress: &Value, counts: impl Fn(&str) -> bool, draft: &mut Draft<'_>) {
    let context = draft.context;
    let annotations = ingress.pointer("/metadata/annotations").and_then(Value::as_object);
    let names = annotations.into_iter().flat_map(Map::keys);
    let foreign: Vec<&String> = names
        .filter(|name| is_foreign(name) && counts(name.split_once('/').map_or("", |(domain, _)| domain)))
        .collect();
    if foreign.is_empty() {
        return;
    }
    let place = Place::object(key.to_string());
    for name in foreign {
        let at = place.at(&format!("metadata.annotations[{name}]"));
        draft.report.blocking(&at, Reason::ForeignAnnotation, loss_without(name));
    }
    if !context.choices.may_be_weaker(Kind::Ingress.as_str(), &key.name) {
        draft.report.withhold(&place, "The Ingress is not written.");
        draft.output.objects.remove(key);
    }
}
