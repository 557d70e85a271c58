//! The report: a verdict on every field of the input.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::json;

use crate::arguments::MigrationReport;
use crate::finding::{counted, printable};

/// A field of an object of the input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Place {
    /// Kind, namespace and name.
    pub(crate) object: String,
    /// The path of the field; empty for the whole object.
    pub(crate) field: String,
}

impl Place {
    pub(crate) fn object(object: impl Into<String>) -> Self {
        Self { object: object.into(), field: String::new() }
    }

    /// A field of this one.
    pub(crate) fn at(&self, name: &str) -> Self {
        let dot = if self.field.is_empty() { "" } else { "." };
        Self { object: self.object.clone(), field: format!("{}{dot}{name}", self.field) }
    }

    /// An item of this list.
    pub(crate) fn item(&self, index: usize) -> Self {
        Self { object: self.object.clone(), field: format!("{}[{index}]", self.field) }
    }
}

/// How far the output does what a field asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// Requests are treated as before.
    Exact,
    /// The output comes close; the message says where it differs.
    Limited,
    /// The output has no counterpart.
    Impossible,
    /// A part of the object was not written, because it would admit requests that the original refuses.
    Withheld,
    /// A part of the object was written although it is weaker, because `--allow-weaker` names the object.
    Weaker,
}

impl Verdict {
    const ALL: [Self; 5] = [Self::Exact, Self::Limited, Self::Impossible, Self::Withheld, Self::Weaker];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Limited => "limited",
            Self::Impossible => "impossible",
            Self::Withheld => "withheld",
            Self::Weaker => "weaker",
        }
    }
}

/// A verdict on a field. The message never quotes a value that may be secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) verdict: Verdict,
    pub(crate) message: String,
}

/// The verdicts in the order of the conversion.
#[derive(Debug, Default)]
pub(crate) struct Report {
    entries: Vec<Entry>,
    known: BTreeSet<Entry>,
    blocking: usize,
}

impl Report {
    pub(crate) fn exact(&mut self, place: &Place, message: impl Into<String>) {
        self.add(place, Verdict::Exact, message);
    }

    pub(crate) fn limited(&mut self, place: &Place, message: impl Into<String>) {
        self.add(place, Verdict::Limited, message);
    }

    /// A loss that admits no further request: the rest of the object is written.
    pub(crate) fn impossible(&mut self, place: &Place, message: impl Into<String>) {
        self.add(place, Verdict::Impossible, message);
    }

    /// A loss after which the output might admit or forward requests that the original does not: the part of the object
    /// is not written.
    pub(crate) fn blocking(&mut self, place: &Place, message: impl Into<String>) {
        self.blocking += 1;
        self.add(place, Verdict::Impossible, message);
    }

    /// The number of losses up to now; more of them later mean that a part is not to be written.
    pub(crate) const fn losses(&self) -> usize {
        self.blocking
    }

    pub(crate) fn add(&mut self, place: &Place, verdict: Verdict, message: impl Into<String>) {
        let entry = Entry { place: place.clone(), verdict, message: message.into() };
        // A plugin configuration that several rules use has the same verdicts each time.
        if self.known.insert(entry.clone()) {
            self.entries.push(entry);
        }
    }

    /// Whether a part of an object is impossible.
    pub(crate) fn has_impossible(&self, object: &str) -> bool {
        self.entries.iter().any(|entry| entry.place.object == object && entry.verdict == Verdict::Impossible)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.entries.iter().filter(|entry| entry.verdict == verdict).count()
    }

    /// Whether the output lacks something of the input.
    pub(crate) fn has_losses(&self) -> bool {
        [Verdict::Impossible, Verdict::Withheld, Verdict::Weaker]
            .into_iter()
            .any(|verdict| self.count(verdict) > 0)
    }

    /// The entries of each object, in the order in which objects are first named.
    fn objects(&self) -> Vec<(&str, Vec<&Entry>)> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut objects: Vec<(&str, Vec<&Entry>)> = Vec::new();
        for entry in &self.entries {
            let object = entry.place.object.as_str();
            let index = *places.entry(object).or_insert(objects.len());
            match objects.get_mut(index) {
                Some((_, entries)) => entries.push(entry),
                None => objects.push((object, vec![entry])),
            }
        }
        objects
    }

    fn summary(&self) -> String {
        let counts = Verdict::ALL.map(|verdict| (verdict, self.count(verdict)));
        let fields = counts
            .into_iter()
            .filter(|(verdict, count)| *count > 0 || *verdict <= Verdict::Impossible)
            .map(|(verdict, count)| format!("{count} {}", verdict.as_str()));
        format!("{} ({})", fields.collect::<Vec<_>>().join(", "), counted(self.objects().len(), "object"))
    }

    pub(crate) fn render(&self, format: MigrationReport) -> String {
        match format {
            MigrationReport::Text => self.text(),
            MigrationReport::Markdown => self.markdown(),
            MigrationReport::Json => self.json(),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (object, entries) in self.objects() {
            text.push_str(&printable(object.to_owned()));
            text.push('\n');
            for Entry { place, verdict, message } in entries {
                let colon = if place.field.is_empty() { "" } else { ": " };
                let line = printable(format!("{}{colon}{message}", place.field));
                // Writing to a String cannot fail.
                let _ = writeln!(text, "  {:<10}  {line}", verdict.as_str());
            }
        }
        let _ = writeln!(text, "{}", self.summary());
        text
    }

    fn markdown(&self) -> String {
        let mut text = String::from("# Migration\n");
        for (object, entries) in self.objects() {
            let _ = write!(text, "\n## {}\n\n| field | verdict | reason |\n|---|---|---|\n", cell(object));
            for Entry { place, verdict, message } in entries {
                let _ =
                    writeln!(text, "| {} | {} | {} |", cell(&place.field), verdict.as_str(), cell(message));
            }
        }
        let _ = writeln!(text, "\n{}", self.summary());
        text
    }

    fn json(&self) -> String {
        let counts: BTreeMap<&str, usize> =
            Verdict::ALL.into_iter().map(|verdict| (verdict.as_str(), self.count(verdict))).collect();
        format!("{:#}\n", json!({ "entries": self.entries, "counts": counts }))
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
    use super::*;

    #[test]
    fn objects_keep_their_order_and_repeated_verdicts_are_left_out() {
        let mut report = Report::default();
        let (b, a) = (Place::object("Kind n/b"), Place::object("Kind n/a"));
        report.exact(&b.at("spec"), "One.");
        report.limited(&a.at("spec").item(0), "Two.");
        report.exact(&b.at("spec"), "One.");
        assert_eq!(
            report.text(),
            "Kind n/b\n  exact       spec: One.\nKind n/a\n  limited     spec[0]: Two.\n\
             1 exact, 1 limited, 0 impossible (2 objects)\n"
        );
        assert!(!report.has_losses());
    }

    #[test]
    fn markup_and_control_characters_of_the_input_are_harmless() {
        let mut report = Report::default();
        report.impossible(&Place::object("Kind n/<b>\u{1b}[2J").at("a|b"), "One\n| two |");
        assert!(report.markdown().contains("## Kind n/&lt;b>\u{fffd}\\[2J\n"), "{}", report.markdown());
        assert!(report.markdown().contains("| a\\|b | impossible | One\u{fffd}\\| two \\| |"));
        assert!(!report.text().contains('\u{1b}'));
    }
}
