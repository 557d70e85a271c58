//! ApisixGlobalRule and GatewayProxy: plugins for all requests of a Gateway become its policies.

use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::Value;

use super::{Conversion, rules};
use crate::consumer::Owner;
use crate::plugin::{self, Effects, Level, PluginUse, Scope, Switch};
use crate::predecessor::APISIX_GROUP;
use crate::report::{Place, Reason};
use crate::source::{Source, SourceKind, Sources};

/// Converts all of them.
pub(super) fn convert(sources: &mut Sources, conversion: &mut Conversion) {
    let mut lists = Vec::new();
    let mut owner = Owner::Class(String::new());
    let mut places = Vec::new();
    let mut is_allowed = true;
    let before = conversion.report.losses();
    for source in sources.take(SourceKind::ApisixGlobalRule) {
        let Source { kind, name, place, mut spec } = source;
        is_allowed &= conversion.may_be_weaker(kind, &name);
        owner = conversion.class(&mut spec);
        let items = spec.list("plugins", &mut conversion.report);
        lists.push(plugin::read(items, Switch::Enable, &mut conversion.report));
        spec.finish(&mut conversion.report);
        places.push(place);
    }
    // The rules run one after the other, so that no plugin of one replaces that of another one.
    let plugins: Vec<PluginUse> =
        lists.into_iter().flat_map(|list| plugin::merge(vec![list], &mut conversion.report)).collect();
    if !places.is_empty() {
        let gateway = conversion.parent.name.clone();
        apply(plugins, (&gateway, &owner), (&places, before, is_allowed), conversion);
    }
    for source in sources.take(SourceKind::GatewayProxy) {
        gateway_proxy(source, sources, conversion);
    }
    refer_to_no_proxy(sources, conversion);
}

/// Writes the policies of a Gateway.
fn apply(
    plugins: Vec<PluginUse>,
    (gateway, owner): (&ObjectName, &Owner),
    (places, before, is_allowed): (&[Place], usize, bool),
    conversion: &mut Conversion,
) {
    let consumers = conversion.consumers.pool(owner).clone();
    let scope = Scope {
        namespace: &gateway.namespace,
        name: &gateway.name,
        consumers: Some(&consumers),
        level: Level::Gateway,
    };
    let mut effects = Effects::default();
    plugin::convert(plugins, scope, &mut effects, conversion);
    let is_main = *gateway == conversion.parent.name;
    if is_main {
        conversion.keep_telemetry(&mut effects);
    } else if let (false, Some(place)) = (effects.telemetry.is_empty(), places.first()) {
        conversion.report.impossible(
            place,
            Reason::ManualStep,
            "Set telemetry in the PingsixProxy of the Gateway.",
        );
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
        conversion.report.impossible(place, Reason::ManualStep, message);
    }
    if conversion.report.losses() > before && !is_allowed {
        for place in places {
            if effects.protects && is_main {
                conversion
                    .withhold(place, "Each rule answers 503, because the original protects all of them.");
            } else if effects.protects {
                conversion.withhold(
                    place,
                    format!("Gateway {gateway} is not written, because the original protects it."),
                );
            } else {
                conversion.withhold(place, "The parts that can be converted are written.");
            }
        }
        if effects.protects && is_main {
            conversion.global_is_lost = true;
        } else if effects.protects {
            let key = ObjectKey { kind: Kind::Gateway, name: gateway.clone() };
            conversion.withhold(&Place::object(key.to_string()), "The Gateway is not written.");
            conversion.output.remove(&key);
        }
    }
    let limits = effects.traffic.keys().filter(|field| *field == "rateLimit");
    let fields = effects.security.keys().chain(limits).cloned();
    conversion.global.entry(gateway.clone()).or_default().extend(fields);
    if is_main && (!effects.security.is_empty() || !effects.traffic.is_empty()) {
        conversion.parent.note_policy();
    }
    for (kind, fields) in [(Kind::SecurityPolicy, &effects.security), (Kind::TrafficPolicy, &effects.traffic)]
    {
        let target = (Kind::Gateway, &*gateway.name);
        rules::write_policies(kind, &gateway.namespace, target, &[("gateway", fields)], conversion);
    }
}

