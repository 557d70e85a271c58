//! The report: a verdict on every field of the input.

mod causes;
mod reason;
mod render;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use serde::{Serialize, Serializer};

pub(crate) use reason::Reason;

/// The format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportFormat {
    /// For terminals.
    #[default]
    Text,
    /// For reviews.
    Markdown,
    /// For programs.
    Json,
}

/// A field of an object of the input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct Place {
    /// Kind, namespace and name. All places in an object share them.
    #[serde(serialize_with = "as_text")]
    pub(crate) object: Arc<str>,
    /// The path of the field; empty for the whole object.
    pub(crate) field: String,
}

fn as_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

impl Place {
    pub(crate) fn object(object: impl Into<Arc<str>>) -> Self {
        Self { object: object.into(), field: String::new() }
    }

    /// A field of this one.
    pub(crate) fn at(&self, name: &str) -> Self {
        let dot = if self.field.is_empty() { "" } else { "." };
        Self { object: self.object.clone(), field: format!("{}{dot}{name}", self.field) }
    }

    /// This place and those that have it as a part, up to the whole object.
    fn with_parents(&self) -> impl Iterator<Item = Self> + use<'_> {
        let ends = self.field.match_indices(['.', '[']).map(|(end, _)| end);
        let ends = std::iter::once(0).chain(ends).chain(std::iter::once(self.field.len()));
        let of = |end: usize| self.field.get(..end).unwrap_or_default().to_owned();
        ends.rev().map(move |end| Self { object: self.object.clone(), field: of(end) })
    }

    /// An item of this list.
    pub(crate) fn item(&self, index: usize) -> Self {
        Self { object: self.object.clone(), field: format!("{}[{index}]", self.field) }
    }
}

/// How far the output does what a field asked for, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// A part of the object was not written, because it would admit requests that the original refuses.
    Withheld,
    /// The output has no counterpart.
    Impossible,
    /// A part of the object was written although it is weaker, because `--allow-weaker` names the object.
    Weaker,
    /// The output comes close; the message says where it differs.
    Limited,
    /// Requests are treated as before.
    Exact,
}

impl Verdict {
    const ALL: [Self; 5] = [Self::Exact, Self::Limited, Self::Impossible, Self::Withheld, Self::Weaker];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Withheld => "withheld",
            Self::Impossible => "impossible",
            Self::Weaker => "weaker",
            Self::Limited => "limited",
            Self::Exact => "exact",
        }
    }
}

/// A verdict on a field. The message never quotes a value that may be secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) verdict: Verdict,
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

/// The verdicts by object, in the order in which the conversion names the objects.
#[derive(Debug, Default)]
pub struct Report {
    objects: IndexMap<Arc<str>, IndexSet<Entry>>,
    blocking: usize,
    /// The values that the conversion read, by object.
    read: HashMap<Arc<str>, HashSet<String>>,
    /// The names of fields in the input, for objects that were converted from another version.
    renamed: BTreeMap<String, fn(&str) -> String>,
}

impl Report {
    pub(crate) fn exact(&mut self, place: &Place, message: impl Into<String>) {
        self.add(place, Verdict::Exact, Reason::SameMeaning, message);
    }

    /// A verdict on a field with all fields in it, whether the conversion reads them or not.
    pub(crate) fn exact_whole(&mut self, place: &Place, message: impl Into<String>) {
        self.read(place);
        self.exact(place, message);
    }

    pub(crate) fn limited(&mut self, place: &Place, reason: Reason, message: impl Into<String>) {
        self.add(place, Verdict::Limited, reason, message);
    }

    /// A loss that admits no further request: the rest of the object is written.
    pub(crate) fn impossible(&mut self, place: &Place, reason: Reason, message: impl Into<String>) {
        self.add(place, Verdict::Impossible, reason, message);
    }

    /// A loss after which the output might admit or forward requests that the original does not: the part of the object
    /// is not written.
    pub(crate) fn blocking(&mut self, place: &Place, reason: Reason, message: impl Into<String>) {
        self.blocking += 1;
        self.add(place, Verdict::Impossible, reason, message);
    }

