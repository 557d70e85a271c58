//! TrafficPolicies: which of them count for a rule, field by field, and the treatment they ask for together.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::generate::schema::has_mistake;
use super::World;
use super::filter::Changes;
use super::security::{Inherited, Policy, Target, Unhonoured, contributors, oldest_for};
use crate::protection::{Quota, Treatment};

/// The inherited fields without `rateLimit`.
const OPTIONAL: [&str; 6] =
    ["compression", "requestID", "faultInjection", "grpcWeb", "responseHeaders", "cache"];

impl World {
    /// Adds the treatment by the policies at these levels, from the widest to the narrowest.
    pub(super) fn treat(&self, levels: &[Target<'_>], inherited: &mut Inherited) -> Result<(), Unhonoured> {
        let counting = levels.iter().map(|level| oldest_for(&self.traffic_policies, level));
        // By field: the level and the policy.
        let mut chosen: BTreeMap<&str, (usize, &Policy)> = BTreeMap::new();
        for (level, policy) in counting.enumerate() {
            let Some(policy) = policy else { continue };
            let is_limited = policy.spec.get("rateLimit").is_some();
            if !policy.has_targets_of_one_class() || !has_strategy(policy) {
                if is_limited {
                    return Err(Unhonoured);
                }
                continue;
            }
            // No class allows shared caches, and namespaces share every IngressClass.
            let is_shared = self.is_shared() || levels.iter().any(|(kind, ..)| *kind == "Ingress");
            let is_allowed = |field: &&str| *field != "cache" || !is_shared;
            let fields = OPTIONAL.into_iter().filter(is_allowed);
            let mut fields: Vec<&str> = fields.filter(|field| treatment(policy, field).is_some()).collect();
            if is_limited {
                fields.push("rateLimit");
            }
            for field in fields {
                let is_settled = chosen.get(field).is_some_and(|(_, wider)| wider.overrides());
                if !is_settled {
                    chosen.insert(field, (level, policy));
                }
            }
        }
        let together = &mut inherited.protection.treatment;
        for (field, (_, policy)) in &chosen {
            let Some(Part { treatment: part, headers }) = treatment(policy, field) else {
                return Err(Unhonoured);
            };
            let Treatment { quota, codings, id, delay, error, is_web, cache } = part;
            together.quota = together.quota.take().or(quota);
            together.codings.extend(codings);
            together.id = together.id.take().or(id);
            together.delay = together.delay.or(delay);
            together.error = together.error.or(error);
            together.is_web |= is_web;
            together.cache = together.cache.take().or(cache);
            inherited.headers = inherited.headers.take().or(headers);
        }
        inherited.traffic_policies = contributors(chosen.into_values());
        Ok(())
    }
}

/// Whether a policy can be honoured in full.
pub(super) fn is_valid(policy: &Policy) -> bool {
    let fields = policy.spec.as_object().unwrap().keys();
    policy.has_targets_of_one_class()
        && has_strategy(policy)
        && fields.map(String::as_str).all(|field| match field {
            "targetRefs" | "strategy" => true,
            "rateLimit" => treatment(policy, field).is_some(),
            field => OPTIONAL.contains(&field) && treatment(policy, field).is_some(),
        })
}

fn has_strategy(policy: &Policy) -> bool {
    policy.spec.get("strategy").is_none_or(|strategy| strategy == "Defaults" || strategy == "Overrides")
}

/// The part of a treatment that a field asks for.
#[derive(Default)]
struct Part {
    treatment: Treatment,
    headers: Option<Changes>,
}

/// The part that a field asks for; `None` if the field is not set or not valid.
fn treatment(policy: &Policy, field: &str) -> Option<Part> {
    let value = policy.spec.get(field).filter(|value| !has_mistake(value))?;
    let mut part = Part::default();
    let treatment = &mut part.treatment;
    match field {
        "rateLimit" => treatment.quota = Some(quota(&value["local"])?),
        "compression" => {
            for coding in value.as_array()? {
                let (name, most) = match coding["type"].as_str()? {
                    "Gzip" => ("gzip", 9),
                    "Brotli" => ("br", 11),
                    _ => return None,
                };
                let level = coding.get("level").map_or(Some(1), Value::as_u64)?;
                let is_new = treatment.codings.insert(name.to_owned(), level).is_none();
                if !(1..=most).contains(&level) || !is_new {
                    return None;
                }
            }
            if treatment.codings.is_empty() {
                return None;
            }
        }
        "requestID" => {
            let name = value["headerName"].as_str().unwrap_or("x-request-id").to_ascii_lowercase();
            if name.contains(' ') || name == "host" || name == "upgrade" {
                return None;
            }
            treatment.id = Some((name, value["inResponse"] != false));
        }
        "faultInjection" => {
            let share = |of: &Value| of.get("percentage").map_or(Some(100), Value::as_u64);
            if let Some(delay) = value.get("delay") {
                let millis = match delay["duration"].as_str()? {
                    "250ms" => 250,
                    "1m" => 60_000,
                    _ => return None,
                };
                treatment.delay = Some((millis, share(delay).filter(|share| *share <= 100)?));
            }
            if let Some(abort) = value.get("abort") {
                let status = abort["httpStatus"].as_u64().filter(|status| (200..600).contains(status))?;
                treatment.error = Some((status, share(abort).filter(|share| *share <= 100)?));
            }
            if treatment.delay.is_none() && treatment.error.is_none() {
                return None;
            }
        }
        "grpcWeb" => treatment.is_web = true,
        "responseHeaders" => {
            let is_set = ["set", "add", "remove"].iter().any(|list| value.get(list).is_some());
            part.headers = Some(Changes::read(value, false).filter(|_| is_set)?);
        }
        "cache" => {
            let seconds = match value["ttl"].as_str()? {
                "5s" => 5,
                "24h" => 86_400,
                _ => return None,
            };
            let methods: BTreeSet<String> = match value.get("methods") {
                None => ["GET", "HEAD"].map(str::to_owned).into(),
                Some(methods) => {
                    methods.as_array()?.iter().map(|one| one.as_str().unwrap().to_owned()).collect()
                }
            };
            let statuses: BTreeSet<u64> = match value.get("statuses") {
                None => [200].into(),
                Some(statuses) => statuses.as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?,
            };
            let is_kept = |status: &u64| (200..600).contains(status) && ![206, 304].contains(status);
            if !statuses.iter().all(is_kept) {
                return None;
            }
            treatment.cache = Some((seconds, methods, statuses));
        }
        other => panic!("no field {other}"),
    }
    Some(part)
}

fn quota(local: &Value) -> Option<Quota> {
    let kind = match local["key"]["type"].as_str().unwrap_or("RemoteAddress") {
        "RemoteAddress" => None,
        "Header" => Some("header"),
        "Cookie" => Some("cookie"),
        "QueryParam" => Some("parameter"),
        _ => return None,
    };
    let by = match (kind, local["key"]["name"].as_str()) {
        (None, None) => None,
        (Some(kind), Some(name)) if !name.contains(['!', ' ']) => {
            let name = if kind == "header" { name.to_ascii_lowercase() } else { name.to_owned() };
            Some((kind, name))
        }
        _ => return None,
    };
    Some(Quota {
        requests: local["limit"]["requests"]
            .as_u64()
            .filter(|requests| (1..=1_000_000_000).contains(requests))?,
        seconds: match local["limit"]["unit"].as_str()? {
            "Second" => 1,
            "Minute" => 60,
            "Hour" => 60 * 60,
            "Day" => 24 * 60 * 60,
            _ => return None,
        },
        by,
        shares: local["onMissingKey"] != "Deny",
        status: local
            .get("rejectCode")
            .map_or(Some(429), Value::as_u64)
            .filter(|status| (400..600).contains(status))?,
        tells: local["quotaHeaders"] != false,
    })
}
