//! ApisixGlobalRule and GatewayProxy: plugins for all requests of a Gateway become its policies.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::Value;

use super::{Draft, rules};
use crate::owner::Owner;
use crate::plugin::{self, Level, PluginUse, Scope, Switch};
use crate::predecessor::APISIX_GROUP;
use crate::report::{Place, Reason};
use crate::source::{Predecessors, Source, SourceKind};

/// The protection by policies of Gateways.
#[derive(Default)]
pub(super) struct Protection {
    /// The fields that they set, as far as they protect.
    pub(super) fields: BTreeMap<ObjectName, BTreeSet<String>>,
    /// Whether the original protects all rules in a way that is impossible here.
    pub(super) is_lost: bool,
}

/// Converts all of them.
pub(super) fn convert(predecessors: &mut Predecessors, draft: &mut Draft<'_>) -> Protection {
    let context = draft.context;
    let mut protection = Protection::default();
    let mut lists = Vec::new();
    let mut owner = Owner::Class(String::new());
    let mut places = Vec::new();
    let mut is_allowed = true;
    let before = draft.report.losses();
    for source in predecessors.take(SourceKind::ApisixGlobalRule) {
        let Source { kind, name, place, mut spec } = source;
        is_allowed &= context.choices.may_be_weaker(kind.as_str(), &name);
        owner = context.owners.of_class(&mut spec, draft.report);
        let items = spec.list("plugins", draft.report);
        lists.push(plugin::read(items, Switch::Enable, draft.report));
        spec.finish(draft.report);
        places.push(place);
    }
    // The rules run one after the other, so that no plugin of one replaces that of another one.
    let plugins: Vec<PluginUse> =
        lists.into_iter().flat_map(|list| plugin::merge(vec![list], draft.report)).collect();
    if !places.is_empty() {
        let target = (&context.owners.gateway, &owner);
        apply(plugins, target, (&places, before, is_allowed), &mut protection, draft);
    }
    let has_routes = predecessors.has(SourceKind::ApisixRoute);
    for source in predecessors.take(SourceKind::GatewayProxy) {
        gateway_proxy(source, has_routes, &mut protection, draft);
    }
    refer_to_no_proxy(draft);
    protection
}

/// Writes the policies of a Gateway.
fn apply(
    plugins: Vec<PluginUse>,
    (gateway, owner): (&ObjectName, &Owner),
    (places, before, is_allowed): (&[Place], usize, bool),
    protection: &mut Protection,
    draft: &mut Draft<'_>,
) {
    let context = draft.context;
    let scope = Scope {
        namespace: &gateway.namespace,
        name: &gateway.name,
        consumers: Some(context.consumers.pool(owner)),
        level: Level::Gateway,
    };
    let mut effects = plugin::convert(plugins, scope, draft.report);
    draft.output.write_secrets(&mut effects, scope.namespace);
    let is_main = *gateway == context.owners.gateway;
    if is_main {
        draft.output.keep_telemetry(&mut effects);
    } else if let (false, Some(place)) = (effects.telemetry.is_empty(), places.first()) {
        let message = "Set telemetry in the PingsixProxy of the Gateway.";
        draft.report.impossible(place, Reason::ManualStep, message);
    }
    let has_rule_parts = !effects.filters.is_empty()
        || effects.hostname.is_some()
        || effects.path.is_some()
        || effects.regex.is_some()
        || effects.response.is_some()
        || effects.redirect.is_some()
        || effects.https_only;
    if let (true, Some(place)) = (has_rule_parts, places.first()) {
        let message =
            "Rules have rewrites, redirects and answers, and Gateways have none. Add them to each rule.";
        draft.report.impossible(place, Reason::ManualStep, message);
    }
    if draft.report.losses() > before && !is_allowed {
        for place in places {
            if effects.protects && is_main {
                draft
                    .report
                    .withhold(place, "Each rule answers 503, because the original protects all of them.");
            } else if effects.protects {
                let message = format!("Gateway {gateway} is not written, because the original protects it.");
                draft.report.withhold(place, message);
            } else {
                draft.report.withhold(place, "The parts that can be converted are written.");
            }
        }
        if effects.protects && is_main {
            protection.is_lost = true;
        } else if effects.protects {
            let key = ObjectKey { kind: Kind::Gateway, name: gateway.clone() };
            draft.report.withhold(&Place::object(key.to_string()), "The Gateway is not written.");
            draft.output.objects.remove(&key);
        }
    }
    let limits = effects.traffic.keys().filter(|field| *field == "rateLimit");
    let fields = effects.security.keys().chain(limits).cloned();
    protection.fields.entry(gateway.clone()).or_default().extend(fields);
    if is_main && (!effects.security.is_empty() || !effects.traffic.is_empty()) {
        draft.output.gateway.note_policy();
    }
    let target = (Kind::Gateway, &*gateway.name);
    let fields = [effects.security, effects.traffic];
    rules::write_policies(&gateway.namespace, target, &[("gateway", &fields)], draft.output);
}

