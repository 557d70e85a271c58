//! What goes when an object stops being ours.
//!
//! Entries of routes and policies carry the controller's name: ours go, that is all. Conditions of Gateways and
//! ListenerSets carry none, and whoever took the object over writes the same types. Certainly ours is
//!
//! - word for word what we said last;
//! - what is said, in a type of ours, about a generation that we judged and that is over. Who hands an object over changes
//!   its spec, so the new owner speaks of a later one.
//!
//! All else stays, also types of our own domain: the new owner may be another installation. Should it be ours all the
//! same, its `observedGeneration` tells readers that it is out of date.

use serde_json::{Map, Value};

use super::{ANCESTORS, PARENTS, StatusMerge, is_ours, kept_if_equal, members};
use crate::model::Address;
use crate::status::{Conditions, GatewayVerdict, ListenerSetVerdict, ListenerVerdict};

impl StatusMerge {
    /// The status of a route or a policy that is no longer ours: without entries of ours. The status of any other kind has
    /// none, and stays as it is.
    pub fn release_entries(&self, current: &Value) -> Value {
        let status = self.replace_entries(current, &PARENTS, Vec::new());
        self.replace_entries(&status, &ANCESTORS, Vec::new())
    }

    /// The status of a Gateway that is no longer ours. `generation` is that of the object as it is; `last` and `addresses`
    /// are what we said last of it.
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
        // A number nobody else has touched since.
        if took_any && !has_conditions(&status) {
            status.remove("attachedListenerSets");
        }
        let ours: Vec<Value> = addresses.iter().map(Address::to_gateway_status).collect();
        if !ours.is_empty() && status.get("addresses").and_then(Value::as_array) == Some(&ours) {
            status.remove("addresses");
        }
        kept_if_equal(current, status)
    }

    /// The status of a ListenerSet whose Gateway is no longer ours, or another one.
    pub fn release_listener_set(&self, current: &Value, generation: i64, last: &ListenerSetVerdict) -> Value {
        let release = Release { generation, judged: last.generation };
        let mut status = members(current);
        release.conditions(&mut status, &last.conditions);
        release.listeners(&mut status, &last.listeners);
        kept_if_equal(current, status)
    }
}

struct Release {
    /// Of the object as it is.
    generation: i64,
    /// Of the object we judged last.
    judged: i64,
}

impl Release {
    /// Takes out the conditions that are certainly ours; tells whether there were any.
    fn conditions(&self, holder: &mut Map<String, Value>, last: &Conditions) -> bool {
        let Some(conditions) = holder.get_mut("conditions").and_then(Value::as_array_mut) else {
            return false;
        };
        let said = last.to_values();
        let before = conditions.len();
        conditions.retain(|condition| !self.is_certainly_ours(condition, &said));
        conditions.len() < before
    }

    fn listeners(&self, status: &mut Map<String, Value>, last: &[ListenerVerdict]) {
        let Some(listeners) = status.get_mut("listeners").and_then(Value::as_array_mut) else { return };
        let silent = Conditions::default();
        listeners.retain_mut(|listener| {
            let said = last.iter().find(|said| listener["name"] == *said.name);
            let said = said.map_or(&silent, |said| &said.conditions);
            let Some(entry) = listener.as_object_mut() else { return true };
            // What is left speaks for someone else.
            !self.conditions(entry, said) || has_conditions(entry)
        });
    }

    fn is_certainly_ours(&self, condition: &Value, said: &[Value]) -> bool {
        if !is_ours(&condition["type"]) {
            return false;
        }
        let is_over = condition["observedGeneration"].as_i64().is_some_and(|generation| {
            generation > 0 && generation <= self.judged && generation < self.generation
        });
        is_over || said.iter().any(|said| says_the_same(condition, said))
    }
}

/// Apart from the time, which a verdict does not have.
fn says_the_same(condition: &Value, said: &Value) -> bool {
    ["type", "status", "reason", "message", "observedGeneration"]
        .iter()
        .all(|field| condition[field] == said[field])
}

fn has_conditions(holder: &Map<String, Value>) -> bool {
    holder.get("conditions").and_then(Value::as_array).is_some_and(|conditions| !conditions.is_empty())
}
