//! Conditions on requests beside path, method and host: `exprs` of an ApisixRoute, and `vars`.

use serde_json::{Value, json};

use crate::plugin::variable;
use crate::report::{Place, Reason, Report};
use crate::source::Field;

/// A part of a request that has to have one of the values.
#[derive(Clone)]
pub(super) struct Condition {
    /// `headers` or `queryParams`.
    pub(super) field: &'static str,
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

impl Condition {
    /// The item of a match for a value.
    pub(super) fn item(&self, value: &str) -> Value {
        json!({ "type": "Exact", "name": self.name, "value": value })
    }
}

/// The condition for a variable of nginx.
fn of_variable(name: &str, values: Vec<String>) -> Option<Condition> {
    let (kind, name) = variable(name)?;
    let field = match kind {
        "Header" => "headers",
        "QueryParam" => "queryParams",
        _ => return None,
    };
    Some(Condition { field, name, values })
}

const COUNTERPARTS: &str = "HTTPRoutes compare headers and query parameters with exact values alone";

/// Whether the condition can be part of a match.
fn check(condition: Condition, place: &Place, report: &mut Report) -> Option<Condition> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let good_name =
        condition.name.len() <= 256 && !condition.name.is_empty() && condition.name.bytes().all(is_token);
    if !good_name || condition.name.eq_ignore_ascii_case("host") {
        let message = "PingSIX cannot see such a header or query parameter.";
        report.blocking(place, Reason::UnsupportedMatch, message);
        return None;
    }
    let most = if condition.field == "headers" { 4096 } else { 1024 };
    if condition.values.iter().any(|value| value.is_empty() || value.len() > most) {
        report.blocking(place, Reason::UnsupportedMatch, "A match needs values that are not empty.");
        return None;
    }
    Some(condition)
}

/// Reads an item of `exprs`.
pub(super) fn of_expression(item: Field, report: &mut Report) -> Option<Condition> {
    let place = item.place.clone();
    let mut fields = item.object(report)?;
    let subject = fields.object("subject", report);
    let operator = fields.text_or_empty("op", report);
    let value = fields.text("value", report).map(|(_, value)| value);
    let set = fields.texts("set", report);
    fields.finish(report);
    let (scope, name) = match subject {
        Some(mut subject) => {
            let scope = subject.text_or_empty("scope", report);
            let name = subject.text_or_empty("name", report);
            subject.finish(report);
            (scope, name)
        }
        None => (String::new(), String::new()),
    };
    let values: Vec<String> = match operator.as_str() {
        "Equal" => value.into_iter().collect(),
        "In" => set.into_iter().map(|(_, value)| value).collect(),
        "RegexMatch" | "RegexNotMatch" | "RegexMatchCaseInsensitive" | "RegexNotMatchCaseInsensitive" => {
            let message = format!("{COUNTERPARTS}, and this is a regular expression.");
            report.blocking(&place, Reason::UnsupportedMatch, message);
            return None;
        }
        "NotEqual" | "NotIn" | "GreaterThan" | "GreaterThanEqual" | "LessThan" | "LessThanEqual" => {
            let message = format!("{COUNTERPARTS}, and have no {operator}.");
            report.blocking(&place, Reason::UnsupportedMatch, message);
            return None;
        }
        _ => {
            report.blocking(&place.at("op"), Reason::InvalidValue, "The operator is unknown.");
            return None;
        }
    };
    if values.is_empty() {
        report.blocking(&place, Reason::MissingField, "The condition has no value.");
        return None;
    }
    let several = values.len() > 1;
    let condition = match scope.as_str() {
        // nginx does not distinguish dashes and underscores in the names of headers.
        "Header" => Some(Condition { field: "headers", name, values }),
        "Query" => Some(Condition { field: "queryParams", name, values }),
        "Variable" => of_variable(&name, values),
        _ => None,
    };
    let Some(condition) = condition else {
        let message = format!("{COUNTERPARTS}, and this is another part of requests.");
        report.blocking(&place, Reason::UnsupportedMatch, message);
        return None;
    };
    let condition = check(condition, &place, report)?;
    if several {
        report.limited(&place, Reason::DifferentMatch, "The rule has a match for each value.");
    } else {
        report.exact(&place, format!("The condition becomes an item of {}.", condition.field));
    }
    Some(condition)
}

/// Reads an item of `vars`: variable, operator and value.
pub(super) fn of_vars(item: Field, report: &mut Report) -> Option<Condition> {
    let place = item.place.clone();
    let parts = item.list(report);
    let texts: Vec<Option<&str>> = parts.iter().map(|part| part.value.as_str()).collect();
    let condition = match (texts.as_slice(), parts.last()) {
        ([Some(name), Some("=="), Some(value)], _) => of_variable(name, vec![(*value).to_owned()]),
        ([Some(name), Some("in" | "IN"), None], Some(last)) => {
            let values = last.value.as_array().map(Vec::as_slice).unwrap_or_default();
            let values: Option<Vec<String>> =
                values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
            of_variable(name, values.filter(|values| !values.is_empty()).unwrap_or_default())
                .filter(|condition| !condition.values.is_empty())
        }
        _ => None,
    };
    let Some(condition) = condition else {
        report.blocking(&place, Reason::UnsupportedMatch, format!("{COUNTERPARTS}."));
        return None;
    };
    let condition = check(condition, &place, report)?;
    let message =
        "The condition becomes a part of each match. Names of headers have dashes, not underscores.";
    report.limited(&place, Reason::DifferentMatch, message);
    Some(condition)
}
