//! The page of a route or an Ingress.

use std::collections::BTreeMap;

use maud::{Markup, html};
use pingsix_translate::status::ParentVerdict;
use pingsix_translate::{Kind, ObjectKey};

use super::super::example::Examples;
use super::super::page::Column::{Number, Text};
use super::super::page::{self, ROUTES, and_more, document, findings_table, object_link};
use super::super::route_text::{BackendText, RouteText, RuleText};
use super::super::status_mark::{Mark, conditions_in_full};
use super::super::{Finding, Model, command, cut};

/// The number of shown hostnames, rules, and parents, matches or backends of a rule, and conditions of a match. The API
/// allows 32 parents, 16 rules of 64 matches, and 16 conditions of a match; files and Ingresses have no bound.
const MAX_SHOWN_HOSTS: usize = 200;
const MAX_SHOWN_RULES: usize = 200;
const MAX_SHOWN_ENTRIES: usize = 200;
const MAX_SHOWN_CONDITIONS: usize = 20;

pub(super) fn page(model: &Model, key: &ObjectKey) -> Option<String> {
    let object = model.objects.get(key)?;
    let route = RouteText::of(&object)?;
    let findings: Vec<&Finding> = model.findings_of(key).take(MAX_SHOWN_RULES).collect();
    let backends = route.rules.iter().flat_map(|rule| &rule.backends);
    let ports = backends.filter_map(|backend| backend.service.clone());
    let examples = Examples::of(model, &route);
    let endpoints = model.endpoints(key, &ports.collect());
    let body = html! {
        h2 { "Hosts" }
        @if route.hosts.is_empty() { p { "Every host of the listeners." } }
        @else {
            ul.plain { @for host in route.hosts.iter().take(MAX_SHOWN_HOSTS) { li { code { (cut(host)) } } } }
            (and_more(route.hosts.len(), MAX_SHOWN_HOSTS, ""))
        }
        @if key.kind == Kind::Ingress { (class(model, &route)) } @else { (parents(model, key)) }
        h2 #problems { "Problems" }
        @if findings.is_empty() { p { "There are none." } }
        @else { (findings_table(model, "Problems of the object", findings.iter().copied(), false)) }
        @for (index, rule) in route.rules.iter().take(MAX_SHOWN_RULES).enumerate() {
            (rule_section(model, &route.key, index, rule, &endpoints, &examples))
        }
        (and_more(route.rules.len(), MAX_SHOWN_RULES, " rules"))
        (page::command("The findings about all objects on a command line:", &command::line(model, "check", &[])))
    };
    Some(document(&key.to_string(), Some(ROUTES), "", &body))
}

/// The classes that serve an Ingress.
fn class(model: &Model, route: &RouteText) -> Markup {
    let owners: Vec<&ObjectKey> = model.owners_of(&route.key).map(|(owner, _)| owner).collect();
    html! {
        h2 { "IngressClass" }
        p {
            "The Ingress "
            @match &route.class {
                Some(class) => { "names the class " strong { (cut(class)) } "." }
                None => { "names no class." }
            }
            " "
            @if owners.is_empty() { (Mark::Neutral.with("not served")) }
            @for owner in owners { (Mark::Good.with("served")) " by " (object_link(model, owner)) " " }
        }
    }
}

/// The status of a route for each of its parents.
fn parents(model: &Model, key: &ObjectKey) -> Markup {
    let verdict = model.route_verdict(key);
    let parents: &[ParentVerdict] = verdict.as_ref().map(|verdict| &*verdict.parents).unwrap_or_default();
    html! {
        h2 #parents { "Parents" }
        @if parents.is_empty() { p { "No Gateway of this controller is a parent of the route." } }
        @else {
            (page::table("Conditions for each parentRef",
                &["Parent", "Section", "Conditions"].map(Text),
                &html! {
                    @for parent in parents.iter().take(MAX_SHOWN_ENTRIES) { (parent_row(model, key, parent)) }
                }))
            (and_more(parents.len(), MAX_SHOWN_ENTRIES, " parents"))
        }
    }
}

fn parent_row(model: &Model, key: &ObjectKey, parent: &ParentVerdict) -> Markup {
    let ParentVerdict { parent_ref, conditions } = parent;
    let section = match (parent_ref.section(), parent_ref.port) {
        (Some(name), Some(port)) => format!("{name}, port {port}"),
        (Some(name), None) => name.to_owned(),
        (None, Some(port)) => format!("port {port}"),
        (None, None) => "all".to_owned(),
    };
    html! {
        tr {
            th scope="row" {
                @match parent_ref.target(&key.name.namespace) {
                    Some(target) => { (object_link(model, &target)) }
                    None => { (cut(&parent_ref.name)) }
                }
            }
            td { (cut(&section)) }
            td { (conditions_in_full(conditions)) }
        }
    }
}

