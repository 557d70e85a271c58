//! Verdicts on IngressClasses, which have no status.

use std::sync::Arc;

use super::gateway_class::refuse_parameters;
use super::{Problem, Severity};
use crate::field::FieldPath;
use crate::object::{Kind, ObjectKey};
use crate::options::Options;
use crate::snapshot::{IngressClass, key_of};

/// Verdict on an IngressClass of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct IngressClassVerdict {
    /// The class.
    pub key: Arc<ObjectKey>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

impl IngressClassVerdict {
    /// Whether Ingresses of the class are served.
    pub fn is_served(&self) -> bool {
        self.problems.iter().all(|problem| problem.severity != Severity::Error)
    }
}

/// Judges a class; `None` when it belongs to another controller.
pub fn judge_ingress_class(class: &IngressClass, options: &Options) -> Option<IngressClassVerdict> {
    let spec = class.spec.as_ref()?;
    if spec.controller.as_deref() != Some(&options.controller_name) {
        return None;
    }
    let key = Arc::new(key_of(Kind::IngressClass, &class.metadata));
    let refusal = spec.parameters.as_ref().map(|parameters| {
        let group = parameters.api_group.as_deref().unwrap_or_default();
        refuse_parameters(FieldPath::new("spec").child("parameters"), group, &parameters.kind)
    });
    let problems = refusal.iter().map(|refusal| refusal.of(&key)).collect();
    Some(IngressClassVerdict { key, problems })
}
