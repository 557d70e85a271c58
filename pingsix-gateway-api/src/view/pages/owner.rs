//! The page of a Gateway or an IngressClass.

use maud::{Markup, html};
use pingsix_translate::status::{ListenerVerdict, Verdicts};
use pingsix_translate::{Kind, ObjectKey};

use super::super::address::address;
use super::super::page::Column::{Number, Text};
use super::super::page::{self, OVERVIEW, document, findings_table, object_link};
use super::super::part::Part;
use super::super::status_mark::{conditions_in_full, conditions_in_line};
use super::super::{Finding, Model, OwnerView, command, cut};
use super::{data_planes, overview, routes};
use crate::about::About;

/// The number of shown listeners. A Gateway has up to 64, and its ListenerSets have no bound together.
const MAX_SHOWN_LISTENERS: usize = 200;

/// The number of shown problems; the page of findings has all of them.
const MAX_SHOWN_PROBLEMS: usize = 50;

pub(super) fn page(model: &Model, key: &ObjectKey, view: &OwnerView, part: Part) -> String {
    let OwnerView { verdicts, data_planes } = view;
    let planes: Vec<_> = data_planes.iter().collect();
    let request = ["GET", "http://HOST/PATH"].map(str::to_owned);
    let explain = [command::owner_option(key), request.to_vec()].concat();
    let about = About(key.clone()).to_string();
    let body = html! {
        p { (if key.kind == Kind::IngressClass { "Controller: " } else { "GatewayClass: " }) strong { (cut(&overview::class(&model.objects, key))) } }
        @if let Some(gateway) = &verdicts.gateway {
            h2 { "Conditions" }
            (conditions_in_full(&gateway.conditions))
            h2 #listeners { "Listeners" }
            (listeners(model, verdicts))
        }
        h2 { "Data planes" }
        @if planes.is_empty() { p { "There are no data planes." } }
        @else { (data_planes::table(model, &planes, "Data planes of the object")) }
        h2 #routes { (if key.kind == Kind::IngressClass { "Ingresses" } else { "Routes" }) }
        (routes_of(model, key, verdicts, part))
        h2 #problems { "Problems" }
        (problems(model, verdicts))
        p {
            a href=(address("/view/explain", &[("owner", about.as_str())])) {
                "Explain a request to this " (if key.kind == Kind::IngressClass { "IngressClass" } else { "Gateway" })
            }
        }
        (page::command(
            "A request to this object on a command line:",
            &command::line(model, "explain", &explain),
        ))
    };
    document(&key.to_string(), Some(OVERVIEW), "", &body)
}

/// The listeners of a Gateway, and of its ListenerSets.
fn listeners(model: &Model, verdicts: &Verdicts) -> Markup {
    let own = verdicts.gateway.iter().flat_map(|gateway| &gateway.listeners).map(|listener| (None, listener));
    let of_sets = verdicts
        .listener_sets
        .iter()
        .flat_map(|(set, verdict)| verdict.listeners.iter().map(move |listener| (Some(&**set), listener)));
    let columns = [
        Text("Name"),
        Text("Protocol"),
        Number("Port"),
        Text("Hostname"),
        Number("Attached routes"),
        Text("Conditions"),
    ];
    let total = own.clone().chain(of_sets.clone()).count();
    let rows = html! {
        @for (set, listener) in own.chain(of_sets).take(MAX_SHOWN_LISTENERS) { (listener_row(model, set, listener)) }
    };
    html! {
        (page::table("Listeners", &columns, &rows))
        (page::and_more(total, MAX_SHOWN_LISTENERS, " listeners"))
    }
}

fn listener_row(model: &Model, set: Option<&ObjectKey>, listener: &ListenerVerdict) -> Markup {
    html! {
        tr {
            th scope="row" {
                (cut(&listener.name))
                @if let Some(set) = set { br; span.message { "of " (object_link(model, set)) } }
            }
            td { (cut(&listener.protocol)) }
            td.number { (listener.port) }
            td { (cut(listener.hostname.as_deref().unwrap_or("any host"))) }
            td.number { (listener.attached_routes) }
            td {
                @if listener.data_plane.is_some() { (conditions_in_line(&listener.conditions)) }
                @else { (conditions_in_full(&listener.conditions)) }
            }
        }
    }
}

fn routes_of(model: &Model, key: &ObjectKey, verdicts: &Verdicts, part: Part) -> Markup {
    let total = verdicts.routes.len() + verdicts.ingresses.len();
    let keys = verdicts.routes.keys().chain(verdicts.ingresses.keys());
    let shown = keys.skip(part.skipped()).take(part.rows).filter_map(|route| model.objects.get(route));
    let about = About(key.clone()).to_string();
    html! {
        @if total == 0 { p { "There are none." } }
        @else {
            (routes::table(model, shown, "Routes of the object"))
            (page::parts("/view/object", &[("about", about.as_str())], part, total))
            p { a href=(address("/view/routes", &[("owner", about.as_str()), ("only-problems", "yes")])) { "Those with problems" } }
        }
    }
}

fn problems(model: &Model, verdicts: &Verdicts) -> Markup {
    let findings: Vec<Finding> =
        verdicts.problems.iter().take(MAX_SHOWN_PROBLEMS).map(Finding::from).collect();
    let more = verdicts.problems.len().saturating_sub(MAX_SHOWN_PROBLEMS);
    html! {
        @if findings.is_empty() { p { "There are none." } }
        @else {
            (findings_table(model, "Problems of the object, its routes and its policies", &findings, true))
            @if more > 0 { p { "And " (more) " more in the " a href="/view/findings" { "findings" } "." } }
        }
    }
}
