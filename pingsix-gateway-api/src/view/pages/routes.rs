//! The list of routes and Ingresses, with a search.

use maud::{Markup, html};
use pingsix_translate::{Kind, Object, ObjectKey};

use super::super::page::Column::{Number, Text};
use super::super::page::{self, ROUTES, document, object_link};
use super::super::part::Part;
use super::super::route_text::{self, RouteText};
use super::super::status_mark::{Mark, worst};
use super::super::{Model, command, cut};
use crate::about::About;

/// The number of shown hostnames of a route.
const MAX_SHOWN_HOSTS: usize = 3;

/// A choice of routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct RouteFilter {
    /// A part of the name, of a hostname or of a path, in lower case.
    pub(in super::super) search: String,
    /// The Gateway or IngressClass.
    pub(in super::super) owner: Option<ObjectKey>,
    /// Whether routes without problems are left out.
    pub(in super::super) only_problems: bool,
}

pub(in super::super) fn page(model: &Model, filter: &RouteFilter, part: Part) -> String {
    let chosen: Vec<Object> = Kind::routes()
        .chain([Kind::Ingress])
        .flat_map(|kind| model.objects.of_kind(kind))
        .filter(|object| is_chosen(model, object, filter))
        .collect();
    let total = chosen.len();
    let shown = chosen.into_iter().skip(part.skipped()).take(part.rows);
    let owner = filter.owner.as_ref().map(|owner| About(owner.clone()).to_string()).unwrap_or_default();
    let only = if filter.only_problems { "yes" } else { "" };
    let more = [("search", filter.search.as_str()), ("owner", owner.as_str()), ("only-problems", only)];
    let body = html! {
        form.filter action="/view/routes" method="get" {
            @if !part.is_default_size() { input type="hidden" name="rows" value=(part.rows); }
            p {
                label for="filter" { "Name, host or path" }
                input #filter type="search" name="search" value=(filter.search) maxlength="200";
            }
            p {
                label for="owner" { "Gateway or IngressClass" }
                select #owner name="owner" {
                    option value="" { "all" }
                    (owners(model, filter.owner.as_ref()))
                }
            }
            p {
                input #only-problems type="checkbox" name="only-problems" value="yes" checked[filter.only_problems];
                label for="only-problems" { "only with problems" }
            }
            p { button type="submit" { "Show" } }
        }
        p role="status" { (total) @if total == 1 { " route or Ingress" } @else { " routes and Ingresses" } }
        @if total > 0 { (table(model, shown, "Routes and Ingresses")) }
        (page::parts("/view/routes", &more, part, total))
        (page::command(
            "The status of all objects on a command line:",
            &command::line(model, "translate", &["--output".to_owned(), "status".to_owned()]),
        ))
    };
    document("Routes", Some(ROUTES), &filter.search, &body)
}

/// The choices of owners. Beyond a bound, the page of each owner leads to its routes.
pub(super) fn owners(model: &Model, chosen: Option<&ObjectKey>) -> Markup {
    const MAX_LISTED_OWNERS: usize = 200;
    let is_beyond = |key: &&ObjectKey| model.owners.keys().take(MAX_LISTED_OWNERS).all(|known| known != *key);
    let listed = model.owners.keys().take(MAX_LISTED_OWNERS).chain(chosen.filter(is_beyond));
    html! {
        @for key in listed {
            option value=(About(key.clone())) selected[chosen == Some(key)] { (cut(&key.to_string())) }
        }
    }
}

fn is_chosen(model: &Model, object: &Object, filter: &RouteFilter) -> bool {
    let RouteFilter { search, owner, only_problems } = filter;
    let key = object.key();
    let is_of = |owner: &ObjectKey| {
        model.owners.get(owner).is_some_and(|view| {
            view.verdicts.routes.contains_key(&key) || view.verdicts.ingresses.contains_key(&key)
        })
    };
    owner.as_ref().is_none_or(is_of)
        && (search.is_empty() || route_text::contains(object, search))
        && (!only_problems || model.findings_of(&key).next().is_some() || state(model, &key).0 != Mark::Good)
}

/// The state of a route in a word.
fn state(model: &Model, key: &ObjectKey) -> (Mark, &'static str) {
    if key.kind == Kind::Ingress {
        let is_served = model.owners_of(key).next().is_some();
        return if is_served { (Mark::Good, "served") } else { (Mark::Neutral, "not served") };
    }
    let Some(verdict) = model.route_verdict(key) else { return (Mark::Neutral, "not attached") };
    let worst = verdict.parents.iter().map(|parent| worst(&parent.conditions)).max().unwrap_or(Mark::Neutral);
    let words = match worst {
        Mark::Good => "accepted",
        Mark::Neutral => "no conditions",
        Mark::Warning => "accepted with limits",
        Mark::Bad => "refused, or in part",
    };
    (worst, words)
}

/// A table of routes and Ingresses.
pub(super) fn table(model: &Model, shown: impl Iterator<Item = Object>, caption: &str) -> Markup {
    let columns =
        [Text("Object"), Text("Hosts"), Number("Rules"), Text("Served by"), Text("State"), Text("Problems")];
    page::table(caption, &columns, &html! { @for object in shown { (row(model, &object)) } })
}

fn row(model: &Model, object: &Object) -> Markup {
    let key = object.key();
    let Some(route) = RouteText::of(object) else { return html! {} };
    let (mark, words) = state(model, &key);
    let problems = model.findings_of(&key).count();
    html! {
        tr {
            th scope="row" { (object_link(model, &key)) }
            td {
                @if route.hosts.is_empty() { "any host" }
                @for host in route.hosts.iter().take(MAX_SHOWN_HOSTS) { (cut(host)) br; }
                @if route.hosts.len() > MAX_SHOWN_HOSTS { "and " (route.hosts.len() - MAX_SHOWN_HOSTS) " more" }
            }
            td.number { (route.rules.len()) }
            td { @for (owner, _) in model.owners_of(&key) { (object_link(model, owner)) br; } }
            td { (mark.with(words)) }
            td {
                @if problems == 0 { (Mark::Good.with("none")) }
                @else { (Mark::Warning.with(&problems.to_string())) }
            }
        }
    }
}