/// Whether an object names a GatewayProxy as its parameters.
fn names(object: &Value, pointer: &str, proxy: &ObjectName) -> bool {
    object.pointer(pointer).is_some_and(|reference| {
        reference.get("kind").and_then(Value::as_str) == Some(SourceKind::GatewayProxy.as_str())
            && reference.get("name").and_then(Value::as_str) == Some(&*proxy.name)
    })
}

fn gateway_proxy(source: Source, sources: &Sources, conversion: &mut Conversion) {
    let Source { kind, name, place, mut spec } = source;
    let is_allowed = conversion.may_be_weaker(kind, &name);
    let before = conversion.report.losses();
    let report = &mut conversion.report;
    if let Some(field) = spec.take("provider") {
        report.exact_whole(
            &field.place,
            "The controller of PingSIX needs no address and no key of the data plane.",
        );
    }
    for field in ["publishService", "statusAddress"] {
        if let Some(field) = spec.take(field) {
            report.limited(
                &field.place,
                Reason::ManualStep,
                "Set attached.addresses of the PingsixProxy if the processes are your own.",
            );
        }
    }
    if let Some(mut metadata) = spec.object("pluginMetadata", report) {
        for (name, field) in metadata.rest() {
            if name == "file-logger" {
                report.limited(
                    &field.place,
                    Reason::ManualStep,
                    "Set telemetry.accessLog.format of the PingsixProxy.",
                );
            } else {
                report.impossible(
                    &field.place,
                    Reason::UnsupportedField,
                    "PingSIX has no settings for all uses of a plugin. Set the fields where the plugin is used.",
                );
            }
        }
    }
    let items = spec.list("plugins", report);
    let plugins = plugin::read(items, Switch::Enabled, report);
    spec.finish(report);
    let plugins = plugin::merge(vec![plugins], report);
    let gateways: Vec<ObjectName> = sources
        .kept
        .iter()
        .filter(|(key, _)| key.kind == Kind::Gateway && key.name.namespace == name.namespace)
        .filter(|(_, gateway)| names(gateway, "/spec/infrastructure/parametersRef", &name))
        .map(|(key, _)| key.name.clone())
        .collect();
    let is_of_class = sources
        .kept
        .iter()
        .any(|(key, class)| key.kind == Kind::IngressClass && names(class, "/spec/parameters", &name));
    let mut targets: Vec<(ObjectName, Owner)> =
        gateways.into_iter().map(|gateway| (gateway.clone(), Owner::Gateway(gateway))).collect();
    if is_of_class || (targets.is_empty() && sources.has(SourceKind::ApisixRoute)) {
        let class = conversion.only_class.clone().unwrap_or_default();
        targets.push((conversion.parent.name.clone(), Owner::Class(class)));
    }
    if targets.is_empty() && !plugins.is_empty() {
        conversion.report.limited(
            &place.at("spec"),
            Reason::NoEffect,
            "No Gateway or IngressClass of the input has these parameters.",
        );
    }
    for (gateway, owner) in targets {
        let about = (std::slice::from_ref(&place), before, is_allowed);
        apply(plugins.clone(), (&gateway, &owner), about, conversion);
    }
}

/// Removes references of Gateways to GatewayProxies.
fn refer_to_no_proxy(sources: &Sources, conversion: &mut Conversion) {
    for (key, value) in &sources.kept {
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
        let Some(object) = conversion.output.get_mut(key) else { continue };
        if let Some(Value::Object(parent)) = object.pointer_mut(pointer) {
            parent.remove(field);
        }
        let is_copied = conversion.choices.name_suffix.is_some();
        if is_copied && key.kind == Kind::IngressClass {
            continue;
        }
        let at = Place::object(key.to_string())
            .at(&format!("{}.{field}", pointer.trim_start_matches('/').replace('/', ".")));
        if is_copied {
            conversion.report.exact(&at, "The copy has no reference to the object.");
        } else {
            conversion.report.limited(
                &at,
                Reason::ManualStep,
                "The reference is removed. The class is still that of the other controller: change it when the traffic \
                 moves, or write copies with --name-suffix.",
            );
        }
    }
}
