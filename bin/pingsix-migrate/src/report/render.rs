//! The report as text, Markdown and JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use super::causes::{Cause, causes, general_field};
use super::{Entry, Report, ReportFormat, Verdict};
use crate::words::{counted, printable};

/// The most objects or fields that a summary names for one cause.
const MAX_NAMES: usize = 5;

/// The most sentences of a summary that differ only by their values.
const MAX_SENTENCES: usize = 5;

/// The guides, each with a word of the objects or fields that it is about.
const GUIDES: [(&str, &str); 4] = [
    ("nginx.ingress.kubernetes.io", "from-ingress-nginx"),
    ("Apisix", "from-apisix"),
    ("apisix.apache.org", "from-apisix"),
    ("Ingress ", "from-ingress-nginx"),
];

/// The guide for other objects.
const OTHER_GUIDE: &str = "from-the-go-controller";

impl Verdict {
    /// The heading of the problems with the verdict, and its meaning.
    const fn heading(self) -> (&'static str, &'static str) {
        match self {
            Self::Withheld => (
                "Withheld",
                "a part is not written, because it would admit or forward requests that the original does not.",
            ),
            Self::Impossible => ("Impossible", "PingSIX has no counterpart."),
            Self::Weaker => ("Weaker", "the object is written with less protection, as --allow-weaker asks."),
            Self::Limited => ("Limited", "the output comes close, and the sentence names the difference."),
            Self::Exact => ("Exact", "requests are treated as before."),
        }
    }
}

impl Report {
    /// The report: its problems by cause, or with `all` every field.
    pub fn render(&self, format: ReportFormat, all: bool) -> String {
        match format {
            ReportFormat::Text if all => self.text_of_fields(),
            ReportFormat::Text => self.text(),
            ReportFormat::Markdown => self.markdown(all),
            ReportFormat::Json => self.json(),
        }
    }

    /// `1 exact, 0 limited, 0 impossible (1 object)`
    fn counts(&self) -> String {
        let counts = Verdict::ALL.map(|verdict| (verdict, self.count(verdict)));
        let fields = counts
            .into_iter()
            .filter(|(verdict, count)| *count > 0 || !matches!(verdict, Verdict::Withheld | Verdict::Weaker))
            .map(|(verdict, count)| format!("{count} {}", verdict.as_str()));
        format!("{} ({})", fields.collect::<Vec<_>>().join(", "), counted(self.objects.len(), "object"))
    }

