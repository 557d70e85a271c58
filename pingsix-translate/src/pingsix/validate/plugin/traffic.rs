//! `traffic-split`, `limit-count` and `cache`.

use serde_json::Value;

use super::Plugin;
use crate::pingsix::ResourceKind;
use crate::pingsix::plugin::{Cache, KeyMissingPolicy, LimitCount, Scope, SplitRule, TrafficSplit};
use crate::pingsix::upstream::HashOn;
use crate::pingsix::validate::{Rule, Severity, upstream};

/// Checks a traffic split. PingSIX makes all these checks before its compilation.
pub(super) fn check_split(plugin: &mut Plugin<'_>) {
    let Some(split) = plugin.decode::<TrafficSplit>() else { return };
    check_is_object(plugin, Some(plugin.config), "");
    if split.rules.is_empty() {
        plugin.report(Rule::TrafficSplit, Severity::Rejected, "rules", "There must be at least one rule.");
    }
    for (index, rule) in split.rules.iter().enumerate() {
        check_rule(plugin, index, rule);
    }
}

/// Checks that a value is an object. A list of values in the order of the fields decodes, too, but PingSIX's search
/// for inline upstreams needs the names of the fields.
fn check_is_object(plugin: &mut Plugin<'_>, raw: Option<&Value>, field: &str) {
    if raw.is_some_and(Value::is_array) {
        plugin.refuse(field, "PingSIX cannot compile a list in the place of an object.");
    }
}

fn check_rule(plugin: &mut Plugin<'_>, index: usize, rule: &SplitRule) {
    let raw = plugin.config.pointer(&format!("/rules/{index}"));
    check_is_object(plugin, raw, &format!("rules[{index}]"));
    // APISIX has its conditions in this field.
    if raw.is_some_and(|raw| raw.get("match").is_some()) {
        plugin.warn(
            &format!("rules[{index}].match"),
            "PingSIX ignores `match`, so the rule applies whatever it says.",
        );
    }
    plugin.check_conditions(&rule.vars, &format!("rules[{index}].vars"));
    let field = format!("rules[{index}].weighted_upstreams");
    if rule.weighted_upstreams.is_empty() {
        plugin.report(Rule::TrafficSplit, Severity::Rejected, &field, "There must be at least one target.");
    } else if rule.weighted_upstreams.iter().all(|target| target.weight == 0) {
        plugin.report(Rule::TrafficSplit, Severity::Rejected, &field, "The total weight must be above 0.");
    }
    for (position, target) in rule.weighted_upstreams.iter().enumerate() {
        let field = format!("{field}[{position}]");
        if target.upstream_id.is_some() && target.upstream.is_some() {
            let message = "A target cannot have both `upstream` and `upstream_id`.";
            plugin.report(Rule::TrafficSplit, Severity::Rejected, &field, message);
        }
        if let Some(id) = &target.upstream_id {
            let name = plugin.name;
            let at = || format!("plugins.{name}.{field}.upstream_id");
            plugin.context.check_reference(ResourceKind::Upstream, id, at, plugin.out);
        }
        if let Some(inline) = &target.upstream {
            let at = plugin.at(&format!("{field}.upstream"));
            upstream::check_split_target(inline, &at, plugin.context, plugin.out);
        }
        let raw = raw.and_then(|raw| raw.pointer(&format!("/weighted_upstreams/{position}")));
        if target.upstream.is_some() {
            check_is_object(plugin, raw, &field);
        }
        if raw.and_then(|raw| raw.get("upstream")).is_some_and(Value::is_null) {
            plugin.refuse(&format!("{field}.upstream"), "A null upstream cannot be compiled; leave it out.");
        }
    }
}

pub(super) fn check_limit(plugin: &mut Plugin<'_>) {
    let Some(limit) = plugin.decode::<LimitCount>() else { return };
    plugin.check_fields(&limit);
    let allowed = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if limit.key.is_empty() || !limit.key.chars().all(allowed) {
        plugin.refuse("key", "A key consists of letters, digits, dashes, underscores and dots.");
    }
    check_scope(plugin, limit.scope);
    check_missing_key(plugin, &limit);
}

/// Checks the handling of requests without the key. PingSIX knows few variables (`src/utils/request.rs`,
/// `handle_vars`), and some are empty for some requests.
fn check_missing_key(plugin: &mut Plugin<'_>, limit: &LimitCount) {
    let (may_be_missing, is_known) = match (limit.key_type, limit.key.as_str()) {
        (HashOn::Vars, "uri" | "request_uri" | "remote_addr" | "remote_port" | "server_addr") => {
            (false, true)
        }
        (HashOn::Vars, key) => (true, key == "query_string" || key.starts_with("arg_")),
        (HashOn::Head | HashOn::Cookie, _) => (true, true),
    };
    if !is_known {
        let key = &limit.key;
        plugin.warn("key", format!("PingSIX has no variable \"{key}\", so every request lacks the key."));
    }
    match limit.key_missing_policy {
        KeyMissingPolicy::Allow if may_be_missing => {
            plugin.harm("key_missing_policy", "A client that leaves out the key passes without a limit.");
        }
        KeyMissingPolicy::Deny if !is_known => {
            plugin.harm("key_missing_policy", "Every request lacks the key and answers 400.");
        }
        KeyMissingPolicy::Allow | KeyMissingPolicy::Deny | KeyMissingPolicy::Default => {}
    }
}

pub(super) fn check_cache(plugin: &mut Plugin<'_>) {
    let Some(cache) = plugin.decode::<Cache>() else { return };
    plugin.check_fields(&cache);
    for (index, method) in cache.cache_http_methods.iter().enumerate() {
        if method.parse::<http::Method>().is_err() {
            plugin
                .refuse(&format!("cache_http_methods[{index}]"), format!("\"{method}\" is no HTTP method."));
        }
    }
    for (index, pattern) in cache.no_cache_str.iter().enumerate() {
        plugin.check_regex(pattern, &format!("no_cache_str[{index}]"));
    }
    for (index, header) in cache.vary.iter().enumerate() {
        if header.trim() == "*" || header.trim().parse::<http::HeaderName>().is_err() {
            plugin.refuse(&format!("vary[{index}]"), format!("\"{header}\" is no header to vary by."));
        }
    }
    check_scope(plugin, cache.scope);
}

fn check_scope(plugin: &mut Plugin<'_>, scope: Scope) {
    if scope == Scope::Cluster {
        plugin.refuse("scope", "PingSIX has no store that is shared by a cluster.");
    }
}
