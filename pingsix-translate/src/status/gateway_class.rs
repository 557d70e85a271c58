//! Verdicts on GatewayClasses, which belong to no snapshot.

use std::sync::Arc;

use super::condition::accepted;
use super::{Condition, Conditions};
use crate::feature::supported_features;
use crate::model::{ConditionType, Kind, ObjectKey, Options, Problem};
use crate::parameters::{self, Parameters};
use crate::snapshot::{GatewayClass, Proxies, key_of};

/// Verdict on a GatewayClass.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayClassVerdict {
    /// The class.
    pub key: Arc<ObjectKey>,
    /// `metadata.generation` of the judged object; 0 if it has none.
    pub generation: i64,
    /// Class conditions.
    pub conditions: Conditions,
    /// `status.supportedFeatures`, sorted; empty unless the class is accepted.
    pub supported_features: Vec<&'static str>,
    /// Whether its data planes are managed.
    pub is_managed: bool,
    /// The problems.
    pub problems: Vec<Problem>,
}

impl GatewayClassVerdict {
    /// Whether Gateways of the class are served.
    pub fn is_accepted(&self) -> bool {
        self.conditions.is_true(ConditionType::Accepted)
    }

    /// The verdict of a controller that manages no data planes. A managed class then supports no features, and its message
    /// says so. Gateways of the class are translated and not programmed.
    #[must_use]
    pub fn without_data_planes(mut self) -> Self {
        let accepted = self.conditions.get(ConditionType::Accepted).cloned();
        if let Some(accepted) = accepted.filter(|_| self.is_managed) {
            let message = "The class is accepted. Its parameters ask for managed data planes, and this controller was \
                           started without feed.endpoint, so Gateways of the class are not programmed.";
            self.conditions.set(Condition { message: message.to_owned(), ..accepted });
            self.supported_features.clear();
        }
        self
    }
}

/// Judges a class; `None` if it belongs to another controller. `proxies` has the parameters that the class names, if they
/// exist ([`proxy_of_class`](crate::snapshot::proxy_of_class)).
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
        Err(refusal) => (Parameters::Unset, Some(refusal)),
    };
    let generation = class.metadata.generation.unwrap_or_default();
    let mut conditions = Conditions::default();
    let content = accepted(refusal.as_ref(), "The class is accepted.");
    conditions.put(ConditionType::Accepted, content, generation);
    let problems = refusal.iter().map(|refusal| refusal.of(&key)).collect();
    let supported_features = match &refusal {
        None => {
            let options = Options { layout: parameters.layout(options), ..options.clone() };
            supported_features(&options, parameters.managed()).map(|feature| feature.name).collect()
        }
        Some(_) => Vec::new(),
    };
    let is_managed = parameters.managed().is_some();
    Some(GatewayClassVerdict { key, generation, conditions, supported_features, is_managed, problems })
}
