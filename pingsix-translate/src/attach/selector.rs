//! Label selectors of Kubernetes.

use std::collections::BTreeMap;

use crate::model::{FieldPath, Reason, Refusal};

/// The requirements on labels; every one has to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector(Vec<Requirement>);

/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

/// An element of `matchExpressions`, of whichever generated type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expression<'a> {
    pub(super) key: &'a str,
    pub(super) operator: &'a str,
    pub(super) values: Option<&'a [String]>,
}

impl Selector {
    /// Reads `matchLabels` and `matchExpressions` of the selector at a field.
    pub(super) fn read<'a>(
        labels: Option<&BTreeMap<String, String>>,
        expressions: impl Iterator<Item = Expression<'a>>,
        at: &FieldPath,
    ) -> Result<Self, Refusal> {
        let labels = labels.into_iter().flatten().map(|(key, value)| {
            Ok(Requirement { key: key.clone(), operator: Operator::In(vec![value.clone()]) })
        });
        let expressions = expressions.enumerate().map(|(index, expression)| {
            let operator = Operator::parse(expression.operator, expression.values.unwrap_or_default())
                .map_err(|message| {
                    let at = at.child("matchExpressions").index(index);
                    Refusal::new(at, Reason::UnsupportedValue, message)
                })?;
            Ok(Requirement { key: expression.key.to_owned(), operator })
        });
        labels.chain(expressions).collect::<Result<_, _>>().map(Self)
    }

    /// Whether an object with these labels is selected.
    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| requirement.holds(labels))
    }
}

impl Operator {
    /// Parses an operator as Kubernetes does (`LabelSelectorRequirement`). The schema of the API allows any text.
    fn parse(text: &str, values: &[String]) -> Result<Self, String> {
        match text {
            "In" | "NotIn" if values.is_empty() => Err(format!("Operator {text} needs values.")),
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                Err(format!("Operator {text} takes no values."))
            }
            "In" => Ok(Self::In(values.to_vec())),
            "NotIn" => Ok(Self::NotIn(values.to_vec())),
            "Exists" => Ok(Self::Exists),
            "DoesNotExist" => Ok(Self::DoesNotExist),
            _ => Err(format!("\"{text}\" is not an operator; In, NotIn, Exists and DoesNotExist are.")),
        }
    }
}

impl Requirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}