    /// The next step of the reader.
    fn next_step(&self) -> String {
        let is_about = |word: &str| {
            self.entries()
                .any(|entry| entry.place.object.starts_with(word) || entry.place.field.contains(word))
        };
        let guide =
            GUIDES.into_iter().find(|(word, _)| is_about(word)).map_or(OTHER_GUIDE, |(_, guide)| guide);
        let guide = format!("{}/blob/main/docs/how-to/{guide}.md", env!("CARGO_PKG_REPOSITORY"));
        if self.has_losses() {
            format!("Decide on what is withheld or impossible before you move traffic: {guide}")
        } else {
            format!("Test the manifests with check and explain before you move traffic: {guide}")
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let causes = causes(self.entries());
        for causes in causes.chunk_by(|one, other| one.verdict == other.verdict) {
            let Some(first) = causes.first() else { continue };
            let (title, meaning) = first.verdict.heading();
            let _ = writeln!(text, "{title}: {meaning}");
            for causes in causes.chunk_by(Cause::is_like) {
                for cause in causes.iter().take(MAX_SENTENCES) {
                    let Cause { field, message, .. } = cause;
                    let colon = if field.is_empty() { "" } else { ": " };
                    let line = printable(format!("{field}{colon}{message}"));
                    let _ = writeln!(text, "  {line}\n    {}", printable(places(cause, MAX_NAMES)));
                }
                if let Some(rest) = rest(causes) {
                    let _ = writeln!(text, "  {}", printable(rest));
                }
            }
            text.push('\n');
        }
        let _ = writeln!(text, "{}\n{}", self.counts(), self.next_step());
        text
    }

    fn text_of_fields(&self) -> String {
        let mut text = String::new();
        for (object, entries) in &self.objects {
            text.push_str(&printable(object.to_string()));
            text.push('\n');
            for Entry { place, verdict, message, .. } in entries {
                let colon = if place.field.is_empty() { "" } else { ": " };
                let line = printable(format!("{}{colon}{message}", place.field));
                // Writing to a String cannot fail.
                let _ = writeln!(text, "  {:<10}  {line}", verdict.as_str());
            }
        }
        let _ = writeln!(text, "{}", self.counts());
        text
    }

    fn markdown(&self, all: bool) -> String {
        let mut text = format!("# Migration\n\n{}\n\n{}\n", self.counts(), self.next_step());
        let names = if all { usize::MAX } else { MAX_NAMES };
        let sentences = if all { usize::MAX } else { MAX_SENTENCES };
        let causes = causes(self.entries());
        for causes in causes.chunk_by(|one, other| one.verdict == other.verdict) {
            let Some(first) = causes.first() else { continue };
            let (title, meaning) = first.verdict.heading();
            let _ = write!(
                text,
                "\n## {title}\n\n{title}: {meaning}\n\n| field | reason | objects |\n|---|---|---|\n"
            );
            for causes in causes.chunk_by(Cause::is_like) {
                for cause in causes.iter().take(sentences) {
                    let (field, message) = (cell(&cause.field), cell(&cause.message));
                    let _ = writeln!(text, "| {field} | {message} | {} |", cell(&places(cause, names)));
                }
                if let Some(rest) = rest(causes).filter(|_| !all) {
                    let _ = writeln!(text, "| | {} | |", cell(&rest));
                }
            }
        }
        if !all {
            return text;
        }
        text.push_str("\n## All fields\n");
        for (object, entries) in &self.objects {
            let _ = write!(text, "\n### {}\n\n| field | verdict | reason |\n|---|---|---|\n", cell(object));
            for Entry { place, verdict, message, .. } in entries {
                let _ =
                    writeln!(text, "| {} | {} | {} |", cell(&place.field), verdict.as_str(), cell(message));
            }
        }
        text
    }

    fn json(&self) -> String {
        let counts: BTreeMap<&str, usize> =
            Verdict::ALL.into_iter().map(|verdict| (verdict.as_str(), self.count(verdict))).collect();
        let causes: Vec<_> = causes(self.entries())
            .into_iter()
            .map(|cause| {
                let Cause { verdict, reason, field, message, places, .. } = cause;
                json!({
                    "verdict": verdict, "reason": reason, "field": field, "message": message, "places": places,
                })
            })
            .collect();
        let entries: Vec<&Entry> = self.entries().collect();
        format!("{:#}\n", json!({ "counts": counts, "causes": causes, "entries": entries }))
    }
}

/// `Ingress shop/a`, `Ingress shop/a: spec.rules[0], spec.rules[1]` or `12 Ingresses: shop/a, shop/b and 10 more`
fn places(cause: &Cause<'_>, most: usize) -> String {
    let objects = cause.objects();
    let kind = |object: &str| object.split_once(' ').map_or("", |(kind, _)| kind).to_owned();
    let first = objects.first().copied().unwrap_or_default();
    if objects.len() == 1 && cause.places.len() == 1 {
        return first.to_owned();
    }
    if objects.len() == 1 {
        let fields = cause.places.iter().map(|place| place.field.as_str());
        return format!("{first}: {}", listed(fields.collect(), most));
    }
    let kind_of_all = Some(kind(first)).filter(|first| objects.iter().all(|object| kind(object) == *first));
    let Some(kind_of_all) = kind_of_all.filter(|kind| !kind.is_empty()) else {
        return format!("{}: {}", counted(objects.len(), "object"), listed(objects, most));
    };
    let count = objects.len();
    let names = objects.into_iter().filter_map(|object| Some(object.split_once(' ')?.1)).collect();
    format!("{count} {}: {}", plural(&kind_of_all), listed(names, most))
}

/// `a, b and 10 more`
fn listed(names: Vec<&str>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", names.into_iter().take(most).collect::<Vec<_>>().join(", "))
}

/// A line for the sentences that a summary leaves out.
fn rest(causes: &[Cause<'_>]) -> Option<String> {
    let rest = causes.get(MAX_SENTENCES..).filter(|rest| !rest.is_empty())?;
    let first = rest.first()?;
    let fields: usize = rest.iter().map(|cause| cause.places.len()).sum();
    let field = general_field(&first.field);
    let subject = if field.is_empty() { first.reason.as_str() } else { &*field };
    Some(format!("{subject}: {} like these; --all shows them.", counted(fields, "more field")))
}

/// `Ingresses`, `HTTPRoutePolicies`, `Services`
fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ if kind.ends_with("ss") => format!("{kind}es"),
        _ if kind.ends_with('s') => kind.to_owned(),
        _ => format!("{kind}s"),
    }
}

/// Text in a cell of a table: names and values of the input are not markup.
fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in printable(text.to_owned()).chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '\\' | '#' | '[' | ']' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::{Place, Reason};
    use super::*;

    #[test]
    fn a_summary_of_many_objects_is_short() {
        let mut report = Report::default();
        for number in 0..5_000 {
            let place = Place::object(format!("Ingress shop/x{number}"));
            report.exact(&place.at("spec.rules").item(0).at("host"), "One.");
            report.impossible(&place.at("metadata.annotations[a/b]"), Reason::UnsupportedAnnotation, "Two.");
            let path = place.at("spec.rules").item(0).at("path");
            report.limited(&path, Reason::DifferentPath, format!("The path becomes /{number}."));
        }
        let paths = (0..5).map(|number| {
            format!("  spec.rules[0].path: The path becomes /{number}.\n    Ingress shop/x{number}\n")
        });
        let expected = format!(
            "Impossible: PingSIX has no counterpart.\n  a/b: Two.\n    \
             5000 Ingresses: shop/x0, shop/x1, shop/x2, shop/x3, shop/x4 and 4995 more\n\n\
             Limited: the output comes close, and the sentence names the difference.\n{}  \
             spec.rules[].path: 4995 more fields like these; --all shows them.\n\n\
             5000 exact, 5000 limited, 5000 impossible (5000 objects)\n\
             Decide on what is withheld or impossible before you move traffic: \
             https://github.com/pingsix/pingsix-gateway-api/blob/main/docs/how-to/from-ingress-nginx.md\n",
            paths.collect::<Vec<_>>().concat(),
        );
        assert_eq!(report.render(ReportFormat::Text, false), expected);
        assert!(report.render(ReportFormat::Markdown, false).lines().count() < 30);
    }

    #[test]
    fn kinds_have_their_plurals() {
        for (kind, kinds) in [
            ("Ingress", "Ingresses"),
            ("HTTPRoutePolicy", "HTTPRoutePolicies"),
            ("GatewayProxy", "GatewayProxies"),
            ("ApisixTls", "ApisixTls"),
            ("Service", "Services"),
        ] {
            assert_eq!(plural(kind), kinds);
        }
    }
}
