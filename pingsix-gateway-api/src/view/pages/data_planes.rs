//! Data planes: the desired and the confirmed revision, and the instances.

use maud::{Markup, html};
use pingsix_translate::DataPlaneKey;
use pingsix_translate::status::Delivery;

use super::super::page::Column::{Number, Text};
use super::super::page::{self, DATA_PLANES, document, object_link};
use super::super::part::Part;
use super::super::status_mark::{Mark, delivery};
use super::super::{DataPlaneView, Instance, Model, PlaneDocuments, command, cut};

/// The number of shown instances of a data plane.
const MAX_SHOWN_INSTANCES: usize = 50;

pub(in super::super) fn page(model: &Model, part: Part) -> String {
    let total = model.data_planes().count();
    let shown: Vec<_> = model.data_planes().skip(part.skipped()).take(part.rows).collect();
    let body = html! {
        p {
            "A data plane is the PingSIX instances that read one prefix. The desired revision is that of the last \
             publication. The confirmed revision is in force at all instances with a status page."
        }
        @if total == 0 { p { "There are no data planes." } }
        @else { (table(model, &shown, "Data planes")) }
        (page::parts("/view/data-planes", &[], part, total))
        (page::command(
            "The documents of all data planes on a command line:",
            &command::line(model, "translate", &["--output".to_owned(), "review".to_owned()]),
        ))
    };
    document("Data planes", Some(DATA_PLANES), "", &body)
}

/// A table of data planes.
pub(super) fn table(model: &Model, planes: &[(&DataPlaneKey, &DataPlaneView)], caption: &str) -> Markup {
    let columns = [
        Text("Data plane"),
        Text("Object"),
        Text("Delivery"),
        Number("Documents"),
        Number("Desired revision"),
        Number("Confirmed revision"),
        Text("Instances"),
    ];
    let rows = html! {
        @for (key, plane) in planes {
            tr {
                th scope="row" {
                    (cut(&key.to_string()))
                    br;
                    code.prefix { (cut(&key.prefix(&model.options.root))) }
                }
                td { (object_link(model, &key.owner())) }
                td { (delivery(&plane.delivery)) }
                td.number { (documents(&plane.documents)) }
                td.number { (number(plane.revision)) }
                td.number { (number(confirmed(plane))) }
                td { (instances(plane)) }
            }
        }
    };
    page::table(caption, &columns, &rows)
}

fn number(revision: Option<i64>) -> String {
    revision.map_or_else(|| "–".to_owned(), |revision| revision.to_string())
}

fn documents(documents: &PlaneDocuments) -> usize {
    match documents {
        PlaneDocuments::Requests { config, .. } => config.len(),
        PlaneDocuments::Streams(plane) => plane.config.len(),
    }
}

/// The revision in force at all instances: the desired one after a confirmation, and otherwise the lowest of them.
fn confirmed(plane: &DataPlaneView) -> Option<i64> {
    if matches!(plane.delivery, Delivery::Confirmed | Delivery::ConfirmedInPart(_)) {
        return plane.revision;
    }
    let revisions: Option<Vec<i64>> = plane.instances.iter().map(|instance| instance.revision).collect();
    revisions?.into_iter().min()
}

fn instances(plane: &DataPlaneView) -> Markup {
    let total = plane.instances.len();
    html! {
        @if total > 0 {
            ul.plain {
                @for instance in plane.instances.iter().take(MAX_SHOWN_INSTANCES) {
                    li { (one(instance, plane.revision)) }
                }
                @if total > MAX_SHOWN_INSTANCES { li { "and " (total - MAX_SHOWN_INSTANCES) " more" } }
            }
        } @else {
            @match plane.connections {
                Some(1) => { "1 connection; no status page" }
                Some(count) => { (count) " connections; no status page" }
                None => { "unknown" }
            }
        }
    }
}

fn one(instance: &Instance, desired: Option<i64>) -> Markup {
    let Instance { name, revision, remark, is_faulty } = instance;
    let mark = match revision {
        _ if *is_faulty => Mark::Bad,
        Some(revision) if desired.is_some_and(|desired| *revision >= desired) => Mark::Good,
        Some(_) => Mark::Warning,
        None => Mark::Neutral,
    };
    let state =
        revision.map_or_else(|| "revision unknown".to_owned(), |revision| format!("revision {revision}"));
    html! {
        (mark.with(&state)) " " (cut(name))
        @if !remark.is_empty() { " " span.message { (cut(remark)) } }
    }
}
