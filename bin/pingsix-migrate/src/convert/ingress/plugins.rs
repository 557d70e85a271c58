//! Annotations of APISIX that stand for plugins, and the plugins of an ApisixPluginConfig.

use pingsix_translate::annotations::ignored;
use pingsix_translate::crd::AnnotationDialect;
use pingsix_translate::{ObjectName, is_dns_subdomain};
use serde_json::{Map, Value, json};

use super::annotated::Annotated;
use super::plugin_annotations::{AUTH_TYPE, PLUGIN_CONFIG, SERVICE_NAMESPACE};
use super::{exposure, rules};
use crate::consumer::{Credential, Pool};
use crate::convert::{Draft, plugin_config};
use crate::objects::NewSecret;
use crate::owner::Owner;
use crate::plugin::{self, Level, PluginUse, Scope, Switch};
use crate::report::{Reason, Report};
use crate::source::{Field, SourceKind};

/// Converts the plugins of an Ingress of APISIX.
pub(super) fn convert(ingress: &mut Annotated, draft: &mut Draft<'_>) {
    let context = draft.context;
    match ingress.dialect.annotations {
        AnnotationDialect::IngressNginx => return,
        AnnotationDialect::Apisix => {}
    }
    let mut of_annotations = Vec::new();
    let mut consumers = context.consumers.pool(&Owner::Class(ingress.class.clone())).clone();
    of_annotations.extend(authentication(ingress, &mut consumers, draft));
    of_annotations.extend(csrf(ingress, draft.report));
    if let Some(namespace) = value(ingress, SERVICE_NAMESPACE) {
        let at = ingress.at_own(SERVICE_NAMESPACE);
        if is_dns_subdomain(namespace) {
            let message = format!(
                "The backends are Services of namespace {namespace}, which a ReferenceGrant permits."
            );
            draft.report.exact(&at, message);
        } else {
            let message = "The value is no namespace, so the backends are unknown.";
            draft.report.blocking(&at, Reason::InvalidValue, message);
        }
    }
    let named = named(ingress, draft);
    let uses = plugin::merge(vec![named, of_annotations], draft.report);
    let (namespace, base) = (ingress.namespace().to_owned(), ingress.key.name.name.to_string());
    let scope = Scope { namespace: &namespace, name: &base, consumers: Some(&consumers), level: Level::Rule };
    let mut effects = plugin::convert(uses, scope, draft.report);
    draft.output.write_secrets(&mut effects, scope.namespace);
    draft.output.keep_telemetry(&mut effects);
    if effects.protects && ingress.is_exposed {
        let message = exposure::message(ingress.dialect);
        draft.report.limited(&ingress.place.at("spec.rules"), Reason::DifferentPath, message);
    }
    ingress.plugins = effects;
    // Policies of the Gateway and client certificates of the hosts protect the Ingress, too.
    let mut all = rules::effects(ingress);
    let gateways = std::slice::from_ref(&context.owners.gateway);
    context.refuse_second_protection(&mut all, gateways, &ingress.place, draft.report);
    let hosts: Vec<String> = ingress.hosts().map(str::to_owned).collect();
    context.refuse_certificates(&hosts, &ingress.place.at("spec.rules"), draft.report);
}

fn is_given_up(ingress: &Annotated, name: &str) -> bool {
    let given_up = ignored(&ingress.annotations);
    given_up.contains(name) || given_up.contains(ingress.dialect.whole_name(name).as_str())
}

/// The value of an annotation that the Ingress does not give up.
fn value<'a>(ingress: &'a Annotated, name: &str) -> Option<&'a str> {
    ingress.own(name).filter(|_| !is_given_up(ingress, name))
}

/// A plugin with a configuration. Verdicts are about the annotation.
fn one(
    ingress: &Annotated,
    annotation: &str,
    name: &str,
    config: &Value,
    report: &mut Report,
) -> Vec<PluginUse> {
    let place = ingress.at_own(annotation);
    let field = Field { place: place.clone(), value: json!({ "name": name, "config": config }) };
    let mut uses = plugin::read(vec![field], Switch::Always, report);
    for one in &mut uses {
        one.config.place = place.clone();
    }
    uses
}

