//! Merging a verdict into the current status of an object.
//!
//! Content of other controllers stays: fields and condition types that are not ours, also inside listeners and our own
//! entries, and whole entries. Conditions of our types are replaced, or removed if the verdict lacks them. Entries of
//! listeners and parents that no longer exist are removed. `lastTransitionTime` changes with `status` alone. Without a
//! change, the result equals the current status, so the writer writes nothing. The merge is pure: the time is an argument,
//! and the writer watches `resourceVersion`.

mod address;
mod release;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};

use super::{
    Conditions, GatewayClassVerdict, GatewayVerdict, ListenerSetVerdict, ListenerVerdict,
    PingsixProxyVerdict, PolicyVerdict, RouteVerdict,
};
use crate::model::{ConditionType, GATEWAY_GROUP, Kind};

/// `status.parents` of a route (Gateway API, `RouteStatus`).
const PARENTS: EntryList = EntryList { list: "parents", reference: "parentRef", max_entries: 32 };

/// `status.ancestors` of a policy (Gateway API, `PolicyStatus`).
const ANCESTORS: EntryList = EntryList { list: "ancestors", reference: "ancestorRef", max_entries: 16 };

/// Merges verdicts into the status of objects.
#[derive(Clone, Debug)]
pub struct StatusMerge {
    controller_name: String,
    /// The time in the format of a status; `None` for conditions without times.
    now: Option<Value>,
}

impl StatusMerge {
    /// A merge for a controller at a time, in whole seconds.
    pub fn new(controller_name: &str, now: &Time) -> Self {
        // No clock has a time that cannot be written. The API server would refuse the empty value by name.
        let now = Some(serde_json::to_value(now).unwrap_or_default());
        Self { controller_name: controller_name.to_owned(), now }
    }

    /// A merge without transition times, for programs without a clock. The current status of objects outside of a
    /// cluster is null.
    pub fn without_times(controller_name: &str) -> Self {
        Self { controller_name: controller_name.to_owned(), now: None }
    }

    /// `GatewayClass.status`
    pub fn gateway_class(&self, current: &Value, verdict: &GatewayClassVerdict) -> Value {
        let mut status = members(current);
        self.replace_conditions(&mut status, &verdict.conditions);
        let features = verdict.supported_features.iter().map(|name| json!({ "name": name }));
        let features: Vec<Value> = features.collect();
        if features.is_empty() {
            status.remove("supportedFeatures");
        } else {
            status.insert("supportedFeatures".to_owned(), Value::Array(features));
        }
        kept_if_equal(current, status)
    }

    /// `PingsixProxy.status`
    pub fn pingsix_proxy(&self, current: &Value, verdict: &PingsixProxyVerdict) -> Value {
        let mut status = members(current);
        match verdict.mode {
            Some(mode) => status.insert("mode".to_owned(), json!(mode)),
            None => status.remove("mode"),
        };
        self.replace_conditions(&mut status, &verdict.conditions);
        kept_if_equal(current, status)
    }

    /// `Gateway.status` without `addresses`, for which see [`Self::gateway_addresses`].
    pub fn gateway(&self, current: &Value, verdict: &GatewayVerdict) -> Value {
        let mut status = members(current);
        self.replace_conditions(&mut status, &verdict.conditions);
        self.replace_listeners(&mut status, &verdict.listeners);
        status.insert("attachedListenerSets".to_owned(), json!(verdict.attached_listener_sets));
        kept_if_equal(current, status)
    }

    /// `ListenerSet.status`
    pub fn listener_set(&self, current: &Value, verdict: &ListenerSetVerdict) -> Value {
        let mut status = members(current);
        self.replace_conditions(&mut status, &verdict.conditions);
        self.replace_listeners(&mut status, &verdict.listeners);
        kept_if_equal(current, status)
    }

    /// `status` of a route of any kind. The verdict must be the merged one of all Gateways ([`RouteVerdict::merge`]): our
    /// other entries are removed.
    pub fn route(&self, current: &Value, verdict: &RouteVerdict) -> Value {
        let ours = verdict
            .parents
            .iter()
            .map(|parent| Entry { reference: parent.parent_ref.to_value(), conditions: &parent.conditions })
            .collect();
        self.replace_entries(current, &PARENTS, ours)
    }