/// Whether an object names a GatewayProxy as its parameters.
fn names(object: &Value, pointer: &str, proxy: &ObjectName) -> bool {
    object.pointer(pointer).is_some_and(|reference| {
        reference.get("kind").and_then(Value::as_str) == Some(SourceKind::GatewayProxy.as_str())
            && reference.get("name").and_then(Value::as_str) == Some(&*proxy.name)
    })
}

fn gateway_proxy(source: Source, has_routes: bool, protection: &mut Protection, draft: &mut Draft<'_>) {
    let context = draft.context;
    let Source { kind, name, place, mut spec } = source;
    let is_allowed = context.choices.may_be_weaker(kind.as_str(), &name);
    let before = draft.report.losses();
    let report = &mut *draft.report;
    if let Some(field) = spec.take("provider") {
        let message = "The controller of PingSIX needs no address and no key of the data plane.";
        report.exact_whole(&field.place, message);
    }
    for field in ["publishService", "statusAddress"] {
        if let Some(field) = spec.take(field) {
            let message = "Set attached.addresses of the PingsixProxy if the processes are your own.";
            report.limited(&field.place, Reason::ManualStep, message);
        }
    }
    if let Some(mut metadata) = spec.object("pluginMetadata", report) {
        for (name, field) in metadata.rest() {
            if name == "file-logger" {
                let message = "Set telemetry.accessLog.format of the PingsixProxy.";
                report.limited(&field.place, Reason::ManualStep, message);
            } else {
                let message = "PingSIX has no settings for all uses of a plugin. Set the fields where the plugin is used.";
                report.impossible(&field.place, Reason::UnsupportedField, message);
            }
        }
    }
    let items = spec.list("plugins", report);
    let plugins = plugin::read(items, Switch::Enabled, report);
    spec.finish(report);
    let plugins = plugin::merge(vec![plugins], report);
    let gateways: Vec<ObjectName> = context
        .sources
        .kept
        .iter()
        .filter(|(key, _)| key.kind == Kind::Gateway && key.name.namespace == name.namespace)
        .filter(|(_, gateway)| names(gateway, "/spec/infrastructure/parametersRef", &name))
        .map(|(key, _)| key.name.clone())
        .collect();
    let is_of_class = context
        .sources
        .kept
        .iter()
        .any(|(key, class)| key.kind == Kind::IngressClass && names(class, "/spec/parameters", &name));
    let mut targets: Vec<(ObjectName, Owner)> =
        gateways.into_iter().map(|gateway| (gateway.clone(), Owner::Gateway(gateway))).collect();
    if is_of_class || (targets.is_empty() && has_routes) {
        let class = context.owners.only_class.clone().unwrap_or_default();
        targets.push((context.owners.gateway.clone(), Owner::Class(class)));
    }
    if targets.is_empty() && !plugins.is_empty() {
        let message = "No Gateway or IngressClass of the input has these parameters.";
        draft.report.limited(&place.at("spec"), Reason::NoEffect, message);
    }
    for (gateway, owner) in targets {
        let about = (std::slice::from_ref(&place), before, is_allowed);
        apply(plugins.clone(), (&gateway, &owner), about, protection, draft);
    }
}

/// Removes references of Gateways to GatewayProxies.
fn refer_to_no_proxy(draft: &mut Draft<'_>) {
    let context = draft.context;
    for (key, value) in &context.sources.kept {
        let (pointer, field) = if key.kind == Kind::Gateway {
            ("/spec/infrastructure", "parametersRef")
        } else if key.kind == Kind::IngressClass {
            ("/spec", "parameters")
        } else {
            continue;
        };
        let reference = value.pointer(pointer).and_then(|parent| parent.get(field));
        let group = reference
            .and_then(|reference| reference.get("group").or_else(|| reference.get("apiGroup"))?.as_str());
        if group != Some(APISIX_GROUP) {
            continue;
        }
        let Some(object) = draft.output.objects.get_mut(key) else { continue };
        if let Some(Value::Object(parent)) = object.pointer_mut(pointer) {
            parent.remove(field);
        }
        let is_copied = context.choices.name_suffix.is_some();
        if is_copied && key.kind == Kind::IngressClass {
            continue;
        }
        let at = Place::object(key.to_string())
            .at(&format!("{}.{field}", pointer.trim_start_matches('/').replace('/', ".")));
        if is_copied {
            draft.report.exact(&at, "The copy has no reference to the object.");
        } else {
            let message = "The reference is removed. The class is still that of the other controller: change it when the traffic \
                 moves, or write copies with --name-suffix.";
            draft.report.limited(&at, Reason::ManualStep, message);
        }
    }
}