    /// Notes that a part of an object is not written.
    pub(crate) fn withhold(&mut self, place: &Place, message: impl Into<String>) {
        self.add(place, Verdict::Withheld, Reason::NotWritten, message);
    }

    /// Likewise, of an object that is written as a whole once `--allow-weaker` names it.
    pub(crate) fn withhold_until_named(&mut self, place: &Place, message: &str) {
        let object = place.object.replacen(' ', "/", 1);
        let how = format!("--allow-weaker {object} writes it without the parts that are impossible.");
        self.withhold(place, format!("{message} {how}"));
    }

    /// The number of losses up to now; more of them later mean that a part is not to be written.
    pub(crate) const fn losses(&self) -> usize {
        self.blocking
    }

    pub(crate) fn add(
        &mut self,
        place: &Place,
        verdict: Verdict,
        reason: Reason,
        message: impl Into<String>,
    ) {
        let entry = Entry { place: self.as_written(place), verdict, reason, message: message.into() };
        // A plugin configuration that several rules use has the same verdicts each time.
        self.objects.entry(place.object.clone()).or_default().insert(entry);
    }

    /// Reports problems of the output at places whose loss the report does not explain, in place of their exact
    /// verdicts. Objects without any entry have no part in the migration.
    pub(crate) fn overrule(&mut self, problems: &BTreeMap<Place, (Reason, String)>) {
        let problems: BTreeMap<Place, &(Reason, String)> =
            problems.iter().map(|(place, problem)| (self.as_written(place), problem)).collect();
        let is_loss = |entry: &&Entry| !matches!(entry.verdict, Verdict::Exact | Verdict::Limited);
        let losses = self.entries().filter(is_loss);
        let losses: BTreeSet<&Place> = losses.map(|entry| &entry.place).collect();
        let above: BTreeSet<Place> = losses.iter().flat_map(|loss| loss.with_parents()).collect();
        let is_explained = |place: &Place| {
            above.contains(place) || place.with_parents().any(|parent| losses.contains(&parent))
        };
        let open = problems.keys().filter(|place| self.objects.contains_key(&place.object));
        let open: BTreeSet<Place> = open.filter(|place| !is_explained(place)).cloned().collect();
        let objects: BTreeSet<&str> = open.iter().map(|place| &*place.object).collect();
        for (_, entries) in self.objects.iter_mut().filter(|(object, _)| objects.contains(&***object)) {
            let is_overruled = |entry: &Entry| {
                entry.verdict == Verdict::Exact
                    && entry.place.with_parents().any(|parent| open.contains(&parent))
            };
            entries.retain(|entry| !is_overruled(entry));
        }
        for place in &open {
            if let Some((reason, message)) = problems.get(place) {
                self.add(place, Verdict::Impossible, *reason, message);
            }
        }
    }

    /// Reports a limitation of the output. Objects without any entry have no part in the migration.
    pub(crate) fn limit(&mut self, place: &Place, message: &str) {
        if self.objects.contains_key(&place.object) {
            self.limited(place, Reason::Limitation, message);
        }
    }

    /// Gives the fields of an object the names that they have in the input, in all later entries.
    pub(crate) fn rename_fields(&mut self, object: &str, rename: fn(&str) -> String) {
        self.renamed.insert(object.to_owned(), rename);
    }

