//! The values of the annotations of an Ingress, by type.

use std::collections::BTreeMap;

use super::{Annotation, Fault, Purpose, Support, annotation, ignored};
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

/// The annotations of one dialect that an Ingress has, and their faults.
pub(super) struct Values<'a> {
    dialect: AnnotationDialect,
    by_name: BTreeMap<&'static str, (&'static Annotation, &'a str)>,
    faults: Vec<Fault>,
    /// Whether the Ingress has an annotation of the dialect, with an effect or not.
    has_any: bool,
}

impl<'a> Values<'a> {
    /// The annotations of a dialect, without the ones that the Ingress gives up.
    pub(super) fn of(dialect: AnnotationDialect, annotations: &'a BTreeMap<String, String>) -> Self {
        let ignored = ignored(annotations);
        let mut values = Self { dialect, by_name: BTreeMap::new(), faults: Vec::new(), has_any: false };
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

    fn add(&mut self, name: &str, value: &'a str) {
        self.has_any = true;
        let Some(annotation) = self.known(name) else {
            let message = "This annotation is unknown and has no effect.";
            self.faults.push(self.fault(name, Purpose::Tunes, message));
            return;
        };
        let value = value.trim();
        match annotation.support {
            Support::NoEffect => {}
            Support::Impossible { unless, lacks: _ } if unless.contains(&value) => {}
            Support::Impossible { unless: _, lacks } => self.refuse(annotation.name, lacks),
            Support::Exact | Support::Limited(_) if value.len() > MAX_VALUE => {
                self.refuse(annotation.name, format!("The value is longer than {MAX_VALUE} bytes."));
            }
            Support::Exact | Support::Limited(_) if value.contains(|letter: char| letter.is_control()) => {
                self.refuse(annotation.name, "The value contains a control character.");
            }
            Support::Exact | Support::Limited(_) => {
                self.by_name.insert(annotation.name, (annotation, value));
            }
        }
    }

    /// The annotation in the table.
    fn known(&self, name: &str) -> Option<&'static Annotation> {
        annotation(self.dialect, name)
    }

    fn fault(&self, name: &str, purpose: Purpose, message: impl Into<String>) -> Fault {
        let annotation = Some(self.whole_name(name));
        Fault { annotation, purpose, message: message.into(), is_honoured: false }
    }

    /// Whether the Ingress has no annotation of the dialect, or gives up all of them.
    pub(super) const fn is_empty(&self) -> bool {
        !self.has_any
    }

    /// The whole name of an annotation.
    pub(super) fn whole_name(&self, name: &str) -> String {
        format!("{}/{name}", self.dialect.domain())
    }

    /// Notes that an annotation cannot be honoured.
    pub(super) fn refuse(&mut self, name: &str, message: impl Into<String>) {
        let purpose = self.known(name).map(|known| known.purpose);
        // A name that is missing in the table closes the Ingress, so that a mistake there opens nothing.
        self.faults.push(self.fault(name, purpose.unwrap_or(Purpose::Protects), message));
    }

    /// Notes the difference with which an annotation is honoured.
    pub(super) fn limit(&mut self, name: &str) {
        if let Some((Annotation { support: Support::Limited(difference), .. }, _)) = self.by_name.get(name) {
            let difference = self.fault(name, Purpose::Tunes, *difference);
            self.faults.push(Fault { is_honoured: true, ..difference });
        }
    }

    /// The value of an annotation; `None` if it is missing or empty.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.by_name.get(name).map(|(_, value)| *value).filter(|value| !value.is_empty())
    }

    /// A value of `true` or `false`, which is false without the annotation.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        self.flag_or(name, false)
    }

    /// A value of `true` or `false`. Without a usable value, the default counts.
    pub(super) fn flag_or(&mut self, name: &str, default: bool) -> bool {
        match self.text(name) {
            None => default,
            Some("false") => false,
            Some("true") => true,
            Some(other) => {
                self.refuse(name, format!("\"{other}\" is neither true nor false."));
                default
            }
        }
    }

    /// A whole number within bounds.
    pub(super) fn number(&mut self, name: &str, bounds: std::ops::RangeInclusive<u32>) -> Option<u32> {
        self.number_of(name, self.text(name)?, bounds)
    }

    /// A number of seconds, from one to a maximum, with or without the unit `s`.
    pub(super) fn seconds(&mut self, name: &str, most: u32) -> Option<u32> {
        let text = self.text(name)?;
        self.number_of(name, text.strip_suffix('s').unwrap_or(text), 1..=most)
    }

    fn number_of(&mut self, name: &str, text: &str, bounds: std::ops::RangeInclusive<u32>) -> Option<u32> {
        match text.parse() {
            Ok(number) if bounds.contains(&number) => Some(number),
            Ok(_) | Err(_) => {
                let message =
                    format!("\"{text}\" is no whole number from {} to {}.", bounds.start(), bounds.end());
                self.refuse(name, message);
                None
            }
        }
    }

    /// The entries of a list with commas. A list that protects the Ingress needs an entry.
    pub(super) fn list(&mut self, name: &str) -> Option<Vec<&'a str>> {
        let (Annotation { purpose, .. }, value) = *self.by_name.get(name)?;
        let entries: Vec<&str> = value.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
        if entries.is_empty() && *purpose == Purpose::Protects {
            self.refuse(name, "The list has no entries.");
            return None;
        }
        if value.is_empty() {
            return None;
        }
        if entries.len() > MAX_ENTRIES {
            self.refuse(name, format!("The list has more than {MAX_ENTRIES} entries."));
            return None;
        }
        Some(entries)
    }

    /// The annotations that are not honoured as they are written.
    pub(super) fn finish(self) -> Vec<Fault> {
        self.faults
    }
}