    /// `status` of a policy. The verdicts must be those of all ancestors: our other entries are removed.
    pub fn policy<'v>(
        &self,
        current: &Value,
        verdicts: impl IntoIterator<Item = &'v PolicyVerdict>,
    ) -> Value {
        let ours = verdicts
            .into_iter()
            .map(|verdict| Entry { reference: verdict.ancestor.to_value(), conditions: &verdict.conditions });
        self.replace_entries(current, &ANCESTORS, ours.collect())
    }

    fn replace_conditions(&self, holder: &mut Map<String, Value>, ours: &Conditions) {
        let current =
            holder.get("conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let merged = self.conditions(current, ours);
        holder.insert("conditions".to_owned(), Value::Array(merged));
    }

    /// The current conditions, with ours in place of those of the same type, then our new ones.
    fn conditions(&self, current: &[Value], ours: &Conditions) -> Vec<Value> {
        let mut new: Vec<Value> = ours.to_values();
        let mut merged = Vec::with_capacity(current.len() + new.len());
        for existing in current {
            let kind = &existing["type"];
            match new.iter().position(|condition| condition["type"] == *kind) {
                Some(position) => merged.push(self.condition(Some(existing), new.remove(position))),
                None if is_ours(kind) => {}
                None => merged.push(existing.clone()),
            }
        }
        merged.extend(new.into_iter().map(|condition| self.condition(None, condition)));
        merged
    }

    fn condition(&self, existing: Option<&Value>, mut condition: Value) -> Value {
        let time = existing
            .filter(|existing| existing["status"] == condition["status"])
            .and_then(|existing| existing.get("lastTransitionTime"))
            .filter(|time| time.is_string())
            .or(self.now.as_ref());
        if let Some(time) = time {
            condition["lastTransitionTime"] = time.clone();
        }
        condition
    }

    fn replace_listeners(&self, status: &mut Map<String, Value>, ours: &[ListenerVerdict]) {
        let current = status.remove("listeners").unwrap_or_default();
        let current = current.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut merged: Vec<Value> = Vec::with_capacity(ours.len());
        for listener in ours {
            let existing = current.iter().find(|entry| entry["name"] == *listener.name);
            let mut entry = existing.map(members).unwrap_or_default();
            self.replace_conditions(&mut entry, &listener.conditions);
            let kinds = listener.supported_kinds.iter();
            let kinds: Value = kinds.map(|kind| json!({ "group": kind.group, "kind": kind.kind })).collect();
            entry.insert("name".to_owned(), json!(listener.name));
            entry.insert("supportedKinds".to_owned(), kinds);
            entry.insert("attachedRoutes".to_owned(), json!(listener.attached_routes));
            merged.push(Value::Object(entry));
        }
        status.insert("listeners".to_owned(), Value::Array(merged));
    }

    fn replace_entries(&self, current: &Value, list: &EntryList, mut ours: Vec<Entry<'_>>) -> Value {
        let mut status = members(current);
        let entries = current.get(list.list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut merged = Vec::with_capacity(entries.len() + ours.len());
        for existing in entries {
            if existing["controllerName"] != *self.controller_name {
                merged.push(existing.clone());
                continue;
            }
            let reference = &existing[list.reference];
            let Some(position) = ours.iter().position(|entry| are_equal(&entry.reference, reference)) else {
                continue;
            };
            let Entry { conditions, .. } = ours.remove(position);
            // A second entry with the same reference would be a repetition.
            ours.retain(|entry| !are_equal(&entry.reference, reference));
            let mut entry = members(existing);
            self.replace_conditions(&mut entry, conditions);
            merged.push(Value::Object(entry));
        }
        while !ours.is_empty() && merged.len() < list.max_entries {
            let Entry { reference, conditions } = ours.remove(0);
            ours.retain(|entry| !are_equal(&entry.reference, &reference));
            let mut entry = Map::new();
            entry.insert(list.reference.to_owned(), reference);
            entry.insert("controllerName".to_owned(), json!(self.controller_name));
            self.replace_conditions(&mut entry, conditions);
            merged.push(Value::Object(entry));
        }
        if merged.is_empty() && entries.is_empty() {
            return current.clone();
        }
        status.insert(list.list.to_owned(), Value::Array(merged));
        kept_if_equal(current, status)
    }
}

/// A list of entries that several controllers share.
struct EntryList {
    list: &'static str,
    reference: &'static str,
    /// The largest number of entries in the API.
    max_entries: usize,
}

/// One of our entries.
struct Entry<'v> {
    reference: Value,
    conditions: &'v Conditions,
}

/// Whether two references are equal with the defaults that the API server adds to statuses and specs.
fn are_equal(one: &Value, other: &Value) -> bool {
    let with_defaults = |reference: &Value| {
        let mut fields = members(reference);
        fields.entry("group").or_insert_with(|| json!(GATEWAY_GROUP));
        fields.entry("kind").or_insert_with(|| json!(Kind::Gateway.as_str()));
        fields
    };
    with_defaults(one) == with_defaults(other)
}

/// Whether a condition type is ours. Such a condition is removed if the verdict lacks it.
fn is_ours(kind: &Value) -> bool {
    ConditionType::ALL.iter().any(|known| *kind == known.as_str())
}

/// The members of an object; none for other values.
fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// The current status if the new one is equal. An absent status equals an empty one.
fn kept_if_equal(current: &Value, status: Map<String, Value>) -> Value {
    if current.as_object() == Some(&status) || (current.is_null() && status.is_empty()) {
        current.clone()
    } else {
        Value::Object(status)
    }
}

#[cfg(test)]
mod tests;
