//! The account of the input: a field without a verdict gets one, so that nothing is lost in silence.
//!
//! A field is accounted for by one of these:
//!
//! - an entry about it, or about the list or map that it is in;
//! - an entry about a field around it that says that the whole is limited, impossible or withheld;
//! - an entry about a field around it that says that the whole is exact, if the conversion read the field;
//! - the same value in the output, for objects that stay.
//!
//! An entry about the whole object counts if the object is impossible or withheld.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::Value;

use crate::report::{Place, Reason, Report, Verdict};
use crate::source::{LAST_APPLIED, SERVER_FIELDS, Sources};

/// The input, and the objects that `--allow-weaker` names. It holds secrets, so the type has no `Debug`.
pub(crate) struct Account {
    /// The objects of the predecessors.
    written: Vec<(Place, Value)>,
    /// The objects that stay.
    kept: BTreeMap<ObjectKey, Arc<Value>>,
    allow_weaker: BTreeSet<(String, ObjectName)>,
}

impl Account {
    pub(super) fn new(mut sources: Sources, allow_weaker: BTreeSet<(String, ObjectName)>) -> Self {
        Self { written: sources.take_written(), kept: sources.kept, allow_weaker }
    }

    /// Whether the input has an object of this value, which thus stays as it is.
    pub(crate) fn is_unchanged(&self, key: &ObjectKey, value: &Arc<Value>) -> bool {
        self.kept.get(key) == Some(value)
    }

    /// Gives each field without a verdict one, and names the objects that stay in the output.
    pub(crate) fn complete(&self, output: &[(ObjectKey, Arc<Value>)], report: &mut Report) {
        for (place, value) in &self.written {
            complete_object(place, value, None, report);
            if report.of_object(&place.object).next().is_none() {
                let message = "The object asks for nothing, so it becomes nothing.";
                report.limited(place, Reason::NoEffect, message);
            }
        }
        let output: BTreeMap<&ObjectKey, &Arc<Value>> = output
            .iter()
            .map(|(key, value)| (key, value))
            .filter(|(key, _)| self.kept.contains_key(key))
            .collect();
        for (key, value) in &self.kept {
            let place = Place::object(key.to_string());
            let stays = output.get(key).copied();
            if let Some(output) = stays {
                annotations(key.kind, &place, value, report);
                let is_whole = output == value
                    && !report.of_object(&place.object).any(|entry| entry.place.field == "apiVersion");
                let message = if is_whole {
                    "The object stays as it is."
                } else {
                    "The rest of the object stays as it is."
                };
                report.exact(&place, message);
            }
            complete_object(&place, value, stays.map(Arc::as_ref), report);
        }
        self.note_weaker(report);
    }

    /// Reports the objects of `--allow-weaker`.
    fn note_weaker(&self, report: &mut Report) {
        for (kind, name) in &self.allow_weaker {
            let place = Place::object(format!("{kind} {name}"));
            if report.has_impossible(&place.object) {
                let message = "The object is written without the parts that are impossible, because --allow-weaker names it.";
                report.add(&place, Verdict::Weaker, Reason::WeakerProtection, message);
            } else {
                report.limited(&place, Reason::NoEffect, "--allow-weaker has no effect on the object.");
            }
        }
    }
}

/// Names the annotations of an object that stays, as far as a program that serves requests reads them.
fn annotations(kind: Kind, place: &Place, value: &Value, report: &mut Report) {
    let all = value.pointer("/metadata/annotations").and_then(Value::as_object);
    for name in all.into_iter().flatten().map(|(name, _)| name) {
        let domain = name.split_once('/').map_or("", |(domain, _)| domain);
        let at = place.at(&format!("metadata.annotations[{name}]"));
        if TOPOLOGY.contains(&name.as_str()) {
            let message = "PingSIX sends requests to the endpoints of all zones.";
            report.limited(&at, Reason::DifferentConnection, message);
        } else if super::ingress::is_foreign(name) && kind == Kind::Service {
            let message = "The annotation stays with the Service, and PingSIX does not read it there.";
            report.limited(&at, Reason::ForeignAnnotation, message);
        } else if super::ingress::is_foreign(name) || domain.ends_with("kubernetes.io") {
            report.exact(&at, "The annotation stays with the object, for the program that reads it.");
        }
    }
}

/// The annotations by which a Service prefers endpoints of the client's zone.
const TOPOLOGY: [&str; 2] =
    ["service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"];

/// How far a field is accounted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Not,
    /// With the fields in it that were read.
    Exact,
    /// With all fields in it.
    Whole,
}

/// The cause for which a field lacks a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// The value is null or empty.
    Empty,
    /// The field was read, and its effect is part of others.
    Read,
    /// The field is metadata of an object that is not written again.
    Metadata,
    Annotation,
    /// The field was not read.
    Lost,
}

