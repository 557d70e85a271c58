//! Verdicts on IngressClasses, which have no status.

use std::sync::Arc;

use crate::model::{Kind, ObjectKey, Options, Problem, Severity};
use crate::parameters;
use crate::snapshot::{IngressClass, Proxies, key_of};

/// Verdict on an IngressClass of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct IngressClassVerdict {
    /// The class.
    pub key: Arc<ObjectKey>,
    /// The problems.
    pub problems: Vec<Problem>,
}

impl IngressClassVerdict {
    /// Whether Ingresses of the class are served.
    pub fn is_served(&self) -> bool {
        self.problems.iter().all(|problem| problem.severity != Severity::Error)
    }
}

/// Judges a class; `None` if it belongs to another controller. `proxies` has the parameters that the class names, if they
/// exist ([`proxy_of_ingress_class`](crate::snapshot::proxy_of_ingress_class)).
pub fn judge_ingress_class(
    class: &IngressClass,
    proxies: &Proxies,
    options: &Options,
) -> Option<IngressClassVerdict> {
    let spec = class.spec.as_ref()?;
    if spec.controller.as_deref() != Some(&options.controller_name) {
        return None;
    }
    let key = Arc::new(key_of(Kind::IngressClass, &class.metadata));
    let refusal = parameters::of_ingress_class(class, proxies, options).err();
    let problems = refusal.iter().map(|refusal| refusal.of(&key)).collect();
    Some(IngressClassVerdict { key, problems })
}
