//! Conditions of routes: `exprs` of ApisixRoutes.

use regex::RegexBuilder;
use serde_json::Value;

use crate::answer::Request;

/// A condition.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    subject: Subject,
    operator: Operator,
}

#[derive(Clone, Debug)]
enum Subject {
    Header(String),
    Query(String),
    Cookie(String),
    Path,
}

#[derive(Clone, Debug)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Matches { pattern: String, ignores_case: bool },
}

impl Condition {
    /// An item of `exprs`. The error is the reason for which it is not modelled.
    pub(super) fn read(item: &Value) -> Result<Self, String> {
        let name = || item["subject"]["name"].as_str().unwrap_or_default().to_owned();
        let subject = match item["subject"]["scope"].as_str() {
            Some("Header") => Subject::Header(name()),
            Some("Query") => Subject::Query(name()),
            Some("Cookie") => Subject::Cookie(name()),
            Some("Path") => Subject::Path,
            _ => return Err("the scope of an expression is not modelled".to_owned()),
        };
        let set = || -> Vec<String> {
            let values = item["set"].as_array().into_iter().flatten();
            values.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let value = || item["value"].as_str().unwrap_or_default().to_owned();
        let operator = match item["op"].as_str() {
            Some("Equal") => Operator::In(vec![value()]),
            Some("NotEqual") => Operator::NotIn(vec![value()]),
            Some("In") => Operator::In(set()),
            Some("NotIn") => Operator::NotIn(set()),
            Some("RegexMatch") => Operator::Matches { pattern: value(), ignores_case: false },
            Some("RegexMatchCaseInsensitive") => Operator::Matches { pattern: value(), ignores_case: true },
            _ => return Err("the operator of an expression is not modelled".to_owned()),
        };
        Ok(Self { subject, operator })
    }

    /// The condition of a path that is a regular expression.
    pub(super) fn path(pattern: &str) -> Self {
        let operator = Operator::Matches { pattern: pattern.to_owned(), ignores_case: false };
        Self { subject: Subject::Path, operator }
    }

    pub(super) fn holds(&self, request: &Request, uri: &str) -> Result<bool, String> {
        let value = match &self.subject {
            Subject::Header(name) => request.header(name).map(str::to_owned),
            Subject::Query(name) => pairs(request.query.as_deref().unwrap_or_default(), '&', name),
            Subject::Cookie(name) => request.header("cookie").and_then(|cookies| pairs(cookies, ';', name)),
            Subject::Path => Some(uri.to_owned()),
        };
        Ok(match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(&value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(&value)),
            Operator::Matches { pattern, ignores_case } => {
                let expression =
                    RegexBuilder::new(pattern).case_insensitive(*ignores_case).size_limit(1 << 20).build();
                let expression =
                    expression.map_err(|_| format!("the regular expression {pattern} is not modelled"))?;
                value.is_some_and(|value| expression.is_match(&value))
            }
        })
    }
}

fn pairs(text: &str, separator: char, name: &str) -> Option<String> {
    let mut pairs = text.split(separator).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(own, _)| *own == name).map(|(_, value)| value.to_owned())
}
