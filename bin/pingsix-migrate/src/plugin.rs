//! Plugins of APISIX: one function per plugin, from its configuration to filters and fields of policies.

mod access;
mod answer;
mod authentication;
mod limit;
mod refused;
mod rewrite;
mod telemetry;
mod transform;

pub(crate) use access::networks;
pub(crate) use limit::variable;
use pingsix_translate::ObjectName;
use serde_json::{Map, Value};

use super::consumer::Pool;
use super::objects::NewSecret;
use super::report::{Place, Reason, Report};
use super::source::{Field, Fields};

/// The target of the plugins.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The namespace of the policies, and of the objects to which they refer.
    pub(crate) namespace: &'a str,
    /// The beginning of the names of such objects.
    pub(crate) name: &'a str,
    /// The consumers whose credentials count. `None` if that is unknown.
    pub(crate) consumers: Option<&'a Pool>,
    pub(crate) level: Level,
}

/// Where plugins run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// On the requests of one rule.
    Rule,
    /// On all requests of a Gateway.
    Gateway,
}

impl Level {
    /// Whether a SecurityPolicy at this level removes credentials by default.
    const fn sanitizes(self) -> bool {
        matches!(self, Self::Gateway)
    }
}

/// The effects of the plugins of one rule or Gateway.
#[derive(Clone, Default)]
pub(crate) struct Effects {
    /// Filters of an HTTPRoute, without rewrites of the URL.
    pub(crate) filters: Vec<Value>,
    /// The new host of requests.
    pub(crate) hostname: Option<String>,
    /// `urlRewrite.path` of an HTTPRoute.
    pub(crate) path: Option<Value>,
    /// `urlRewrite` of an HTTPRouteFilter.
    pub(crate) regex: Option<Value>,
    /// `directResponse` of an HTTPRouteFilter.
    pub(crate) response: Option<Value>,
    /// `requestRedirect` of an HTTPRoute.
    pub(crate) redirect: Option<Value>,
    /// Whether requests in plaintext are redirected to HTTPS.
    pub(crate) https_only: bool,
    /// Fields of a SecurityPolicy.
    pub(crate) security: Map<String, Value>,
    /// Fields of a TrafficPolicy.
    pub(crate) traffic: Map<String, Value>,
    /// Fields of the telemetry of a PingsixProxy.
    pub(crate) telemetry: Map<String, Value>,
    /// Whether a plugin decides who may send requests, or how many.
    pub(crate) protects: bool,
    /// Secrets to which the SecurityPolicy refers, perhaps in other namespaces.
    pub(crate) referents: Vec<ObjectName>,
    /// Secrets that are to be written, each with the field of the SecurityPolicy that refers to it.
    pub(crate) secrets: Vec<(&'static str, NewSecret)>,
}

/// The fields of a SecurityPolicy that are one field: the ways to authenticate.
pub(crate) const AUTHENTICATIONS: [&str; 3] = ["apiKeyAuth", "basicAuth", "jwt"];

impl Effects {
    /// Sets a field of the SecurityPolicy.
    pub(crate) fn secure(&mut self, field: &str, value: Value, place: &Place, report: &mut Report) {
        let is_authentication = AUTHENTICATIONS.contains(&field);
        if is_authentication && AUTHENTICATIONS.iter().any(|other| self.security.contains_key(*other)) {
            let message = "A rule has one authentication, and this would be a second one.";
            report.blocking(place, Reason::Conflict, message);
        } else if self.security.contains_key(field) {
            let message = format!("The rule has {field} already, and PingSIX checks one of them alone.");
            report.blocking(place, Reason::Conflict, message);
        } else {
            self.security.insert(field.to_owned(), value);
        }
    }

    /// Sets a field of the TrafficPolicy.
    pub(crate) fn treat(&mut self, field: &str, value: Value, place: &Place, report: &mut Report) {
        if self.traffic.contains_key(field) {
            let message = format!("The rule has {field} already, and PingSIX has one of them.");
            report.blocking(place, Reason::Conflict, message);
        } else {
            self.traffic.insert(field.to_owned(), value);
        }
    }
}

/// A plugin with its configuration, which may hold secrets.
#[derive(Clone)]
pub(crate) struct PluginUse {
    pub(crate) place: Place,
    pub(crate) name: String,
    pub(crate) config: Fields,
    is_enabled: bool,
}

/// The most plugins of a list. APISIX has about a hundred.
const MAX_PLUGINS: usize = 256;

/// How a list of plugins switches them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// `enable`, by default true.
    Enable,
    /// `enabled`, by default false.
    Enabled,
    /// There is no field.
    Always,
}