    /// The name of a field in the input.
    pub(crate) fn field_as_written<'a>(&self, object: &str, field: &'a str) -> Cow<'a, str> {
        self.renamed.get(object).map_or(Cow::Borrowed(field), |rename| Cow::Owned(rename(field)))
    }

    fn as_written(&self, place: &Place) -> Place {
        let field = self.field_as_written(&place.object, &place.field).into_owned();
        Place { object: place.object.clone(), field }
    }

    /// Notes that the conversion read a value, which thereby is part of the output or has a verdict.
    pub(crate) fn read(&mut self, place: &Place) {
        match self.read.get_mut(&place.object) {
            Some(fields) => fields.insert(place.field.clone()),
            None => self.read.entry(place.object.clone()).or_default().insert(place.field.clone()),
        };
    }

    /// Whether the conversion read a value.
    pub(crate) fn is_read(&self, object: &str, field: &str) -> bool {
        self.read.get(object).is_some_and(|fields| fields.contains(field))
    }

    /// Whether the conversion read any value of an object.
    pub(crate) fn has_read(&self, object: &str) -> bool {
        self.read.contains_key(object)
    }

    /// The entries about an object.
    pub(crate) fn of_object(&self, object: &str) -> impl Iterator<Item = &Entry> {
        self.objects.get(object).into_iter().flatten()
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.objects.values().flatten()
    }

    /// Whether a part of an object is impossible.
    pub(crate) fn has_impossible(&self, object: &str) -> bool {
        self.of_object(object).any(|entry| entry.verdict == Verdict::Impossible)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.entries().filter(|entry| entry.verdict == verdict).count()
    }

    /// Whether the output lacks something that the user has not accepted by `--allow-weaker`.
    pub fn has_losses(&self) -> bool {
        self.objects.values().any(|entries| {
            let has = |verdict| entries.iter().any(|entry| entry.verdict == verdict);
            has(Verdict::Withheld) || (has(Verdict::Impossible) && !has(Verdict::Weaker))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_keep_their_order_and_repeated_verdicts_are_left_out() {
        let mut report = Report::default();
        let (b, a) = (Place::object("Kind n/b"), Place::object("Kind n/a"));
        report.exact(&b.at("spec"), "One.");
        report.limited(&a.at("spec").item(0), Reason::NoEffect, "Two.");
        report.exact(&b.at("spec"), "One.");
        assert_eq!(
            report.render(ReportFormat::Text, true),
            "Kind n/b\n  exact       spec: One.\nKind n/a\n  limited     spec[0]: Two.\n\
             1 exact, 1 limited, 0 impossible (2 objects)\n"
        );
        assert!(!report.has_losses());
    }

    #[test]
    fn a_problem_of_the_output_replaces_what_is_exact_in_its_place() {
        let place = Place::object("Kind n/a");
        let report = || {
            let mut report = Report::default();
            report.exact(&place.at("spec").at("host"), "One.");
            report.exact(&place.at("spec.hosts"), "Two.");
            report.limited(&place.at("spec").item(1), Reason::NoEffect, "Three.");
            report.exact(&place.at("spec").item(1), "Four.");
            report.exact(&Place::object("Kind n/b").at("spec"), "Five.");
            report
        };
        let named = |mut report: Report, fields: &[&str]| {
            let problem = |field: &&str| {
                let place = Place { field: (*field).to_owned(), ..place.clone() };
                (place, (Reason::NotServed, format!("Not {field}.")))
            };
            report.overrule(&fields.iter().map(problem).collect());
            report.entries().map(|entry| entry.message.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(named(report(), &["spec"]), "Three. Not spec. Five.");
        assert_eq!(
            named(report(), &["spec.host", "spec.other"]),
            "Two. Three. Four. Not spec.host. Not spec.other. Five."
        );
        assert_eq!(named(report(), &[""]), "Three. Not . Five.");
        // A loss at, above or below the place explains the problem.
        for loss in ["spec.host", "spec", "", "spec.host.name"] {
            let mut explained = report();
            let at = Place { field: loss.to_owned(), ..place.clone() };
            explained.impossible(&at, Reason::NoEffect, "Lost.");
            assert_eq!(named(explained, &["spec.host"]), "One. Two. Three. Four. Lost. Five.", "{loss}");
        }
        let mut other = Report::default();
        other.overrule(&[(place.clone(), (Reason::NotServed, "Not of the migration.".to_owned()))].into());
        assert_eq!(other.entries().count(), 0);
    }

    #[test]
    fn markup_and_control_characters_of_the_input_are_harmless() {
        let mut report = Report::default();
        report.impossible(&Place::object("Kind n/<b>\u{1b}[2J").at("a|b"), Reason::NoEffect, "One\n| two |");
        assert!(
            report.render(ReportFormat::Markdown, true).contains("### Kind n/&lt;b>\u{fffd}\\[2J\n"),
            "{}",
            report.render(ReportFormat::Markdown, true)
        );
        assert!(
            report
                .render(ReportFormat::Markdown, true)
                .contains("| a\\|b | impossible | One\u{fffd}\\| two \\| |")
        );
        assert!(!report.render(ReportFormat::Text, true).contains('\u{1b}'));
    }
}
