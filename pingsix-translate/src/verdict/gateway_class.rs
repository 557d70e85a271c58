//! Verdicts on GatewayClasses, which belong to no snapshot.

use std::sync::Arc;

use super::{Condition, ConditionStatus, ConditionType, Conditions, Problem, Reason};
use crate::feature::supported_features;
use crate::object::{Kind, ObjectKey};
use crate::options::Options;
use crate::parameters::{self, Parameters};
use crate::snapshot::{GatewayClass, Proxies, key_of};

/// Verdict on a GatewayClass.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayClassVerdict {
    /// The class.
    pub key: Arc<ObjectKey>,
    /// `metadata.generation` of the object judged; 0 when it has none.
    pub generation: i64,
    /// Class conditions.
    pub conditions: Conditions,
    /// What is claimed of the class (`status.supportedFeatures`), sorted; nothing unless it is accepted.
    pub supported_features: Vec<&'static str>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

impl GatewayClassVerdict {
    /// Whether Gateways of the class are served.
    pub fn is_accepted(&self) -> bool {
        self.conditions.is_true(ConditionType::Accepted)
    }
}

/// Judges a class; `None` when it belongs to another controller. `proxies` has the parameters that it names, if they are
/// there ([`proxy_of_class`](crate::snapshot::proxy_of_class)).
pub fn judge_gateway_class(
    class: &GatewayClass,
    proxies: &Proxies,
    options: &Options,
) -> Option<GatewayClassVerdict> {
    if class.spec.controller_name != options.controller_name {
        return None;
    }
    let key = Arc::new(key_of(Kind::GatewayClass, &class.metadata));
    let (parameters, refusal) = match parameters::of_gateway_class(class, proxies, options) {
        Ok(parameters) => (parameters, None),
        Err(refusal) => (Parameters::Unsaid, Some(refusal)),
    };
    let generation = class.metadata.generation.unwrap_or_default();
    let (status, reason, message) = match &refusal {
        None => (ConditionStatus::True, Reason::Accepted, "The class is accepted.".to_owned()),
        Some(refusal) => (ConditionStatus::False, refusal.reason, refusal.to_string()),
    };
    let conditions = Conditions::from(Condition {
        kind: ConditionType::Accepted,
        status,
        reason,
        message,
        observed_generation: generation,
    });
    let problems = refusal.iter().map(|refusal| refusal.of(&key)).collect();
    let supported_features = match &refusal {
        None => {
            let options = Options { layout: parameters.layout(options), ..options.clone() };
            supported_features(&options, parameters.managed()).map(|feature| feature.name).collect()
        }
        Some(_) => Vec::new(),
    };
    Some(GatewayClassVerdict { key, generation, conditions, supported_features, problems })
}