/// The plugin for `auth-type`. A key or a user of annotations, which the Go controller of PingSIX has, takes the place of
/// the consumers.
fn authentication(ingress: &Annotated, consumers: &mut Pool, draft: &mut Draft<'_>) -> Vec<PluginUse> {
    let Some(kind) = value(ingress, AUTH_TYPE) else { return Vec::new() };
    let (namespace, base) = (ingress.namespace(), &ingress.key.name.name);
    match kind {
        "keyAuth" => {
            if let Some(key) = value(ingress, "key-auth-key") {
                let key = NewSecret::key((namespace, format!("{base}-key")), key);
                let keys = [draft.output.objects.add_secret(key)].into();
                draft.report.exact(&ingress.at_own("key-auth-key"), MOVED);
                *consumers = Pool { keys, ..Pool::default() };
            }
            let mut config = Map::new();
            for (annotation, field) in [("key-auth-header", "header"), ("key-auth-query", "query")] {
                if let Some(name) = value(ingress, annotation) {
                    config.insert(field.to_owned(), json!(name));
                    let message = format!("Keys are read from the {field} {name}.");
                    draft.report.exact(&ingress.at_own(annotation), message);
                }
            }
            one(ingress, AUTH_TYPE, "key-auth", &Value::Object(config), draft.report)
        }
        "basicAuth" => {
            let user = value(ingress, "basic-auth-username").zip(value(ingress, "basic-auth-password"));
            if let Some((user, password)) = user {
                let secret = NewSecret::user((namespace, format!("{base}-basic-auth")), user, password);
                let value = draft.output.objects.add_secret(secret);
                for annotation in ["basic-auth-username", "basic-auth-password"] {
                    draft.report.exact(&ingress.at_own(annotation), MOVED);
                }
                let credential = Credential { consumer: ingress.place.object.to_string(), value };
                *consumers = Pool { basic: vec![credential], ..Pool::default() };
            }
            one(ingress, AUTH_TYPE, "basic-auth", &json!({}), draft.report)
        }
        _ => {
            let message = "APISIX has keyAuth and basicAuth, and ignores other values. The annotation may be meant to protect.";
            draft.report.blocking(&ingress.at_own(AUTH_TYPE), Reason::UnsupportedAnnotation, message);
            Vec::new()
        }
    }
}

const MOVED: &str = "The value moves into a Secret.";

fn csrf(ingress: &Annotated, report: &mut Report) -> Vec<PluginUse> {
    if value(ingress, "enable-csrf") != Some("true") {
        return Vec::new();
    }
    let Some(key) = value(ingress, "csrf-key") else {
        let message =
            "The Ingress has no csrf-key, so nothing is checked. The annotation protects the Ingress.";
        report.blocking(&ingress.at_own("enable-csrf"), Reason::MissingField, message);
        return Vec::new();
    };
    report.exact(&ingress.at_own("csrf-key"), MOVED);
    one(ingress, "enable-csrf", "csrf", &json!({ "key": key }), report)
}

/// The plugins of the ApisixPluginConfig, without those that annotations replace.
fn named(ingress: &Annotated, draft: &mut Draft<'_>) -> Vec<PluginUse> {
    let Some(name) = value(ingress, PLUGIN_CONFIG) else { return Vec::new() };
    let config = ObjectName::new(ingress.namespace(), name);
    let at = ingress.at_own(PLUGIN_CONFIG);
    let mut uses = plugin_config::find(SourceKind::ApisixPluginConfig, &config, &at, draft);
    let read = &ingress.read;
    let has_filter = |is_redirect: bool| {
        read.filters.iter().any(|filter| filter.request_redirect.is_some() == is_redirect)
    };
    let replaced = [
        ("cors", read.security.cors.is_some()),
        ("fault-injection", read.methods.is_some()),
        ("ip-restriction", read.security.authorization.is_some()),
        ("proxy-rewrite", read.path_change.is_some()),
        ("redirect", has_filter(true) || read.https.without_tls),
        ("response-rewrite", has_filter(false) || read.response_status.is_some()),
    ];
    uses.retain(|one| {
        let is_replaced = replaced.iter().any(|(plugin, is_set)| *is_set && *plugin == one.name);
        if is_replaced {
            let message = format!("Annotations of {} replace the plugin.", ingress.key);
            draft.report.exact_whole(&one.place, message);
        }
        !is_replaced
    });
    uses
}
