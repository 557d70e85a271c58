//! BackendTrafficPolicies: timeouts and retries of connections to Services in plaintext.

use serde_json::Value;

use super::World;
use super::security::{Policy, oldest_for};
use super::world::Name;
use crate::effect::Way;

impl World {
    /// The way to a port of a Service; `None` if a policy forbids connections in plaintext.
    pub(crate) fn way_under_policies(&self, service: &Name, port: &str, without: Way) -> Option<Way> {
        let policies = &self.backend_traffic_policies;
        let of_section = |section| oldest_for(policies, &("Service", service.clone(), section));
        let Some(policy) = of_section(Some(port)).or_else(|| of_section(None)) else { return Some(without) };
        if policy.spec.get("tls").is_some() {
            return None;
        }
        Some(way(policy, without).unwrap_or(without))
    }
}

/// The way under a policy; `None` if PingSIX cannot honour the policy.
fn way(policy: &Policy, without: Way) -> Option<Way> {
    let mut way = without;
    if policy.spec["loadBalancer"]["type"] == "LeastRequest" {
        return None;
    }
    if let Some(active) = policy.spec.pointer("/healthCheck/active") {
        let mut statuses = active["http"]["expectedStatuses"].as_array().into_iter().flatten();
        let is_probe_by_connection = active["type"] == "TCP";
        if active["interval"] == "500ms"
            || is_probe_by_connection && active.get("http").is_some()
            || statuses.any(|status| *status == 99)
        {
            return None;
        }
    }
    if policy.spec["retry"]["timeout"] == "500ms" {
        return None;
    }
    if let Some(timeout) = policy.spec.get("timeout") {
        let (connect, send, read) = without.timeout.unwrap_or((5, 30, 30));
        let seconds = |field: &str, without: u64| match timeout[field].as_str() {
            None => Some(without),
            Some("2s") => Some(2),
            Some("1m") => Some(60),
            Some(_) => None,
        };
        way.timeout = Some((seconds("connect", connect)?, seconds("send", send)?, seconds("read", read)?));
    }
    if let Some(retries) = policy.spec["retry"].get("numRetries").and_then(Value::as_u64) {
        way.retries = Some(retries).filter(|retries| *retries <= 16)?;
    }
    Some(way)
}
