//! Verdicts on PingsixProxies. References to them are judged with the classes and Gateways.

use std::sync::Arc;

use super::condition::accepted;
use super::{ConditionStatus, Conditions};
use crate::crd::PingsixProxy;
use crate::model::{ConditionType, Kind, ObjectKey, Problem, Reason, joined};
use crate::parameters::refusals;
use crate::snapshot::key_of;

/// Verdict on a PingsixProxy.
#[derive(Clone, Debug, PartialEq)]
pub struct PingsixProxyVerdict {
    /// The PingsixProxy.
    pub key: Arc<ObjectKey>,
    /// `metadata.generation` of the object judged; 0 when it has none.
    pub generation: i64,
    /// The mode of the data planes, attached or managed, if the PingsixProxy has one.
    pub mode: Option<&'static str>,
    /// The conditions.
    pub conditions: Conditions,
    /// The problems.
    pub problems: Vec<Problem>,
}

/// Judges a PingsixProxy by itself.
pub fn judge_pingsix_proxy(proxy: &PingsixProxy) -> PingsixProxyVerdict {
    let key = Arc::new(key_of(Kind::PingsixProxy, &proxy.metadata));
    let generation = proxy.metadata.generation.unwrap_or_default();
    let refusals = refusals(proxy);
    let content = if refusals.is_empty() {
        accepted(None, "The parameters are accepted.")
    } else {
        (ConditionStatus::False, Reason::InvalidParameters, joined(&refusals))
    };
    let mut conditions = Conditions::default();
    conditions.put(ConditionType::Accepted, content, generation);
    let mode = match (&proxy.spec.attached, &proxy.spec.managed) {
        (Some(_), None) => Some("Attached"),
        (None, Some(_)) => Some("Managed"),
        (Some(_), Some(_)) | (None, None) => None,
    };
    let problems = refusals.iter().map(|refusal| refusal.of(&key)).collect();
    PingsixProxyVerdict { key, generation, mode, conditions, problems }
}
