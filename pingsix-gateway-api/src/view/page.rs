//! The frame of all pages, and the parts that several pages have.

use maud::{DOCTYPE, Markup, html};
use pingsix_translate::{Kind, ObjectKey};

use super::address::{ROOT, address, object_address};
use super::part::Part;
use super::{Finding, Model, cut, status_mark};

/// The entries of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Overview,
    Routes,
    DataPlanes,
    Findings,
    Explain,
}

impl Entry {
    const ALL: [Self; 5] = [Self::Overview, Self::Routes, Self::DataPlanes, Self::Findings, Self::Explain];

    const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Routes => "Routes",
            Self::DataPlanes => "Data planes",
            Self::Findings => "Findings",
            Self::Explain => "Explain a request",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Overview => ROOT,
            Self::Routes => "/view/routes",
            Self::DataPlanes => "/view/data-planes",
            Self::Findings => "/view/findings",
            Self::Explain => "/view/explain",
        }
    }
}

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
                            @for known in Entry::ALL {
                                li {
                                    a href=(known.path()) aria-current=[(entry == Some(known)).then_some("page")] {
                                        (known.title())
                                    }
                                }
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

/// A table with the cells of its head, and its rows. Its caption also names the region that scrolls.
pub(super) fn table(caption: &str, head: &Markup, rows: &Markup) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr { (head) } }
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
    let head = html! {
        th scope="col" { "Level" }
        @if with_object { th scope="col" { "Object" } }
        th scope="col" { "Field" }
        th scope="col" { "Message" }
    };
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
    table(caption, &head, &rows)
}
