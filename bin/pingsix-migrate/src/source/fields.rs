//! Objects of the input, field by field: a field that is not taken is reported.

use std::str::FromStr as _;

use pingsix_translate::manifest::{how_to_quote, type_in_words};
use serde_json::{Map, Value};

use crate::report::{Place, Reason, Report};

/// The fields of an object of which the conversion has not taken notice yet. The values may be secret, so the type has no
/// `Debug`.
#[derive(Clone)]
pub(crate) struct Fields {
    pub(crate) place: Place,
    values: Map<String, Value>,
}

impl Fields {
    pub(crate) fn new(place: Place, values: Map<String, Value>) -> Self {
        Self { place, values }
    }

    pub(crate) fn empty(place: Place) -> Self {
        Self::new(place, Map::new())
    }

    /// Whether a field is present and has a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|value| !value.is_null())
    }

    /// All fields that are not taken yet.
    pub(crate) fn to_value(&self) -> Value {
        Value::Object(self.values.clone())
    }

    /// A field as written; it is not taken.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Takes a field; `None` if the field is absent or null.
    pub(crate) fn take(&mut self, name: &str) -> Option<Field> {
        let value = self.values.remove(name)?;
        (!value.is_null()).then(|| Field { place: self.place.at(name), value })
    }

    pub(crate) fn text(&mut self, name: &str, report: &mut Report) -> Option<(Place, String)> {
        if self.values.get(name).is_some_and(Value::is_null) {
            let message = format!(
                "YAML reads the value as null, which is the same as no value. {}",
                how_to_quote(&Value::Null)
            );
            report.limited(&self.place.at(name), Reason::InvalidValue, message);
        }
        self.take(name)?.text(report)
    }

    /// Takes a text that is not empty.
    pub(crate) fn filled(&mut self, name: &str, report: &mut Report) -> Option<(Place, String)> {
        self.text(name, report).filter(|(_, text)| !text.is_empty())
    }

    /// Takes a text that counts as empty if it is absent.
    pub(crate) fn text_or_empty(&mut self, name: &str, report: &mut Report) -> String {
        self.text(name, report).map(|(_, text)| text).unwrap_or_default()
    }

    /// Takes a field that may be a number or a text, such as a port.
    pub(crate) fn text_or_number(&mut self, name: &str, report: &mut Report) -> Option<(Place, String)> {
        self.take(name)?.text_or_number(report)
    }

    pub(crate) fn number(&mut self, name: &str, report: &mut Report) -> Option<(Place, u64)> {
        self.take(name)?.number(report)
    }

    pub(crate) fn truth(&mut self, name: &str, report: &mut Report) -> Option<(Place, bool)> {
        self.take(name)?.truth(report)
    }

    pub(crate) fn object(&mut self, name: &str, report: &mut Report) -> Option<Self> {
        self.take(name)?.object(report)
    }

    pub(crate) fn list(&mut self, name: &str, report: &mut Report) -> Vec<Field> {
        self.take(name).map(|field| field.list(report)).unwrap_or_default()
    }

    pub(crate) fn texts(&mut self, name: &str, report: &mut Report) -> Vec<(Place, String)> {
        self.list(name, report).into_iter().filter_map(|item| item.text(report)).collect()
    }

    /// Takes fields that tune the original and have no counterpart.
    pub(crate) fn drop<const N: usize>(&mut self, names: [&str; N], report: &mut Report, why: &str) {
        for field in names.into_iter().filter_map(|name| self.take(name)) {
            report.limited(&field.place, Reason::UnsupportedField, why);
        }
    }

    /// Takes fields whose effect cannot be left out.
    pub(crate) fn refuse<const N: usize>(&mut self, names: [&str; N], report: &mut Report, why: &str) {
        for field in names.into_iter().filter_map(|name| self.take(name)) {
            report.blocking(&field.place, Reason::UnsupportedField, why);
        }
    }

    /// The fields that are left, for objects whose fields have no fixed names.
    pub(crate) fn rest(&mut self) -> Vec<(String, Field)> {
        let values = std::mem::take(&mut self.values);
        let place = &self.place;
        values
            .into_iter()
            .map(|(name, value)| {
                let place = place.at(&name);
                (name, Field { place, value })
            })
            .collect()
    }

    /// Reports every field that was not taken. Its meaning is unknown, so a protection may be lost.
    pub(crate) fn finish(mut self, report: &mut Report) {
        for (_, field) in self.rest() {
            let empty = match &field.value {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            };
            if !empty {
                let message = "The field is not understood, so its effect would be lost.";
                report.blocking(&field.place, Reason::UnknownField, message);
            }
        }
    }
}

/// The form of most values, in messages.
const TEXT: &str = "a text";

/// A value with its place.
#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

