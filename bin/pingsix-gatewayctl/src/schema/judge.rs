//! The judgement of one object.

use std::collections::{BTreeSet, VecDeque};

use pingsix_translate::Kind;
use serde_json::Value;

use super::definition::{Form, Node, definition};
use super::format::Format;
use super::limits::{Limit, unit};
use super::similar::similar;
use crate::finding::reason;

/// The most reported problems of an object.
const MAX_PROBLEMS: usize = 64;

/// Something for which an API server, or `kubectl apply`, refuses an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaProblem {
    pub(crate) field: String,
    pub(crate) reason: &'static str,
    /// Sentences. They quote no value that may be secret.
    pub(crate) message: String,
}

/// The problems of an object, the outermost of each value. The effort is that of the object.
pub(crate) fn problems(kind: Kind, object: &Value) -> Vec<SchemaProblem> {
    let definition = definition(kind);
    let is_secret = matches!(kind, Kind::Secret | Kind::ConfigMap);
    let mut judge = Judge { kind, definition, is_secret, path: String::new(), problems: Vec::new() };
    judge.value(object, definition);
    judge.problems
}

struct Judge<'d> {
    kind: Kind,
    definition: &'d Node,
    /// Whether values are not quoted.
    is_secret: bool,
    path: String,
    problems: Vec<SchemaProblem>,
}

