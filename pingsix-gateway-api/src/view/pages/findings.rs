//! All findings.

use maud::html;

use super::super::page::{self, FINDINGS, document, findings_table};
use super::super::part::Part;
use super::super::{Model, command};

pub(in super::super) fn page(model: &Model, part: Part) -> String {
    let total = model.findings.len();
    let shown = model.findings.iter().skip(part.skipped()).take(part.rows);
    let body = html! {
        @if total == 0 { p { "There are no findings." } }
        @else { (findings_table(model, "Findings", shown, true)) }
        (page::parts("/view/findings", &[], part, total))
        (page::command("The same on a command line:", &command::line(model, "check", &[])))
    };
    document("Findings", Some(FINDINGS), "", &body)
}
