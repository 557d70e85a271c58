//! Objects of Gateway API for the Go controller: filters and policies of its own are converted.

use std::collections::BTreeMap;

use pingsix_translate::{Kind, ObjectKey, ObjectName, PINGSIX_GROUP};
use serde_json::{Map, Value, json};

use super::conditions::{self, Condition};
use super::rules::PolicyFields;
use super::upstream::{self, Upstream};
use super::{Context, Draft, matches, plugin_config, route, rules};
use crate::consumer::Pool;
use crate::owner::Owner;
use crate::plugin::{self, Effects, Level, Scope};
use crate::predecessor::APISIX_GROUP;
use crate::report::{Place, Reason, Report};
use crate::source::{Predecessors, Source, SourceKind};

/// A policy for a route or a rule of it.
struct RoutePolicy {
    place: Place,
    section: Option<String>,
    conditions: Vec<Condition>,
    is_lost: bool,
}

/// Converts the routes that stay.
pub(super) fn convert(predecessors: &mut Predecessors, draft: &mut Draft<'_>) {
    let context = draft.context;
    let mut policies = route_policies(predecessors, context, draft.report);
    let services = upstream::convert_policies(predecessors, draft);
    let keys: Vec<ObjectKey> = context
        .sources
        .kept
        .keys()
        .filter(|key| matches!(key.kind, Kind::HttpRoute | Kind::GrpcRoute))
        .cloned()
        .collect();
    for key in keys {
        let own = policies.remove(&key).unwrap_or_default();
        convert_route(&key, &own, &services, draft);
    }
    for (key, policies) in policies {
        for policy in policies {
            if key.kind == Kind::Ingress {
                let message = format!(
                    "{key} is not written, because HTTPRoutePolicies of Ingresses are not converted."
                );
                draft.report.blocking(&policy.place, Reason::LostReferent, message);
                draft.report.withhold(&Place::object(key.to_string()), "The Ingress is not written.");
                draft.output.objects.remove(&key);
            } else {
                let message = format!(
                    "{key} is not among the input, so the policy becomes nothing. Give both together."
                );
                draft.report.impossible(&policy.place, Reason::MissingReferent, message);
            }
        }
    }
}

/// The HTTPRoutePolicies by their targets.
fn route_policies(
    predecessors: &mut Predecessors,
    context: &Context<'_>,
    report: &mut Report,
) -> BTreeMap<ObjectKey, Vec<RoutePolicy>> {
    let mut policies: BTreeMap<ObjectKey, Vec<RoutePolicy>> = BTreeMap::new();
    for source in predecessors.take(SourceKind::HttpRoutePolicy) {
        let Source { kind, name, place, mut spec } = source;
        let is_allowed = context.choices.may_be_weaker(kind.as_str(), &name);
        let before = report.losses();
        let targets = spec.list("targetRefs", report);
        if let Some(priority) = spec.take("priority")
            && priority.value.as_i64() != Some(0)
        {
            let message = "HTTPRoutes have no priority, so the target may take requests of other routes, or lose some to them.";
            report.blocking(&priority.place, Reason::UnsupportedField, message);
        }
        let vars = spec.list("vars", report);
        let conditions: Vec<Condition> =
            vars.into_iter().filter_map(|item| conditions::of_vars(item, report)).collect();
        spec.finish(report);
        for target in targets {
            let Some(mut fields) = target.object(report) else { continue };
            let target_kind = fields.text_or_empty("kind", report);
            let target_name = fields.text_or_empty("name", report);
            let section = fields.text("sectionName", report).map(|(_, section)| section);
            let _ = fields.text("group", report);
            let at = fields.place.clone();
            fields.finish(report);
            let known =
                [Kind::HttpRoute, Kind::Ingress].into_iter().find(|kind| kind.as_str() == target_kind);
            let Some(known) = known else {
                let message = "The policy is for HTTPRoutes and Ingresses. Name one of these.";
                report.impossible(&at, Reason::UnsuitableReferent, message);
                continue;
            };
            let is_lost = report.losses() > before && !is_allowed;
            let conditions = conditions.clone();
            let key = ObjectKey::new(known, &*name.namespace, target_name);
            let place = if is_lost { place.clone() } else { at };
            policies.entry(key).or_default().push(RoutePolicy { place, section, conditions, is_lost });
        }
    }
    policies
}

/// The Gateways of a route.
fn gateways(key: &ObjectKey, route: &Value) -> Vec<ObjectName> {
    let parents = route.pointer("/spec/parentRefs").and_then(Value::as_array);
    let mut gateways: Vec<ObjectName> = parents
        .into_iter()
        .flatten()
        .map(|parent| {
            let text = |field: &str| parent.get(field).and_then(Value::as_str);
            let namespace = text("namespace").unwrap_or(&key.name.namespace);
            ObjectName::new(namespace, text("name").unwrap_or_default())
        })
        .collect();
    gateways.sort_unstable();
    gateways.dedup();
    gateways
}