/// The numbers of endpoints of ports of Services.
type Endpoints = BTreeMap<(ObjectKey, i32), usize>;

fn rule_section(
    model: &Model,
    route: &ObjectKey,
    index: usize,
    rule: &RuleText,
    endpoints: &Endpoints,
    examples: &Examples<'_>,
) -> Markup {
    // The whole field, or a part of it.
    let is_its = |finding: &&Finding| {
        let rest = finding.field.strip_prefix(&*rule.field);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let problems = model.findings_of(route).filter(is_its).count();
    html! {
        section aria-labelledby={ "rule-" (index) } {
            h2 id={ "rule-" (index) } {
                "Rule " (index)
                @if let Some(name) = &rule.name { ": " (cut(name)) }
            }
            p {
                code { (rule.field) } " "
                @if problems == 1 { (Mark::Warning.with("1 problem")) }
                @else if problems > 1 { (Mark::Warning.with(&format!("{problems} problems"))) }
            }
            @if !rule.matches.is_empty() { (matches(examples, rule)) }
            @if !rule.filters.is_empty() {
                h3 { "Filters" }
                ul { @for filter in rule.filters.iter().take(MAX_SHOWN_ENTRIES) { li { (cut(filter)) } } }
            }
            @if !rule.settings.is_empty() {
                h3 { "Settings" }
                ul { @for setting in &rule.settings { li { (cut(setting)) } } }
            }
            (backends(rule, endpoints))
        }
    }
}

fn matches(examples: &Examples<'_>, rule: &RuleText) -> Markup {
    html! {
        (page::table(&format!("Matches of {}; a request needs one of them", rule.field),
            &["Path", "Method", "Headers", "Query", "Example"].map(Text),
            &html! {
                @for matched in rule.matches.iter().take(MAX_SHOWN_ENTRIES) {
                    tr {
                        th scope="row" { code { (cut(&matched.path)) } }
                        td { (matched.method.as_deref().map_or("any".into(), cut)) }
                        td { (conditions(&matched.headers)) }
                        td { (conditions(&matched.query)) }
                        td {
                            @if let Some(address) = examples.address(rule, matched) {
                                a href=(address) { "Explain" span.hidden { " a request for " (cut(&matched.path)) } }
                            }
                        }
                    }
                }
            }))
        (and_more(rule.matches.len(), MAX_SHOWN_ENTRIES, " matches"))
    }
}

/// Conditions of a match on headers or query parameters.
fn conditions(conditions: &[String]) -> Markup {
    let more = conditions.len().saturating_sub(MAX_SHOWN_CONDITIONS);
    html! {
        @for condition in conditions.iter().take(MAX_SHOWN_CONDITIONS) { code { (cut(condition)) } br; }
        @if more > 0 { "and " (more) " more" }
    }
}

fn backends(rule: &RuleText, endpoints: &Endpoints) -> Markup {
    let of_paths = rule.backends.iter().any(|backend| backend.matched.is_some());
    let columns: &[_] = if of_paths {
        &[Text("Path"), Text("Backend"), Number("Endpoints")]
    } else {
        &[Text("Backend"), Number("Weight"), Number("Endpoints")]
    };
    html! {
        h3 { "Backends" }
        @if rule.backends.is_empty() { p { "There are none." } }
        @else {
            (page::table(&format!("Backends of {}", rule.field),
                columns,
                &html! {
                    @for backend in rule.backends.iter().take(MAX_SHOWN_ENTRIES) {
                        tr {
                            @if of_paths { td { code { (cut(backend.matched.as_deref().unwrap_or_default())) } } }
                            th scope="row" { (cut(&backend.text)) }
                            @if !of_paths { td.number { (backend.weight) } }
                            td.number { (endpoint_count(backend, endpoints)) }
                        }
                    }
                }))
            (and_more(rule.backends.len(), MAX_SHOWN_ENTRIES, " backends"))
        }
    }
}

fn endpoint_count(backend: &BackendText, endpoints: &Endpoints) -> Markup {
    match backend.service.as_ref().and_then(|port| endpoints.get(port)) {
        Some(0) => Mark::Bad.with("0"),
        Some(count) => html! { (count) },
        None => html! { "–" },
    }
}
