//! The first page: Gateways and IngressClasses.

use maud::{Markup, html};
use pingsix_translate::snapshot::Objects;
use pingsix_translate::{Kind, Object, ObjectKey};

use super::super::page::Column::{Number, Text};
use super::super::page::{self, OVERVIEW, document, object_link};
use super::super::part::Part;
use super::super::status_mark::{Mark, conditions_in_line, delivery};
use super::super::{FindingLevel, Model, OwnerView, command};

pub(in super::super) fn page(model: &Model, part: Part) -> String {
    let owners = model.owners.iter().skip(part.skipped()).take(part.rows);
    let total = model.owners.len();
    let body = html! {
        (counts(model))
        @if model.owners.is_empty() {
            p {
                "No Gateway or IngressClass is served. The "
                a href="/view/findings" { "findings" }
                " say why."
            }
        } @else {
            (page::table("Gateways and IngressClasses",
                &[
                    Text("Object"), Text("Class"), Text("State"), Number("Listeners"), Number("Routes"),
                    Text("Problems"), Text("Data planes"),
                ],
                &html! {
                    @for (key, view) in owners { (row(model, key, view)) }
                }))
            (page::parts("/view", &[], part, total))
        }
        (page::command("All findings on a command line:", &command::line(model, "check", &[])))
    };
    document("Overview", Some(OVERVIEW), "", &body)
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn counts(model: &Model) -> Markup {
    let routes: usize =
        Kind::routes().chain([Kind::Ingress]).map(|kind| model.objects.of_kind(kind).count()).sum();
    let (owners, data_planes) = (model.owners.len(), model.data_planes().count());
    let level = |level| model.findings.iter().filter(|finding| finding.level == level).count();
    let (errors, warnings) = (level(FindingLevel::Error), level(FindingLevel::Warning));
    let mark_of_errors = if errors > 0 { Mark::Bad } else { Mark::Good };
    let mark_of_warnings = if warnings > 0 { Mark::Warning } else { Mark::Good };
    html! {
        ul.counts {
            li { strong { (owners) } @if owners == 1 { " Gateway or IngressClass" } @else { " Gateways and IngressClasses" } }
            li {
                a href="/view/routes" {
                    strong { (routes) }
                    @if routes == 1 { " route or Ingress" } @else { " routes and Ingresses" }
                }
            }
            li {
                a href="/view/data-planes" {
                    strong { (data_planes) }
                    @if data_planes == 1 { " data plane" } @else { " data planes" }
                }
            }
            li {
                a href="/view/findings" {
                    (mark_of_errors.with(&counted(errors, "error")))
                    " "
                    (mark_of_warnings.with(&counted(warnings, "warning")))
                }
            }
        }
    }
}

fn row(model: &Model, key: &ObjectKey, view: &OwnerView) -> Markup {
    let OwnerView { verdicts, data_planes } = view;
    let problems = verdicts.problems.len();
    html! {
        tr {
            th scope="row" { (object_link(model, key)) }
            td { (class(&model.objects, key)) }
            td {
                @match &verdicts.gateway {
                    Some(gateway) => { (conditions_in_line(&gateway.conditions)) }
                    None => { "no conditions" }
                }
            }
            td.number { @if verdicts.gateway.is_some() { (verdicts.listeners().count()) } @else { "–" } }
            td.number { (verdicts.routes.len() + verdicts.ingresses.len()) }
            td {
                @if problems == 0 { (Mark::Good.with("none")) }
                @else { (Mark::Warning.with(&problems.to_string())) }
            }
            td {
                ul.plain {
                    @for (key, plane) in data_planes { li { (key) " " (delivery(&plane.delivery)) } }
                }
                @if data_planes.is_empty() { "none" }
            }
        }
    }
}

/// The name of a Gateway's class, or the controller of an IngressClass.
pub(super) fn class(objects: &Objects, key: &ObjectKey) -> String {
    let object = objects.get(key);
    if let Some(Object::Gateway(gateway)) = &object {
        return gateway.spec.gateway_class_name.clone();
    }
    let Some(Object::IngressClass(class)) = object else { return String::new() };
    class.spec.as_ref().and_then(|spec| spec.controller.clone()).unwrap_or_default()
}
