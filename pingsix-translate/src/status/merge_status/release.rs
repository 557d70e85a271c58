//! Removing our content from the status of an object that is no longer ours.
//!
//! Entries of routes and policies have the controller's name, so exactly ours are removed. Conditions of Gateways and
//! ListenerSets have no such name, and the new controller writes the same types. These are certainly ours:
//!
//! - a condition that equals our last one;
//! - a condition of our types about an old generation that we have judged. A hand-over changes the spec, so the new
//!   controller writes about a later generation.
//!
//! All other conditions stay, also those of our own domain: the new controller may be another installation. If such a
//! condition is ours after all, its `observedGeneration` tells readers that it is out of date.

use serde_json::{Map, Value};

use super::{ANCESTORS, PARENTS, StatusMerge, is_ours, kept_if_equal, members};
use crate::model::Address;
use crate::status::{Conditions, GatewayVerdict, ListenerSetVerdict, ListenerVerdict};

impl StatusMerge {
    /// The status of a route or policy that is no longer ours: without our entries. A status of another kind has no entries
    /// and does not change.
    pub fn release_entries(&self, current: &Value) -> Value {
        let status = self.replace_entries(current, &PARENTS, Vec::new());
        self.replace_entries(&status, &ANCESTORS, Vec::new())
    }

    /// The status of a Gateway that is no longer ours. `generation` is that of the current object; `last` and `addresses` are
    /// our last verdict and addresses.
    pub fn release_gateway(
        &self,
        current: &Value,
        generation: i64,
        last: &GatewayVerdict,
        addresses: &[Address],
    ) -> Value {
        let release = Release { generation, judged: last.generation };
        let mut status = members(current);
        let took_any = release.conditions(&mut status, &last.conditions);
        release.listeners(&mut status, &last.listeners);
        // No other controller has written the number.
        if took_any && !has_conditions(&status) {
            status.remove("attachedListenerSets");
        }
        let ours: Vec<Value> = addresses.iter().map(Address::to_gateway_status).collect();
        if !ours.is_empty() && status.get("addresses").and_then(Value::as_array) == Some(&ours) {
            status.remove("addresses");
        }
        kept_if_equal(current, status)
    }

    /// The status of a ListenerSet whose Gateway has changed or is no longer ours.
    pub fn release_listener_set(&self, current: &Value, generation: i64, last: &ListenerSetVerdict) -> Value {
        let release = Release { generation, judged: last.generation };
        let mut status = members(current);
        release.conditions(&mut status, &last.conditions);
        release.listeners(&mut status, &last.listeners);
        kept_if_equal(current, status)
    }
}

struct Release {
    /// The generation of the current object.
    generation: i64,
    /// The generation of the object in our last verdict.
    judged: i64,
}

impl Release {
    /// Removes the conditions that are certainly ours. Returns whether there were any.
    fn conditions(&self, holder: &mut Map<String, Value>, last: &Conditions) -> bool {
        let Some(conditions) = holder.get_mut("conditions").and_then(Value::as_array_mut) else {
            return false;
        };
        let last = last.to_values();
        let before = conditions.len();
        conditions.retain(|condition| !self.is_certainly_ours(condition, &last));
        conditions.len() < before
    }

    fn listeners(&self, status: &mut Map<String, Value>, last: &[ListenerVerdict]) {
        let Some(listeners) = status.get_mut("listeners").and_then(Value::as_array_mut) else { return };
        let none = Conditions::default();
        listeners.retain_mut(|listener| {
            let last = last.iter().find(|last| listener["name"] == *last.name);
            let last = last.map_or(&none, |last| &last.conditions);
            let Some(entry) = listener.as_object_mut() else { return true };
            // The remaining conditions are those of another controller.
            !self.conditions(entry, last) || has_conditions(entry)
        });
    }

    fn is_certainly_ours(&self, condition: &Value, last: &[Value]) -> bool {
        if !is_ours(&condition["type"]) {
            return false;
        }
        let is_over = condition["observedGeneration"].as_i64().is_some_and(|generation| {
            generation > 0 && generation <= self.judged && generation < self.generation
        });
        is_over || last.iter().any(|last| equal_except_time(condition, last))
    }
}

/// Whether conditions are equal except for the time, which a verdict does not have.
fn equal_except_time(condition: &Value, last: &Value) -> bool {
    ["type", "status", "reason", "message", "observedGeneration"]
        .iter()
        .all(|field| condition[field] == last[field])
}

fn has_conditions(holder: &Map<String, Value>) -> bool {
    holder.get("conditions").and_then(Value::as_array).is_some_and(|conditions| !conditions.is_empty())
}
