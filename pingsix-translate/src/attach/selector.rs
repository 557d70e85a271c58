//! Label selectors of Kubernetes.
//!
//! kube evaluates them. Its conversion of a `LabelSelector` neither names the requirement at fault nor refuses values that
//! the operator does not take, so requirements are read here.

use std::collections::BTreeMap;

use kube::core::{Expression, Selector};

use crate::model::{FieldPath, Reason, Refusal};

/// An element of `matchExpressions`, of whichever generated type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requirement<'a> {
    pub(super) key: &'a str,
    pub(super) operator: &'a str,
    pub(super) values: Option<&'a [String]>,
}

/// Reads `matchLabels` and `matchExpressions` of the selector at a field.
pub(super) fn read<'a>(
    labels: Option<&BTreeMap<String, String>>,
    requirements: impl Iterator<Item = Requirement<'a>>,
    at: &FieldPath,
) -> Result<Selector, Refusal> {
    let labels = labels.into_iter().flatten();
    let labels = labels.map(|(key, value)| Ok(Expression::Equal(key.clone(), value.clone())));
    let expressions = requirements.enumerate().map(|(index, requirement)| {
        requirement.expression().map_err(|message| {
            let at = at.child("matchExpressions").index(index);
            Refusal::new(at, Reason::UnsupportedValue, message)
        })
    });
    labels.chain(expressions).collect()
}

impl Requirement<'_> {
    /// Parses the operator as Kubernetes does (`LabelSelectorRequirement`). The schema of the API allows any text.
    fn expression(self) -> Result<Expression, String> {
        let (key, values) = (self.key.to_owned(), self.values.unwrap_or_default());
        match self.operator {
            operator @ ("In" | "NotIn") if values.is_empty() => {
                Err(format!("Operator {operator} needs values."))
            }
            operator @ ("Exists" | "DoesNotExist") if !values.is_empty() => {
                Err(format!("Operator {operator} takes no values."))
            }
            "In" => Ok(Expression::In(key, values.iter().cloned().collect())),
            "NotIn" => Ok(Expression::NotIn(key, values.iter().cloned().collect())),
            "Exists" => Ok(Expression::Exists(key)),
            "DoesNotExist" => Ok(Expression::DoesNotExist(key)),
            text => Err(format!("\"{text}\" is not an operator; In, NotIn, Exists and DoesNotExist are.")),
        }
    }
}