/// Reads the items of a list of plugins.
pub(crate) fn read(items: Vec<Field>, switch: Switch, report: &mut Report) -> Vec<PluginUse> {
    let mut plugins = Vec::new();
    if let Some(first) = items.first().filter(|_| items.len() > MAX_PLUGINS) {
        let message = format!("The list has more than {MAX_PLUGINS} plugins.");
        report.blocking(&first.place, Reason::TooMany, message);
        return plugins;
    }
    for item in items {
        let Some(mut fields) = item.object(report) else { continue };
        let place = fields.place.clone();
        let Some((_, name)) = fields.text("name", report) else {
            let message = "The plugin has no name, so its effect is unknown.";
            report.blocking(&place, Reason::MissingField, message);
            continue;
        };
        let is_enabled = match switch {
            Switch::Enable => fields.truth("enable", report).is_none_or(|(_, on)| on),
            Switch::Enabled => fields.truth("enabled", report).is_some_and(|(_, on)| on),
            Switch::Always => true,
        };
        let config = fields.object("config", report);
        let config = config.unwrap_or_else(|| Fields::empty(place.at("config")));
        let secret = fields.filled("secretRef", report);
        if let Some((place, _)) = secret {
            let message = "A part of the configuration is in a Secret, and such parts are not converted. Write it into config.";
            report.blocking(&place, Reason::UnsupportedField, message);
        }
        fields.finish(report);
        plugins.push(PluginUse { place, name, config, is_enabled });
    }
    plugins
}

/// Plugins of one rule: of equal names, the last one counts.
pub(crate) fn merge(lists: Vec<Vec<PluginUse>>, report: &mut Report) -> Vec<PluginUse> {
    let mut merged: Vec<PluginUse> = Vec::new();
    // A plugin that is switched off takes no other one's place.
    for plugin in lists.into_iter().flatten() {
        if !plugin.is_enabled {
            report.exact_whole(&plugin.place, "The plugin is switched off, so it becomes nothing.");
            continue;
        }
        if let Some(earlier) = merged.iter().position(|other| other.name == plugin.name) {
            let earlier = merged.remove(earlier);
            report.exact_whole(&earlier.place, format!("{} replaces the plugin.", plugin.place.field));
        }
        merged.push(plugin);
    }
    merged
}

/// Converts the plugins of a rule or a Gateway.
pub(crate) fn convert(plugins: Vec<PluginUse>, scope: Scope<'_>, report: &mut Report) -> Effects {
    let mut effects = Effects::default();
    for plugin in plugins {
        convert_one(plugin, scope, &mut effects, report);
    }
    effects
}

fn convert_one(plugin: PluginUse, scope: Scope<'_>, effects: &mut Effects, report: &mut Report) {
    let PluginUse { place, name, mut config, .. } = plugin;
    if let Some(mut meta) = config.object("_meta", report) {
        if meta.truth("disable", report).is_some_and(|(_, is_off)| is_off) {
            return report.exact_whole(&place, "The plugin is switched off, so it becomes nothing.");
        }
        meta.drop(["priority"], report, "PingSIX runs plugins in a fixed order.");
        meta.drop(["error_response"], report, "PingSIX has messages of its own.");
        if let Some(filter) = meta.take("filter") {
            let message = "PingSIX runs plugins without conditions.";
            report.blocking(&filter.place, Reason::UnsupportedPlugin, message);
        }
        meta.finish(report);
    }
    // APISIX writes `disable` into the configuration, too.
    config.drop(["disable"], report, "The field has no effect in recent versions of APISIX.");
    match name.as_str() {
        "key-auth" => authentication::key_auth(config, scope, effects, report),
        "basic-auth" => authentication::basic_auth(config, scope, effects, report),
        "jwt-auth" => authentication::jwt_auth(config, scope, effects, report),
        "csrf" => access::csrf(config, scope, effects, report),
        "ip-restriction" => access::ip_restriction(config, effects, report),
        "real-ip" => access::real_ip(config, effects, report),
        "cors" => access::cors(config, effects, report),
        "limit-count" => limit::limit_count(config, effects, report),
        "proxy-rewrite" => rewrite::proxy_rewrite(config, effects, report),
        "response-rewrite" => rewrite::response_rewrite(config, scope.level, effects, report),
        "redirect" => answer::redirect(config, effects, report),
        "fault-injection" => answer::fault_injection(config, effects, report),
        "mocking" => answer::mocking(config, effects, report),
        "gzip" => transform::gzip(config, effects, report),
        "brotli" => transform::brotli(config, effects, report),
        "request-id" => transform::request_id(config, effects, report),
        "grpc-web" => transform::grpc_web(config, effects, report),
        "proxy-cache" => transform::proxy_cache(config, effects, report),
        "prometheus" => telemetry::prometheus(config, scope.level, effects, report),
        "file-logger" => telemetry::file_logger(config, scope.level, effects, report),
        other => refused::refuse(other, &place, effects, report),
    }
}
