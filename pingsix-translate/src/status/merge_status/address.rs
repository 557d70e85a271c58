//! The addresses of data planes in the status of Gateways and Ingresses.

use serde_json::{Map, Value, json};

use super::{StatusMerge, kept_if_equal, members};
use crate::model::Address;

/// The largest number of entries in `status.addresses` of a Gateway (Gateway API, `GatewayStatus`).
const MAX_ADDRESSES: usize = 16;

impl StatusMerge {
    /// `addresses` in `Gateway.status`, in the order given.
    pub fn gateway_addresses(&self, current: &Value, addresses: &[Address]) -> Value {
        let mut status = members(current);
        let mut entries = entries(addresses, Address::to_gateway_status);
        entries.truncate(MAX_ADDRESSES);
        if entries.is_empty() {
            status.remove("addresses");
        } else {
            status.insert("addresses".to_owned(), Value::Array(entries));
        }
        kept_if_equal(current, status)
    }

    /// `loadBalancer` in `Ingress.status`. An existing entry keeps its other fields, such as ports.
    pub fn ingress(&self, current: &Value, addresses: &[Address]) -> Value {
        let mut status = members(current);
        let found = current["loadBalancer"]["ingress"].as_array().map(Vec::as_slice).unwrap_or_default();
        let entries: Vec<Value> = entries(addresses, Address::to_ingress_status)
            .into_iter()
            .map(|entry| {
                found.iter().find(|found| are_of_one_address(found, &entry)).cloned().unwrap_or(entry)
            })
            .collect();
        if entries.is_empty() && found.is_empty() {
            return current.clone();
        }
        set_ingress(&mut status, entries);
        kept_if_equal(current, status)
    }

    /// The status of an Ingress that is no longer ours: without `loadBalancer`, if this still has our last value. The new
    /// controller of the Ingress may have written another value.
    pub fn release_ingress(&self, current: &Value, last: &[Address]) -> Value {
        let found = current["loadBalancer"]["ingress"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ours = entries(last, Address::to_ingress_status);
        let is_ours = !found.is_empty()
            && found.len() == ours.len()
            && found.iter().zip(&ours).all(|(found, ours)| are_of_one_address(found, ours));
        if !is_ours {
            return current.clone();
        }
        let mut status = members(current);
        set_ingress(&mut status, Vec::new());
        Value::Object(status)
    }
}

/// One entry per address, in the order given.
fn entries(addresses: &[Address], entry: fn(&Address) -> Value) -> Vec<Value> {
    let mut entries: Vec<Value> = Vec::with_capacity(addresses.len());
    for address in addresses {
        let entry = entry(address);
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries
}

fn are_of_one_address(one: &Value, other: &Value) -> bool {
    ["ip", "hostname"].iter().all(|field| one[field].as_str() == other[field].as_str())
}

fn set_ingress(status: &mut Map<String, Value>, entries: Vec<Value>) {
    let balancer = status.entry("loadBalancer").or_insert_with(|| json!({}));
    if !balancer.is_object() {
        *balancer = json!({});
    }
    if let Some(balancer) = balancer.as_object_mut() {
        if entries.is_empty() {
            balancer.remove("ingress");
        } else {
            balancer.insert("ingress".to_owned(), Value::Array(entries));
        }
    }
}