impl Field {
    /// The value may be secret, so the message has its type alone.
    fn expected<T>(&self, expected: &str, report: &mut Report) -> Option<T> {
        let is = type_in_words(&self.value);
        let mut message = format!("The value is {is}, not {expected}, so its effect would be lost.");
        if expected == TEXT {
            format!("{message} {}", how_to_quote(&self.value)).trim_end().clone_into(&mut message);
        }
        report.blocking(&self.place, Reason::InvalidValue, message);
        None
    }

    pub(crate) fn text(self, report: &mut Report) -> Option<(Place, String)> {
        report.read(&self.place);
        if let Value::String(text) = self.value {
            return Some((self.place, text));
        }
        self.expected(TEXT, report)
    }

    /// A text, or a number as text.
    pub(crate) fn text_or_number(self, report: &mut Report) -> Option<(Place, String)> {
        report.read(&self.place);
        match &self.value {
            Value::String(text) => Some((self.place.clone(), text.clone())),
            Value::Number(number) => Some((self.place.clone(), number.to_string())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                self.expected("a text or a number", report)
            }
        }
    }

    pub(crate) fn number(self, report: &mut Report) -> Option<(Place, u64)> {
        report.read(&self.place);
        let number = match self.value.as_str() {
            Some(text) => u64::from_str(text).ok(),
            None => self.value.as_u64(),
        };
        match number {
            Some(number) => Some((self.place, number)),
            None => self.expected("a whole number", report),
        }
    }

    /// A number that is no text.
    pub(crate) fn whole(self, report: &mut Report) -> Option<(Place, u64)> {
        if self.value.is_number() { self.number(report) } else { self.expected("a whole number", report) }
    }

    pub(crate) fn truth(self, report: &mut Report) -> Option<(Place, bool)> {
        report.read(&self.place);
        match self.value.as_bool() {
            Some(truth) => Some((self.place, truth)),
            None => self.expected("true or false", report),
        }
    }

    pub(crate) fn object(self, report: &mut Report) -> Option<Fields> {
        if let Value::Object(values) = self.value {
            return Some(Fields::new(self.place, values));
        }
        self.expected("an object", report)
    }

    pub(crate) fn list(self, report: &mut Report) -> Vec<Field> {
        if let Value::Array(items) = self.value {
            let place = &self.place;
            let items = items.into_iter().enumerate();
            return items.map(|(index, value)| Self { place: place.item(index), value }).collect();
        }
        self.expected::<Vec<Self>>("a list", report).unwrap_or_default()
    }

    /// A duration in seconds, rounded up: a text such as `1m30s`, or a number of nanoseconds, as Go writes it.
    pub(crate) fn seconds(self, report: &mut Report) -> Option<(Place, Seconds)> {
        let parsed = match self.value.as_str() {
            Some(text) => duration(text),
            None => self.value.as_u64().map(u128::from),
        };
        report.read(&self.place);
        let Some(nanoseconds) = parsed else { return self.expected("a duration", report) };
        let whole = nanoseconds.div_ceil(1_000_000_000);
        let seconds = u64::try_from(whole).unwrap_or(u64::MAX);
        Some((self.place, Seconds { value: seconds, is_exact: nanoseconds % 1_000_000_000 == 0 }))
    }
}

/// A duration in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seconds {
    pub(crate) value: u64,
    /// Whether the original has no fraction of a second.
    pub(crate) is_exact: bool,
}

/// Nanoseconds of a duration as Go writes it: numbers with units.
fn duration(text: &str) -> Option<u128> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() || rest.len() > 64 {
        return None;
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at(digits);
        let end = after.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit: u128 = match unit {
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        if !fraction.is_empty() {
            let digits = fraction.get(..fraction.len().min(18))?;
            let scale = 10_u128.checked_pow(u32::try_from(digits.len()).ok()?)?;
            total = total.checked_add(digits.parse::<u128>().ok()?.checked_mul(unit)? / scale)?;
        }
        rest = after;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_of_go_are_read() {
        for (text, nanoseconds) in [("1s", 1_000_000_000), ("1m30s", 90_000_000_000), ("1.5s", 1_500_000_000)]
        {
            assert_eq!(duration(text), Some(nanoseconds), "{text}");
        }
        for wrong in ["", "5", "s", "1d", ".s", "-1s", "1s2"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
        assert!(duration("999999999999999999999999999999999999999999h").is_none());
    }

    #[test]
    fn fields_without_a_reader_are_losses_and_are_not_quoted() {
        let mut report = Report::default();
        let Value::Object(values) = json!({ "a": 1, "b": "hunter2", "c": [], "d": null }) else { panic!() };
        let mut fields = Fields::new(Place::object("X n/x"), values);
        assert_eq!(fields.number("a", &mut report).unwrap().1, 1);
        fields.finish(&mut report);
        assert_eq!(report.losses(), 1);
        let shown = report.render(crate::report::ReportFormat::Text, true);
        assert!(shown.contains("  impossible  b: ") && !shown.contains("hunter2"), "{shown}");
    }
}