impl Missing {
    fn report(self, place: &Place, report: &mut Report) {
        match self {
            Self::Empty => report.exact(place, "The value is empty, which is the same as no value."),
            Self::Read => report.exact(place, "The field counts together with those beside it."),
            Self::Metadata => report.exact(
                place,
                "No request depends on the field, and the objects of the output do not have it.",
            ),
            Self::Annotation => {
                let message = "The annotation is not part of the output, because no object of the output depends on it.";
                report.limited(place, Reason::NoEffect, message);
            }
            Self::Lost => {
                let message = "The conversion did not read the field, so its effect may be lost.";
                report.impossible(place, Reason::UnknownField, message);
            }
        }
    }
}

/// The walk through an object.
struct Walk<'a> {
    report: &'a Report,
    object: &'a str,
    named: BTreeMap<&'a str, Named>,
    /// Whether the object is read field by field, and is not among the output.
    is_read: bool,
    missing: Vec<(String, Missing)>,
}

fn complete_object(place: &Place, value: &Value, output: Option<&Value>, report: &mut Report) {
    let mut named: BTreeMap<&str, Named> = BTreeMap::new();
    for entry in report.of_object(&place.object) {
        let field = entry.place.field.as_str();
        let of_entry = match entry.verdict {
            Verdict::Exact | Verdict::Limited | Verdict::Weaker if field.is_empty() => Named::Not,
            // The entry is about a second object of the name.
            _ if entry.reason == Reason::Duplicate && field.is_empty() => Named::Not,
            Verdict::Exact => Named::Exact,
            Verdict::Limited | Verdict::Impossible | Verdict::Withheld | Verdict::Weaker => Named::Whole,
        };
        let known = named.entry(field).or_insert(Named::Not);
        *known = of_entry.max(*known);
    }
    let is_read = output.is_none() && report.has_read(&place.object);
    let mut walk = Walk { report, object: &place.object, named, is_read, missing: Vec::new() };
    walk.visit_object(value, output);
    for (field, missing) in walk.missing {
        missing.report(&place.at(&field), report);
    }
}

impl Walk<'_> {
    fn named(&self, field: &str) -> Named {
        let field = self.report.field_as_written(self.object, field);
        self.named.get(&*field).copied().unwrap_or(Named::Not)
    }

    fn visit_object(&mut self, value: &Value, output: Option<&Value>) {
        if self.named("") == Named::Whole || output == Some(value) {
            return;
        }
        for (name, value) in value.as_object().into_iter().flatten() {
            let output = output.map(|output| &output[name.as_str()]);
            match name.as_str() {
                "apiVersion" | "kind" | "status" => {}
                "metadata" if output.is_none() => self.visit_metadata(value),
                _ => self.visit(name, value, output, (Named::Not, Named::Not)),
            }
        }
    }

    /// The metadata of an object that is not written again.
    fn visit_metadata(&mut self, metadata: &Value) {
        for (name, value) in metadata.as_object().into_iter().flatten() {
            let field = format!("metadata.{name}");
            let is_of_server = SERVER_FIELDS.contains(&name.as_str()) || name == "selfLink";
            if is_of_server || matches!(name.as_str(), "name" | "namespace") {
                continue;
            }
            match value.as_object().filter(|values| name == "annotations" && !values.is_empty()) {
                Some(annotations) => {
                    for name in annotations.keys().filter(|name| *name != LAST_APPLIED) {
                        let field = format!("{field}[{name}]");
                        if self.named(&field) == Named::Not {
                            self.missing.push((field, Missing::Annotation));
                        }
                    }
                }
                None if self.named(&field) == Named::Not => self.missing.push((field, Missing::Metadata)),
                None => {}
            }
        }
    }

    /// A field, with the accounts of the field that it is in, and of all fields around it.
    fn visit(
        &mut self,
        field: &str,
        value: &Value,
        output: Option<&Value>,
        (parent, around): (Named, Named),
    ) {
        let own = self.named(field);
        let is_read = self.report.is_read(self.object, field);
        let is_leaf = !(value.is_object() || value.is_array());
        if own == Named::Whole || (own == Named::Exact && (is_read || is_leaf)) || output == Some(value) {
            return;
        }
        let around = around.max(own);
        if let Some(fields) = value.as_object().filter(|fields| !fields.is_empty()) {
            for (name, value) in fields {
                let output = output.map(|output| &output[name.as_str()]);
                self.visit(&format!("{field}.{name}"), value, output, (own, around));
            }
        } else if let Some(items) = value.as_array().filter(|items| !items.is_empty()) {
            for (index, value) in items.iter().enumerate() {
                let output = output.map(|output| &output[index]);
                self.visit(&format!("{field}[{index}]"), value, output, (own, around));
            }
        } else if parent != Named::Exact && (around != Named::Exact || (self.is_read && !is_read)) {
            let is_empty = value.is_null() || !is_leaf || value == "";
            let missing = match (is_read, is_empty) {
                (true, _) => Missing::Read,
                (false, true) => Missing::Empty,
                (false, false) => Missing::Lost,
            };
            self.missing.push((field.to_owned(), missing));
        }
    }
}

#[cfg(test)]
mod tests;
