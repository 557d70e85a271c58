//! The values of the annotations of an Ingress, by type.

use std::collections::BTreeMap;

use super::{Annotation, AnnotationProblem, Purpose, Support, Unless, annotation, ignored};
use crate::crd::AnnotationDialect;
use crate::model::Hostname;

/// The longest value that is read, in bytes.
const MAX_VALUE: usize = 16 * 1024;

/// The most entries of a list.
const MAX_ENTRIES: usize = 256;

/// Whether a text may be the name of an object: labels of DNS with dots between them.
pub(super) fn is_object_name(name: &str) -> bool {
    Hostname::parse(name).is_ok_and(|parsed| parsed.as_str() == name)
}

fn has_control(text: &str) -> bool {
    text.contains(|letter: char| letter.is_control())
}

/// A truth value as the controller of a dialect reads it; `None` for any other text.
pub fn truth(dialect: AnnotationDialect, text: &str) -> Option<bool> {
    match dialect {
        // `strconv.ParseBool` of Go (`internal/ingress/annotations/parser/main.go`).
        AnnotationDialect::IngressNginx => match text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
            _ => None,
        },
        // `GetBoolAnnotation` compares with `true` (`internal/adc/translator/annotations/types.go`).
        AnnotationDialect::Apisix => match text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
    }
}

impl Unless {
    /// Whether a value asks for nothing.
    fn includes(self, dialect: AnnotationDialect, value: &str) -> bool {
        match self {
            Self::Values(values) => values.contains(&value),
            Self::AllBut(values) => !values.contains(&value),
            Self::Is(wanted) => value.is_empty() || truth(dialect, value) == Some(wanted),
        }
    }
}

/// The annotations of one dialect that an Ingress has, and their problems.
pub(super) struct Values<'a> {
    dialect: AnnotationDialect,
    /// The namespace of the Ingress.
    namespace: &'a str,
    /// The values as they are written.
    by_name: BTreeMap<&'static str, (&'static Annotation, &'a str)>,
    problems: Vec<AnnotationProblem>,
    /// Whether the Ingress has an annotation of the dialect, with an effect or not.
    has_any: bool,
}

impl<'a> Values<'a> {
    /// The annotations of a dialect, without the ones that the Ingress gives up.
    pub(super) fn of(
        dialect: AnnotationDialect,
        namespace: &'a str,
        annotations: &'a BTreeMap<String, String>,
    ) -> Self {
        let ignored = ignored(annotations);
        let mut values =
            Self { dialect, namespace, by_name: BTreeMap::new(), problems: Vec::new(), has_any: false };
        for (annotation, value) in annotations {
            let name = match annotation.split_once('/') {
                Some((domain, name)) if domain == dialect.domain() => name,
                Some(_) | None => continue,
            };
            if !ignored.contains(annotation.as_str()) && !ignored.contains(name) {
                values.add(name, value);
            }
        }
        values
    }

    fn add(&mut self, name: &str, written: &'a str) {
        self.has_any = true;
        let Some(annotation) = self.known(name) else {
            self.ignore(name, "This annotation is unknown and has no effect.");
            return;
        };
        let value = written.trim();
        match annotation.support {
            Support::NoEffect => {}
            Support::Impossible { unless, lacks: _ } if unless.includes(self.dialect, value) => {}
            Support::Impossible { unless: Unless::Is(_), .. }
                if annotation.purpose == Purpose::Tunes && truth(self.dialect, value).is_none() =>
            {
                self.ignore(annotation.name, format!("\"{value}\" is neither true nor false."));
            }
            Support::Impossible { unless: _, lacks } => self.refuse(annotation.name, lacks),
            Support::Exact | Support::Limited(_) if value.len() > MAX_VALUE => {
                self.refuse(annotation.name, format!("The value is longer than {MAX_VALUE} bytes."));
            }
            // The items of a list and the directives of a snippet are checked one by one.
            Support::Exact | Support::Limited(_) if !annotation.has_lines && has_control(value) => {
                self.refuse(annotation.name, "The value contains a control character.");
            }
            Support::Exact | Support::Limited(_) => {
                self.by_name.insert(annotation.name, (annotation, written));
            }
        }
    }