fn is_plugin_config(filter: &Value) -> bool {
    filter.pointer("/extensionRef/group").and_then(Value::as_str) == Some(APISIX_GROUP)
}

fn convert_route(
    key: &ObjectKey,
    policies: &[RoutePolicy],
    services: &BTreeMap<ObjectName, Upstream>,
    draft: &mut Draft<'_>,
) {
    let context = draft.context;
    let Some(mut value) = draft.output.objects.get_mut(key).cloned() else { return };
    let gateways = gateways(key, &value);
    let consumers = match gateways.as_slice() {
        [one] => Some(context.consumers.pool(&Owner::Gateway(one.clone()))),
        // Several Gateways may have different consumers.
        _ => None,
    };
    let kind_name = key.kind.as_str();
    let is_allowed = context.choices.may_be_weaker(kind_name, &key.name);
    let place = Place::object(key.to_string());
    let Some(Value::Array(list)) = value.pointer_mut("/spec/rules") else { return };
    let mut names: Vec<String> = Vec::new();
    let mut fields: Vec<PolicyFields> = Vec::new();
    for (index, rule) in list.iter_mut().enumerate() {
        let Value::Object(rule) = rule else { return };
        let at = place.at("spec.rules").item(index);
        let given = rule.get("name").and_then(Value::as_str).map(str::to_owned);
        let name = given.clone().unwrap_or_else(|| format!("rule-{index}"));
        let before = draft.report.losses();
        let mut effects = Effects::default();
        let touched = extensions(key, rule, &at, consumers, &mut effects, draft);
        hosts(key, rule, services, &at, &mut effects, draft.report);
        let is_changed = touched || effects.hostname.is_some();
        context.refuse_second_protection(&mut effects, &gateways, &at, draft.report);
        let filters_of_backends = rule.get("backendRefs").and_then(Value::as_array).into_iter().flatten();
        let mut filters_of_backends =
            filters_of_backends.filter_map(|backend| backend.get("filters")?.as_array()).flatten();
        if filters_of_backends.any(is_plugin_config) {
            let message = "A backend has plugins, and rules alone have them. Move the plugins to the rule.";
            draft.report.blocking(&at.at("backendRefs"), Reason::UnsupportedPlugin, message);
        }
        for policy in policies {
            let applies = policy.section.as_ref().is_none_or(|section| given.as_ref() == Some(section));
            if !applies {
                continue;
            }
            if policy.is_lost {
                let message = format!("{} cannot be converted.", policy.place.object);
                draft.report.blocking(&at, Reason::LostReferent, message);
                effects.protects = true;
            } else {
                add_conditions(rule, &policy.conditions, &at, draft.report);
                draft.report.exact(&policy.place, format!("The conditions are part of {key}."));
            }
        }
        if draft.report.losses() > before && !is_allowed {
            refuse(key, rule, &at, draft);
            fields.push(PolicyFields::default());
        } else {
            if is_changed {
                let base = format!("{}-{name}", key.name.name);
                let backends = rule.remove("backendRefs");
                let backends: Vec<Value> =
                    backends.and_then(|list| list.as_array().cloned()).unwrap_or_default();
                let (filters, backends) =
                    rules::filters(&key.name.namespace, &base, &mut effects, backends, draft.output);
                let mut all =
                    rule.remove("filters").and_then(|list| list.as_array().cloned()).unwrap_or_default();
                all.extend(filters);
                if !all.is_empty() {
                    rule.insert("filters".to_owned(), json!(all));
                }
                if !backends.is_empty() {
                    rule.insert("backendRefs".to_owned(), json!(backends));
                }
            }
            if !effects.security.is_empty() || !effects.traffic.is_empty() {
                rule.insert("name".to_owned(), json!(name));
            }
            fields.push([effects.security, effects.traffic]);
        }
        names.push(name);
    }
    draft.output.objects.keep(key.clone(), value);
    let policies = names.iter().zip(&fields).map(|(name, fields)| (name.as_str(), fields));
    let target = (key.kind, &*key.name.name);
    rules::write_policies(&key.name.namespace, target, &policies.collect::<Vec<_>>(), draft.output);
}

