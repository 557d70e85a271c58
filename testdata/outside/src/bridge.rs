//! The bridge, without a cluster: objects of one's own, a translation, and a sink that only counts.

use std::error::Error;
use std::sync::Arc;

use pingsix_gateway_api::explain::{Plane, explain};
use pingsix_gateway_api::{BridgeError, Bridged, Explanation, bridge, bridge_stream};
use pingsix_sink::{Changed, Desired, Published, Revision, Sink, SinkError};
use pingsix_translate::pingsix::Request;
use pingsix_translate::snapshot::Gateway;
use pingsix_translate::status::{Delivery, Severity, with_delivery};
use pingsix_translate::{Layout, Object, ObjectName, Objects, Options, Translation, translate};
use serde_json::{Value, json};

/// Forgets everything.
struct Counter;

impl Sink for Counter {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let changed = Changed { created: desired.documents().len(), ..Changed::default() };
        Ok(Published { revision: Revision::MIN, changed })
    }
}

/// The keys of the documents that a Gateway needs.
pub fn keys(gateway: &Value) -> Result<Vec<String>, Box<dyn Error>> {
    let mut objects = Objects::default();
    let mut gateway = gateway.clone();
    gateway["metadata"] = json!({"name": "web", "namespace": "shop"});
    gateway["spec"] = json!({"gatewayClassName": "pingsix", "listeners": []});
    objects.insert(Object::Gateway(Arc::new(serde_json::from_value::<Gateway>(gateway)?)));

    let options = Options { layout: Layout::PerPort, stream: true, ..Options::default() };
    let Some(snapshot) = objects.snapshot(&ObjectName::new("shop", "web")) else { return Ok(Vec::new()) };
    let translation = translate(&snapshot, &options);
    let mut keys = Vec::new();
    for (key, plane) in &translation.data_planes {
        let bridged: Bridged = match bridge(key, plane, &options) {
            Ok(bridged) => bridged,
            Err(BridgeError::Refused { violations, .. }) => {
                return Err(violations.iter().map(|one| one.message.clone()).collect::<String>().into());
            }
            Err(error) => return Err(error.into()),
        };
        keys.extend(bridged.desired.documents().iter().map(|document| document.key.to_string()));
        let (config, provenance, verdicts) = (&bridged.config, &plane.provenance, &translation.verdicts);
        let plane = Plane { key, config, provenance, verdicts };
        let explanation: Explanation = explain(&plane, &Request::get("shop.example", "/"), None)?;
        keys.push(explanation.to_string());
    }
    for (key, plane) in &translation.stream_planes {
        keys.push(bridge_stream(key, plane, &options)?.desired.scope().to_string());
    }
    keys.extend(said(translation));
    Ok(keys)
}

/// The messages of statuses after a confirmation by every PingSIX.
fn said(translation: Translation) -> Vec<String> {
    let keys = translation.data_planes.keys();
    let delivery = keys.map(|key| (key.clone(), Delivery::Confirmed)).collect();
    let verdicts = with_delivery(translation.verdicts, &delivery);
    let errors = verdicts.problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}

/// Publishes to any sink.
#[allow(dead_code, reason = "that it builds is what matters")]
pub async fn count(desired: &Desired) -> Result<usize, SinkError> {
    Ok(Counter.publish(desired).await?.changed.total())
}