    /// The annotation in the table.
    fn known(&self, name: &str) -> Option<&'static Annotation> {
        annotation(self.dialect, name)
    }

    fn problem(&self, name: &str, purpose: Purpose, message: impl Into<String>) -> AnnotationProblem {
        AnnotationProblem::new(Some(self.whole_name(name)), purpose, message)
    }

    /// The namespace of the Ingress.
    pub(super) const fn namespace(&self) -> &'a str {
        self.namespace
    }

    /// Whether the Ingress has no annotation of the dialect, or gives up all of them.
    pub(super) const fn is_empty(&self) -> bool {
        !self.has_any
    }

    /// The whole name of an annotation.
    pub(super) fn whole_name(&self, name: &str) -> String {
        self.dialect.whole_name(name)
    }

    /// Notes that an annotation cannot be honoured.
    pub(super) fn refuse(&mut self, name: &str, message: impl Into<String>) {
        let purpose = self.known(name).map(|known| known.purpose);
        // A name that is missing in the table closes the Ingress, so that a mistake there opens nothing.
        self.problems.push(self.problem(name, purpose.unwrap_or(Purpose::Protects), message));
    }

    /// Notes that the other controller ignores an annotation, so that nothing is lost without it.
    pub(super) fn ignore(&mut self, name: &str, message: impl Into<String>) {
        let ignored = self.problem(name, Purpose::Tunes, message);
        self.problems.push(AnnotationProblem { is_ignored: true, ..ignored });
    }

    /// Notes that an annotation has a value that the other controller cannot read, either. One that protects the Ingress closes
    /// it all the same.
    fn refuse_unreadable(&mut self, name: &str, message: String) {
        match self.known(name) {
            Some(Annotation { purpose: Purpose::Tunes, .. }) => self.ignore(name, message),
            Some(_) | None => self.refuse(name, message),
        }
    }

    /// Notes that the Ingress is closed, because an annotation cannot be honoured.
    pub(super) fn close(&mut self, name: &str, message: impl Into<String>) {
        self.problems.push(self.problem(name, Purpose::Protects, message));
    }

    /// Notes the difference with which an annotation is honoured.
    pub(super) fn limit(&mut self, name: &str) {
        if let Some((Annotation { support: Support::Limited(difference), .. }, _)) = self.by_name.get(name) {
            self.differ(name, *difference);
        }
    }

    /// Notes a difference with which an annotation is honoured.
    pub(super) fn differ(&mut self, name: &str, difference: impl Into<String>) {
        let difference = self.problem(name, Purpose::Tunes, difference);
        self.problems.push(AnnotationProblem { is_honoured: true, ..difference });
    }

    /// Whether an annotation has a problem.
    pub(super) fn has_problem(&self, name: &str) -> bool {
        let name = self.whole_name(name);
        self.problems
            .iter()
            .any(|problem| !problem.is_honoured && problem.annotation.as_deref() == Some(name.as_str()))
    }

    /// The value of an annotation without the white space around it; `None` if it is missing or blank.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.by_name.get(name).map(|(_, written)| written.trim()).filter(|value| !value.is_empty())
    }

    /// The value of an annotation that other controllers parse as it is written.
    fn scalar(&mut self, name: &str) -> Option<&'a str> {
        let text = self.text(name)?;
        if self.by_name.get(name).is_some_and(|(_, written)| *written != text) {
            self.differ(name, "The other controller ignores the value, because white space is around it.");
        }
        Some(text)
    }

    /// A truth value, which is false without the annotation.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        self.flag_or(name, false)
    }

    /// A truth value. Without a usable value, the default counts.
    pub(super) fn flag_or(&mut self, name: &str, default: bool) -> bool {
        let Some(text) = self.scalar(name) else { return default };
        truth(self.dialect, text).unwrap_or_else(|| {
            self.refuse_unreadable(name, format!("\"{text}\" is neither true nor false."));
            default
        })
    }

    /// A whole number within bounds.
    pub(super) fn number(&mut self, name: &str, bounds: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let text = self.scalar(name)?;
        self.number_of(name, text, bounds)
    }

    /// A number of seconds, from one to a maximum, with or without the unit `s`.
    pub(super) fn seconds(&mut self, name: &str, most: u32) -> Option<u32> {
        let text = self.scalar(name)?;
        self.number_of(name, text.strip_suffix('s').unwrap_or(text), 1..=most)
    }

    fn number_of(&mut self, name: &str, text: &str, bounds: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        if number.is_none() {
            let message =
                format!("\"{text}\" is no whole number from {} to {}.", bounds.start(), bounds.end());
            // ingress-nginx takes its default for text that `strconv.Atoi` cannot parse. APISIX gives up more than the value.
            if self.dialect == AnnotationDialect::IngressNginx && text.parse::<i64>().is_err() {
                self.refuse_unreadable(name, message);
            } else {
                self.refuse(name, message);
            }
        }
        number
    }

    /// The items of a list, without the white space around them: a list may have an item in each line. An item with a
    /// control character is left out. A list that protects the Ingress needs an item. ingress-nginx refuses all requests for
    /// one with an empty item (`ParseIPNets` of `internal/net/ipnet.go`), and APISIX leaves empty items out.
    pub(super) fn list(&mut self, name: &str) -> Option<Vec<&'a str>> {
        let (Annotation { purpose, .. }, value) = *self.by_name.get(name)?;
        let mut entries: Vec<&str> =
            value.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
        let protects = *purpose == Purpose::Protects;
        if entries.is_empty() && protects {
            self.refuse(name, "The list has no entries.");
            return None;
        }
        if value.is_empty() {
            return None;
        }
        let is_of_nginx = self.dialect == AnnotationDialect::IngressNginx;
        if protects && is_of_nginx && value.split(',').any(|item| item.trim().is_empty()) {
            self.refuse(name, "The list has an empty item.");
        }
        if entries.iter().any(|entry| has_control(entry)) {
            self.refuse(name, "An item of the list contains a control character.");
            entries.retain(|entry| !has_control(entry));
        }
        if entries.len() > MAX_ENTRIES {
            self.refuse(name, format!("The list has more than {MAX_ENTRIES} entries."));
            return None;
        }
        Some(entries)
    }

    /// The annotations that are not honoured as they are written.
    pub(super) fn finish(self) -> Vec<AnnotationProblem> {
        self.problems
    }
}