/// Converts and removes the filters of a rule that name a PluginConfig. Returns whether there are any.
fn extensions(
    key: &ObjectKey,
    rule: &mut Map<String, Value>,
    at: &Place,
    consumers: Option<&Pool>,
    effects: &mut Effects,
    draft: &mut Draft<'_>,
) -> bool {
    let mut lists = Vec::new();
    let Some(Value::Array(filters)) = rule.get("filters") else { return false };
    for (index, filter) in filters.iter().enumerate().filter(|(_, filter)| is_plugin_config(filter)) {
        let at = at.at("filters").item(index);
        let text = |field: &str| filter.pointer(&format!("/extensionRef/{field}")).and_then(Value::as_str);
        if text("kind") != Some(SourceKind::PluginConfig.as_str()) {
            let message = "The kind of the filter is unknown. Remove the filter if nothing depends on it.";
            draft.report.blocking(&at, Reason::UnknownKind, message);
            continue;
        }
        let name = ObjectName::new(&*key.name.namespace, text("name").unwrap_or_default());
        lists.push(plugin_config::find(SourceKind::PluginConfig, &name, &at, draft));
    }
    if lists.is_empty() {
        return false;
    }
    let plugins = plugin::merge(lists, draft.report);
    let base = key.name.name.to_string();
    let scope = Scope { namespace: &key.name.namespace, name: &base, consumers, level: Level::Rule };
    *effects = plugin::convert(plugins, scope, draft.report);
    draft.output.write_secrets(effects, scope.namespace);
    draft.output.keep_telemetry(effects);
    if effects.https_only {
        let message = "A redirect to HTTPS needs an HTTPRoute of its own, for the listener for HTTP.";
        draft.report.blocking(at, Reason::UnsupportedRewrite, message);
    }
    let is_http = key.kind == Kind::HttpRoute;
    let is_simple = effects.response.is_none()
        && effects.redirect.is_none()
        && effects.path.is_none()
        && effects.regex.is_none()
        && effects.hostname.is_none();
    if !is_http && !is_simple {
        draft.report.blocking(at, Reason::UnsupportedPlugin, "A GRPCRoute has no such filters.");
    }
    if let Some(Value::Array(filters)) = rule.get_mut("filters") {
        filters.retain(|filter| !is_plugin_config(filter));
        for filter in &effects.filters {
            if filters.iter().any(|other| other.get("type") == filter.get("type")) {
                let message = "The rule has two filters that change headers, and PingSIX runs one. Write their changes into one.";
                draft.report.blocking(at, Reason::UnsupportedPlugin, message);
            }
        }
    }
    true
}

/// Takes the host from the policies of the backends.
fn hosts(
    key: &ObjectKey,
    rule: &Map<String, Value>,
    services: &BTreeMap<ObjectName, Upstream>,
    at: &Place,
    effects: &mut Effects,
    report: &mut Report,
) {
    let backends = rule.get("backendRefs").and_then(Value::as_array).into_iter().flatten();
    let upstreams: Vec<Option<&Upstream>> = backends
        .map(|backend| {
            let text = |field: &str| backend.get(field).and_then(Value::as_str);
            let namespace = text("namespace").unwrap_or(&key.name.namespace);
            services.get(&ObjectName::new(namespace, text("name").unwrap_or_default()))
        })
        .collect();
    if upstreams.iter().flatten().any(|upstream| upstream.is_lost) {
        report.blocking(at, Reason::LostReferent, "A BackendTrafficPolicy of a backend cannot be converted.");
    }
    let hosts: Vec<Option<&String>> =
        upstreams.iter().map(|upstream| upstream.and_then(|upstream| upstream.host.as_ref())).collect();
    let Some(first) = hosts.iter().flatten().next() else { return };
    if effects.hostname.is_none() && hosts.iter().all(|host| *host == Some(*first)) {
        effects.hostname = Some((*first).clone());
    } else {
        let message = "The backends of the rule have different hosts, and a rule has one.";
        report.blocking(at, Reason::UnsupportedBackend, message);
    }
}

fn add_conditions(rule: &mut Map<String, Value>, conditions: &[Condition], at: &Place, report: &mut Report) {
    let given = rule.get("matches").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut base: Vec<Map<String, Value>> = given.iter().filter_map(|one| one.as_object().cloned()).collect();
    if base.is_empty() {
        base.push(Map::new());
    }
    let all = matches::add(base, conditions, &at.at("matches"), report);
    if all.len() > 64 {
        report.blocking(at, Reason::TooMany, "The rule would have more than 64 matches.");
    }
    rule.insert("matches".to_owned(), json!(all));
}

/// Makes a rule refuse its requests.
fn refuse(key: &ObjectKey, rule: &mut Map<String, Value>, at: &Place, draft: &mut Draft<'_>) {
    draft.report.withhold_until_named(at, "The rule refuses its requests with 503.");
    rule.remove("backendRefs");
    rule.remove("timeouts");
    rule.remove("retry");
    if key.kind == Kind::HttpRoute {
        let spec = json!({ "directResponse": route::refusal() });
        let namespace = &key.name.namespace;
        let name = draft.output.objects.add(Kind::HttpRouteFilter, namespace, &key.name.name, spec);
        let reference =
            json!({ "group": PINGSIX_GROUP, "kind": Kind::HttpRouteFilter.as_str(), "name": name });
        rule.insert("filters".to_owned(), json!([{ "type": "ExtensionRef", "extensionRef": reference }]));
    } else {
        // Calls to a rule without backends fail.
        rule.remove("filters");
    }
}
