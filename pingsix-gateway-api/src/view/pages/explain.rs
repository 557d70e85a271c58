//! The page of explanations: a form, and the answer to a request with the reason against each other rule.

use http::StatusCode;
use maud::{Markup, html};
use pingsix_translate::pingsix::Request;

use super::super::address::object_address;
use super::super::form::{Form, MAX_FIELD_BYTES};
use super::super::page::{self, Column, EXPLAIN, and_more, document, has_page};
use super::super::status_mark::Mark;
use super::super::{Model, command, cut};
use super::routes;
use crate::about::About;
use crate::explain::{
    Explanation, Inquiry, NO_SOURCE, RejectedMatch, Source, Step, StepResult, answer_lines, in_words,
    route_lines,
};

/// The number of explanations on a page, one per data plane.
const MAX_SHOWN_EXPLANATIONS: usize = 20;

/// The number of lines of an answer. Each endpoint has one.
const MAX_LINES: usize = 1000;

pub(in super::super) fn page(model: &Model, form: &Form) -> (StatusCode, String) {
    let answer = match (&form.error, form.url.is_empty()) {
        (Some(error), _) => Some(Err(error.clone())),
        (None, true) => None,
        (None, false) => Some(form.inquiry().and_then(|inquiry| answer(model, form, &inquiry))),
    };
    let status = if matches!(answer, Some(Err(_))) { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let body = html! {
        @match &answer {
            Some(Ok(answer)) => { (answer) }
            Some(Err(error)) => { p.fault role="alert" { (Mark::Bad.with(error)) } }
            None => {
                p {
                    "Which rule takes a request, and why does each other rule not take it? The answer is computed from \
                     the documents of the data planes; no request is sent."
                }
            }
        }
        (paste_form(form))
        (request_form(model, form))
    };
    (status, document("Explain a request", Some(EXPLAIN), "", &body))
}

fn paste_form(form: &Form) -> Markup {
    let owner = form.owner.as_ref().map(|owner| About(owner.clone()).to_string());
    html! {
        form.stacked action="/view/explain" method="get" {
            h2 { "A command line of curl, or the head of a request" }
            p {
                label for="paste" { "Text" }
                textarea #paste name="paste" rows="3" maxlength=(MAX_FIELD_BYTES) spellcheck="false" required
                    aria-describedby="paste-hint"
                    placeholder="curl -H 'X-Env: canary' http://shop.example.com/cart" { (form.pasted) }
            }
            p.message #paste-hint {
                "The address of the answer contains the request, so that you can share it. Leave credentials out."
            }
            @if let Some(owner) = owner { input type="hidden" name="owner" value=(owner); }
            p { button type="submit" { "Explain the text" } }
        }
    }
}

fn request_form(model: &Model, form: &Form) -> Markup {
    let method = if form.method.is_empty() { "GET" } else { &form.method };
    html! {
        form.stacked action="/view/explain" method="get" {
            h2 { "A request" }
            p.pair {
                span {
                    label for="method" { "Method" }
                    input #method name="method" value=(method) maxlength="40" size="8" required spellcheck="false";
                }
                span.grow {
                    label for="url" { "URL" }
                    input #url name="url" value=(form.url) maxlength=(MAX_FIELD_BYTES) required spellcheck="false"
                        placeholder="http://shop.example.com/cart?page=2";
                }
            }
            p {
                label for="headers" { "Headers, one per line" }
                textarea #headers name="headers" rows="3" maxlength=(MAX_FIELD_BYTES) spellcheck="false"
                    placeholder="X-Env: canary" { (form.headers) }
            }
            p.pair {
                span {
                    label for="port" { "Port of the listener" }
                    input #port name="port" value=(form.port) inputmode="numeric" maxlength="5" size="8";
                }
                span {
                    label for="server-name" { "TLS server name" }
                    input #server-name name="server-name" value=(form.server_name) maxlength="253" spellcheck="false";
                }
                span {
                    label for="explain-owner" { "Gateway or IngressClass" }
                    select #explain-owner name="owner" {
                        option value="" { "all" }
                        (routes::owners(model, form.owner.as_ref()))
                    }
                }
                span.check {
                    input #http2 type="checkbox" name="http2" value="yes" checked[form.http2];
                    label for="http2" { "HTTP/2" }
                }
            }
            p { button type="submit" { "Explain the request" } }
        }
    }
}

