//! The frame of all pages, and the parts that several pages have.

use maud::{DOCTYPE, Markup, html};
use pingsix_translate::{Kind, ObjectKey};

use super::address::{ROOT, address, object_address};
use super::part::Part;
use super::{Finding, Model, cut, status_mark};

/// An entry of the navigation: its title, and its address.
pub(super) type Entry = (&'static str, &'static str);

pub(super) const OVERVIEW: Entry = ("Overview", ROOT);
pub(super) const ROUTES: Entry = ("Routes", "/view/routes");
pub(super) const DATA_PLANES: Entry = ("Data planes", "/view/data-planes");
pub(super) const FINDINGS: Entry = ("Findings", "/view/findings");
pub(super) const EXPLAIN: Entry = ("Explain a request", "/view/explain");

/// The navigation.
const ENTRIES: [Entry; 5] = [OVERVIEW, ROUTES, DATA_PLANES, FINDINGS, EXPLAIN];

/// A complete document. `search` is the text in the search field.
pub(super) fn document(title: &str, entry: Option<Entry>, search: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (cut(title)) " – PingSIX gateway" }
                link rel="icon" href="/view/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/view/style.css";
                script src="/view/script.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    nav aria-label="Pages" {
                        ul {
                            @for known in ENTRIES {
                                li { a href=(known.1) aria-current=[(entry == Some(known)).then_some("page")] { (known.0) } }
                            }
                        }
                    }
                    form role="search" action="/view/routes" method="get" {
                        label.hidden for="search" { "Search routes by name, host or path" }
                        input #search type="search" name="search" value=(search) maxlength="200"
                            placeholder="name, host or path";
                        button type="submit" { "Search" }
                    }
                }
                main #main tabindex="-1" {
                    h1 { (cut(title)) }
                    (body)
                }
                footer { p { "These pages change nothing." } }
            }
        }
    };
    page.into_string()
}

/// A page with an error.
pub(super) fn error_page(title: &str, message: &str) -> String {
    document(title, None, "", &html! { p { (cut(message)) } p { a href=(ROOT) { "Go to the overview" } } })
}

/// Whether an object of the model has a page.
pub(super) fn has_page(model: &Model, key: &ObjectKey) -> bool {
    model.owners.contains_key(key)
        || ((key.kind.is_route() || key.kind == Kind::Ingress) && model.objects.contains(key))
}

/// The name of an object, which links to its page if it has one.
pub(super) fn object_link(model: &Model, key: &ObjectKey) -> Markup {
    let name = key.to_string();
    html! {
        @if has_page(model, key) { a href=(object_address(key)) { (cut(&name)) } } @else { (cut(&name)) }
    }
}

/// The links to the other parts of a list. `more` has the other parameters of the address.
pub(super) fn parts(path: &str, more: &[(&str, &str)], part: Part, total: usize) -> Markup {
    let pages = total.div_ceil(part.rows).max(1);
    let rows = part.rows.to_string();
    let to = |page: usize| {
        let page = page.to_string();
        let mut parameters = more.to_vec();
        parameters.push(("page", &page));
        if !part.is_default_size() {
            parameters.push(("rows", &rows));
        }
        address(path, &parameters)
    };
    let first = (part.skipped() + 1).min(total);
    let last = part.skipped().saturating_add(part.rows).min(total);
    html! {
        @if pages > 1 || part.page > 1 {
            nav.parts aria-label="Parts of the list" {
                @if part.page > 1 {
                    a rel="first" href=(to(1)) { "First" }
                    " "
                    a rel="prev" href=(to((part.page - 1).min(pages))) { "Previous" }
                    " "
                }
                span {
                    @if part.page > pages { "There is no page " (part.page) " of " (pages) "." }
                    @else { (first) " to " (last) " of " (total) }
                }
                @if part.page < pages {
                    " "
                    a rel="next" href=(to(part.page + 1)) { "Next" }
                    " "
                    a rel="last" href=(to(pages)) { "Last" }
                }
            }
        }
    }
}

/// A command line, which the script can copy.
pub(super) fn command(what: &str, line: &str) -> Markup {
    html! {
        div.command {
            p { (what) }
            pre tabindex="0" { code { (line) } }
        }
    }
}

/// The number of entries that a page leaves out, if there are any.
pub(super) fn and_more(total: usize, shown: usize, of_what: &str) -> Markup {
    html! {
        @if total > shown { p { "And " (total - shown) " more" (of_what) "." } }
    }
}

/// The head of a column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column {
    Text(&'static str),
    Number(&'static str),
}

/// A table with the heads of its columns, and its rows. Its caption also names the region that scrolls.
pub(super) fn table(caption: &str, columns: &[Column], rows: &Markup) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead {
                    tr {
                        @for column in columns {
                            @match column {
                                Column::Text(head) => { th scope="col" { (head) } }
                                Column::Number(head) => { th.number scope="col" { (head) } }
                            }
                        }
                    }
                }
                tbody { (rows) }
            }
        }
    }
}

/// Findings in a table, without the object if all are about one.
pub(super) fn findings_table<'f>(
    model: &Model,
    caption: &str,
    findings: impl IntoIterator<Item = &'f Finding>,
    with_object: bool,
) -> Markup {
    let [level, object, field, message] = ["Level", "Object", "Field", "Message"].map(Column::Text);
    let columns: &[Column] =
        if with_object { &[level, object, field, message] } else { &[level, field, message] };
    let rows = html! {
        @for finding in findings {
            tr {
                td { (status_mark::level(finding.level)) }
                @if with_object {
                    td {
                        @match &finding.key {
                            Some(key) if has_page(model, key) => { (object_link(model, key)) }
                            Some(_) | None => { (cut(&finding.object)) }
                        }
                    }
                }
                td { code { (cut(&finding.field)) } }
                td {
                    (cut(&finding.message))
                    @if !finding.place.is_empty() { " " code { (cut(&finding.place)) } }
                }
            }
        }
    };
    table(caption, columns, &rows)
}