impl Judge<'_> {
    fn problem(&mut self, reason: &'static str, message: String) {
        self.problems.push(SchemaProblem { field: self.path.clone(), reason, message });
    }

    /// Judges a value below the present one.
    fn below(&mut self, step: &str, judge: impl FnOnce(&mut Self)) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let length = self.path.len();
        if length > 0 && !step.starts_with('[') && !step.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(step);
        judge(self);
        self.path.truncate(length);
    }

    fn value(&mut self, value: &Value, node: &Node) {
        let before = self.problems.len();
        match (&node.form, value) {
            // An API server drops nulls.
            (_, Value::Null) => return,
            (Form::Any, _)
            | (Form::Boolean, Value::Bool(_))
            | (Form::Number, Value::Number(_))
            | (Form::IntegerOrText, Value::Number(_) | Value::String(_)) => {}
            (Form::Integer, Value::Number(number)) if number.is_i64() || number.is_u64() => {
                self.number(value, node);
            }
            (Form::Text(choices), Value::String(text)) => self.text(text, choices, node),
            (Form::List(item), Value::Array(items)) => self.list(items, item, node),
            (Form::Map(entry), Value::Object(fields)) => {
                if let Some(most) = node.limits.iter().find_map(|limit| match limit {
                    Limit::Entries(most) if fields.len() as u64 > *most => Some(*most),
                    _ => None,
                }) {
                    self.problem(
                        reason::INVALID_FIELD,
                        format!("The map has {} entries; at most {most} are allowed.", fields.len()),
                    );
                }
                for (name, value) in fields {
                    self.below(name, |judge| judge.value(value, entry));
                }
            }
            (Form::Object { fields, required }, Value::Object(values)) => {
                // A misspelled field is one problem.
                let unknown =
                    values.iter().filter(|(name, value)| !fields.contains_key(*name) && !value.is_null());
                let unknown = unknown.take(MAX_PROBLEMS);
                let meant: Vec<&str> = unknown
                    .filter_map(|(name, _)| similar(name, fields.keys().map(String::as_str)))
                    .collect();
                let is_absent = |name: &&String| values.get(*name).is_none_or(Value::is_null);
                for name in required.iter().filter(is_absent).filter(|name| !meant.contains(&name.as_str())) {
                    self.below(name, |judge| {
                        judge.problem(reason::DOES_NOT_DECODE, format!("The field {name} is required."));
                    });
                }
                for (name, value) in values {
                    match fields.get(name) {
                        Some(field) => self.below(name, |judge| judge.value(value, field)),
                        None => self.unknown(name, value, fields.keys().map(String::as_str)),
                    }
                }
            }
            (
                Form::Boolean
                | Form::Integer
                | Form::Number
                | Form::IntegerOrText
                | Form::Text(_)
                | Form::List(_)
                | Form::Map(_)
                | Form::Object { .. },
                _,
            ) => {
                let message = self.wrong_form(value, node);
                self.problem(reason::DOES_NOT_DECODE, message);
            }
        }
        // A rule about values with problems would report the problems again.
        if self.problems.len() == before {
            for rule in &node.rules {
                if let Some((field, message)) = (rule.violation)(value) {
                    self.below(&field, |judge| judge.problem(reason::INVALID_FIELD, message));
                }
            }
        }
    }

    fn number(&mut self, value: &Value, node: &Node) {
        // A number beyond i64 is beyond every limit.
        let number = value.as_i64().unwrap_or(i64::MAX);
        for limit in &node.limits {
            let message = match limit {
                Limit::Range(least, greatest) if number < *least || number > *greatest => {
                    match (*least, *greatest) {
                        (least, i64::MAX) => {
                            format!("The number {value} is too small; the least is {least}.")
                        }
                        (i64::MIN, greatest) => {
                            format!("The number {value} is too large; the greatest is {greatest}.")
                        }
                        (least, greatest) => format!("The number {value} is not from {least} to {greatest}."),
                    }
                }
                Limit::Numbers(allowed) if !allowed.contains(&number) => {
                    let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                    format!("The number {value} is none of {}.", allowed.join(", "))
                }
                _ => continue,
            };
            return self.problem(reason::INVALID_FIELD, message);
        }
    }

    fn text(&mut self, text: &str, choices: &[String], node: &Node) {
        if !choices.is_empty() && !choices.iter().any(|choice| choice == text) {
            let message = self.no_choice(text, choices.iter().map(String::as_str));
            return self.problem(reason::DOES_NOT_DECODE, message);
        }
        let length = text.chars().count() as u64;
        let shown =
            if self.may_be_secret() || length > 253 { "The value".to_owned() } else { format!("{text:?}") };
        for limit in &node.limits {
            let message = match limit {
                Limit::Length(least, _) if length < *least => "The text is empty.".to_owned(),
                Limit::Length(_, most) if length > *most => {
                    format!("The text has {length} characters; at most {most} are allowed.")
                }
                Limit::OneOf(choices) if !choices.contains(&text) => {
                    let message = self.no_choice(text, choices.iter().copied());
                    return self.problem(reason::DOES_NOT_DECODE, message);
                }
                Limit::Format(format) if !format.holds(text) => {
                    let lower = text.to_ascii_lowercase();
                    let advice = if format.holds(&lower) && lower != text {
                        format!(" Write {lower}.")
                    } else {
                        String::new()
                    };
                    format!("{shown} has to be {}.{advice}", format.in_words())
                }
                _ => continue,
            };
            return self.problem(reason::INVALID_FIELD, message);
        }
        if let Some(pattern) = node.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            self.problem(reason::INVALID_FIELD, format!("{shown} has to match the pattern {pattern}."));
        }
    }

    fn no_choice<'c>(&self, text: &str, choices: impl Iterator<Item = &'c str> + Clone) -> String {
        let listed = choices.clone().collect::<Vec<_>>().join(", ");
        let advice =
            similar(text, choices).map(|choice| format!(" Did you mean {choice}?")).unwrap_or_default();
        let shown = if self.may_be_secret() || text.len() > 63 {
            "The value".to_owned()
        } else {
            format!("{text:?}")
        };
        format!("{shown} is none of {listed}.{advice}")
    }

    fn list(&mut self, items: &[Value], item: &Node, node: &Node) {
        let count = items.len() as u64;
        for limit in &node.limits {
            match limit {
                Limit::Items(least, _) if count < *least => {
                    self.problem(
                        reason::INVALID_FIELD,
                        format!("The list has {count} entries; at least {least} has to be there."),
                    );
                }
                Limit::Items(_, most) if count > *most => {
                    self.problem(
                        reason::INVALID_FIELD,
                        format!("The list has {count} entries; at most {most} are allowed."),
                    );
                }
                Limit::Set | Limit::Key(_) => {
                    let key = |item: &Value| match limit {
                        Limit::Key(field) => {
                            item.get(*field).filter(|value| !value.is_null()).map(ToString::to_string)
                        }
                        _ => Some(item.to_string()),
                    };
                    let mut seen = BTreeSet::new();
                    let again = items.iter().position(|item| key(item).is_some_and(|key| !seen.insert(key)));
                    if let Some(index) = again {
                        let step = match limit {
                            Limit::Key(field) => format!("[{index}].{field}"),
                            _ => format!("[{index}]"),
                        };
                        let message = "Another entry of the list has the same value.".to_owned();
                        self.below(&step, |judge| judge.problem(reason::INVALID_FIELD, message));
                    }
                }
                _ => {}
            }
        }
        for (index, value) in items.iter().enumerate() {
            self.below(&format!("[{index}]"), |judge| judge.value(value, item));
        }
    }

    fn unknown<'f>(&mut self, name: &str, value: &Value, fields: impl Iterator<Item = &'f str>) {
        // The API server once wrote this field of metadata, and an empty value says nothing.
        let is_silent = value.is_null() || (self.path == "metadata" && name == "clusterName");
        if is_silent || self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let advice = match similar(name, fields) {
            Some(field) => format!(" Did you mean {field}?"),
            None => self
                .other_place(name)
                .map(|place| format!(" A field of this name belongs to {place}."))
                .unwrap_or_default(),
        };
        self.below(name, |judge| {
            let message =
                format!("The API has no field {}, so kubectl refuses the object.{advice}", judge.path);
            judge.problem(reason::UNKNOWN_FIELD, message);
        });
    }

    /// The outermost place with a field of a name, if there is one such place.
    fn other_place(&self, name: &str) -> Option<String> {
        let mut level: VecDeque<(String, &Node)> = VecDeque::from([(String::new(), self.definition)]);
        while !level.is_empty() {
            let mut found = None;
            let mut next = VecDeque::new();
            for (path, node) in level {
                match &node.form {
                    Form::Object { fields, .. } => {
                        if fields.contains_key(name) && found.replace(path.clone()).is_some() {
                            return None;
                        }
                        let dot = if path.is_empty() { "" } else { "." };
                        next.extend(fields.iter().map(|(field, node)| (format!("{path}{dot}{field}"), node)));
                    }
                    Form::List(item) => next.push_back((format!("{path}[]"), &**item)),
                    _ => {}
                }
            }
            if let Some(place) = found {
                return Some(if place.is_empty() { format!("the {} itself", self.kind) } else { place });
            }
            level = next;
        }
        None
    }

    fn may_be_secret(&self) -> bool {
        // Headers may be credentials.
        let mut last = self.path.rsplit('.');
        let is_header = last.next() == Some("value") && last.next() != Some("path");
        self.is_secret || is_header || self.path.split(['.', '[']).any(|part| matches!(part, "set" | "add"))
    }

    fn wrong_form(&self, value: &Value, node: &Node) -> String {
        let field = self.path.rsplit('.').next().unwrap_or_default();
        let format = node.limits.iter().find_map(|limit| match limit {
            Limit::Format(format) => Some(*format),
            _ => None,
        });
        let expected = match &node.form {
            Form::Any => "of any form".to_owned(),
            Form::Boolean => "true or false".to_owned(),
            Form::Integer => match unit(field) {
                Some(unit) => format!("an integer of {unit}"),
                None => "an integer".to_owned(),
            },
            Form::Number => "a number".to_owned(),
            Form::IntegerOrText => "an integer or a text".to_owned(),
            Form::Text(choices) if !choices.is_empty() => format!("one of {}", choices.join(", ")),
            Form::Text(_) if format == Some(Format::Duration) => Format::Duration.in_words().to_owned(),
            Form::Text(_) => "a string".to_owned(),
            Form::List(_) => "a list".to_owned(),
            Form::Map(_) | Form::Object { .. } => "an object".to_owned(),
        };
        // A credential may stand in the place of an object.
        let is_scalar = !matches!(node.form, Form::List(_) | Form::Map(_) | Form::Object { .. });
        let shown = shown(value, is_scalar && !self.may_be_secret());
        let advice = match (&node.form, value) {
            (Form::Text(choices), Value::Bool(_) | Value::Number(_))
                if choices.is_empty() && format != Some(Format::Duration) =>
            {
                if self.may_be_secret() {
                    "; write it in quotes".to_owned()
                } else {
                    format!("; write \"{value}\" in quotes")
                }
            }
            (Form::Integer, Value::String(text)) if text.parse::<i64>().is_ok() && !self.may_be_secret() => {
                format!("; write {text} without quotes")
            }
            (Form::List(_), Value::Object(_) | Value::String(_)) => "; begin each entry with '- '".to_owned(),
            _ => String::new(),
        };
        format!("The value is {shown}, and the field is {expected}{advice}.")
    }
}

/// A value in words, with its content if it may be quoted.
fn shown(value: &Value, quoted: bool) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) if quoted => format!("the truth value {truth}"),
        Value::Bool(_) => "a truth value".to_owned(),
        Value::Number(number) if quoted => format!("the number {number}"),
        Value::Number(_) => "a number".to_owned(),
        Value::String(text) if quoted && text.len() <= 63 => format!("the string {text:?}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