fn answer(model: &Model, form: &Form, inquiry: &Inquiry) -> Result<Markup, String> {
    let (explanations, more) = model
        .explain(inquiry, MAX_SHOWN_EXPLANATIONS)
        .map_err(|error| format!("There is no answer: {error}."))?;
    Ok(html! {
        section.answer aria-label="Answer" {
            @if explanations.is_empty() { p { "No Gateway or IngressClass is served." } }
            @for explanation in &explanations {
                (one(model, &inquiry.request, explanation))
            }
            @if more > 0 { p { "And the answers of " (more) " more data planes; the command line has all." } }
            (page::command("The same answer on a command line:", &command::line(model, "explain", &form.arguments())))
            details {
                summary { "The answer as text" }
                pre #answer-text tabindex="0" { (first_lines(&in_words(&explanations))) }
            }
        }
    })
}

/// The first lines of a text, and the number of the others.
fn first_lines(text: &str) -> String {
    let more = text.lines().count().saturating_sub(MAX_LINES);
    let shown: String = text.split_inclusive('\n').take(MAX_LINES).collect();
    if more > 0 { format!("{shown}and {more} more lines") } else { shown }
}

fn one(model: &Model, request: &Request, explanation: &Explanation) -> Markup {
    let lines = answer_lines(&explanation.answer);
    let mark = if explanation.is_answered() { Mark::Good } else { Mark::Bad };
    html! {
        article {
            h2 {
                (cut(&request.method)) " " (cut(&explanation.request.url))
                @if let Some(port) = explanation.request.port { " on port " (port) }
            }
            p { "Data plane: " strong { (cut(explanation.data_plane.as_deref().unwrap_or("none"))) } }
            h3 { "Answer" }
            ul.plain.lines {
                @for (index, line) in lines.iter().take(MAX_LINES).enumerate() {
                    @if index == 0 { li { (mark.with(line)) } }
                    @else if let Some(detail) = line.strip_prefix("  ") { li.detail { (cut(detail)) } }
                    @else { li { (cut(line)) } }
                }
                @if lines.len() > MAX_LINES { li { "and " (lines.len() - MAX_LINES) " more lines" } }
            }
            (texts("Problems", &explanation.problems))
            @if !explanation.steps.is_empty() {
                h3 { "Matches that PingSIX tries, in order" }
                ol.steps { @for step in &explanation.steps { (step_item(model, step)) } }
            }
            (texts("Plugins that may answer before, in order", &explanation.before))
            @if !explanation.rejected.is_empty() { (rejected_table(model, explanation)) }
            (texts("Listeners", &explanation.listeners))
            @if let Some(route) = &explanation.route {
                h3 { "Route of PingSIX" }
                ul.plain { @for line in route_lines(route) { li { (cut(&line)) } } }
            }
        }
    }
}

/// A list with a heading, unless the list is empty.
fn texts(heading: &str, texts: &[impl ToString]) -> Markup {
    html! {
        @if !texts.is_empty() {
            h3 { (heading) }
            ul { @for text in texts { li { (cut(&text.to_string())) } } }
        }
    }
}

/// A rule that links to its place on the page of the object.
fn source_link(model: &Model, source: &Source) -> Markup {
    let Source { object, field, rule, .. } = source;
    let about = object.replacen(' ', "/", 1).parse::<About>().ok().map(|About(key)| key);
    let address = about.filter(|key| has_page(model, key)).map(|key| {
        let place = rule.map(|rule| format!("#rule-{rule}")).unwrap_or_default();
        format!("{}{place}", object_address(&key))
    });
    html! {
        @match address {
            Some(address) => { a href=(address) { (cut(object)) } }
            None => { (cut(object)) }
        }
        " " code { (cut(field)) }
    }
}

fn step_item(model: &Model, step: &Step) -> Markup {
    let mark = match step.result {
        StepResult::Decides => Mark::Good,
        StepResult::Fails { .. } => Mark::Warning,
        StepResult::NotReached => Mark::Neutral,
    };
    html! {
        li {
            @match &step.source {
                Some(source) => { (source_link(model, source)) }
                None => { (NO_SOURCE) }
            }
            " " (mark.with(&step.result.to_string()))
        }
    }
}

fn rejected_table(model: &Model, Explanation { rejected, more_rejected, .. }: &Explanation) -> Markup {
    html! {
        h3 { "Matches that PingSIX does not choose, nearest first" }
        (page::table("Why each other match does not take the request",
            &["Match", "Reason"].map(Column::Text),
            &html! {
                @for RejectedMatch { source, reason } in rejected {
                    tr { th scope="row" { (source_link(model, source)) } td { (cut(&reason.to_string())) } }
                }
            }))
        (and_more(*more_rejected, 0, ""))
    }
}
