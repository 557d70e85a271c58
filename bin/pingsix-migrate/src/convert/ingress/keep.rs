//! `--keep-ingress`: Ingresses keep their annotations, and move to a class that reads them.

use pingsix_translate::annotations::{IGNORED_ANNOTATIONS, is_challenge};
use pingsix_translate::crd::AnnotationDialect;
use pingsix_translate::{DEFAULT_CONTROLLER_NAME, Kind, ObjectKey, ObjectName, PINGSIX_GROUP};
use serde_json::{Map, Value, json};

use super::annotated::{Annotated, PathEntry};
use super::chosen::CLASS_ANNOTATION;
use super::dialect::{DIALECTS, PASSTHROUGH};
use super::rules::CHALLENGES;
use super::tls_hosts::{TlsHosts, wants_https};
use super::{paths, services, verdicts};
use crate::convert::{Context, Draft, matches, ownership};
use crate::objects::label;
use crate::report::{Place, Reason, Report};
use crate::source::ServicePort;

/// Writes copies of the Ingresses, and their class. The names are others, because the old controller still serves the
/// Ingresses of the input.
pub(super) fn write(ingresses: &[Annotated], draft: &mut Draft<'_>) {
    let context = draft.context;
    if ingresses.is_empty() {
        return;
    }
    write_class(ingresses, draft);
    let tls_hosts = TlsHosts::of(ingresses);
    for ingress in ingresses {
        let Some(original) = context.sources.kept.get(&ingress.key) else { continue };
        // The class closes an Ingress for its annotations alone.
        if ingress.is_closed && verdicts::closing(ingress).is_empty() {
            draft
                .report
                .withhold(&ingress.place, "The Ingress is not copied, because the class would serve it.");
            continue;
        }
        if ingress.passes_tls() && !passes_through(ingress, draft.report) {
            continue;
        }
        let spec = original.get("spec").filter(|spec| spec.is_object());
        let mut spec = spec.cloned().unwrap_or_else(|| json!({}));
        spec["ingressClassName"] = json!(context.choices.ingress_class);
        default_certificate(ingress, &mut spec, context, draft.report);
        match ingress.dialect.annotations {
            AnnotationDialect::IngressNginx => name_ports(ingress, &mut spec, context, draft.report),
            AnnotationDialect::Apisix => standardise(ingress, &mut spec, draft.report),
        }
        let wanted = format!("{}-pingsix", ingress.key.name.name);
        let name = draft.output.objects.add(Kind::Ingress, ingress.namespace(), &wanted, spec);
        let key = ObjectKey::new(Kind::Ingress, ingress.namespace(), name.as_str());
        draft.output.objects.origins.note_copy(key.clone(), &ingress.key);
        let annotations = annotations(ingress, &tls_hosts, draft.report);
        let mut metadata = Map::new();
        if let Some(labels) = original.pointer("/metadata/labels") {
            metadata.insert("labels".to_owned(), labels.clone());
        }
        if !annotations.is_empty() {
            metadata.insert("annotations".to_owned(), Value::Object(annotations));
        }
        ownership::disown(&mut metadata, draft.output);
        if let Some(Value::Object(written)) =
            draft.output.objects.get_mut(&key).and_then(|one| one.get_mut("metadata"))
        {
            written.extend(metadata);
        }
        expressions(ingress, draft.report);
        challenges(ingress, &tls_hosts, draft.report);
        draft.report.exact(&ingress.place, format!("The copy {key} has the new class."));
    }
}

/// Reports that a class ends TLS. Returns whether the Ingress is copied all the same.
fn passes_through(ingress: &Annotated, report: &mut Report) -> bool {
    let at = ingress.at_own(PASSTHROUGH);
    if ingress.exact_hosts().next().is_none() {
        let message =
            "ingress-nginx passes TLS through for whole host names alone, and the Ingress has none.";
        report.exact(&at, message);
        return true;
    }
    let message = "An IngressClass ends TLS, and a TLSRoute passes it through. migrate writes a TLSRoute without --keep-ingress.";
    report.impossible(&at, Reason::UnsupportedAnnotation, message);
    if ingress.may_be_weaker {
        return true;
    }
    let message = "The Ingress is not copied, because its backends expect TLS connections of clients.";
    report.withhold(&ingress.place, message);
    false
}

/// Gives the default certificate to entries without one, if the Ingress may refer to it.
fn default_certificate(ingress: &Annotated, spec: &mut Value, context: &Context<'_>, report: &mut Report) {
    let entries =
        ingress.tls.iter().enumerate().filter(|(_, tls)| tls.secret.is_none() && ingress.is_of_nginx());
    for (index, tls) in entries {
        let secret = context.choices.default_certificate.as_ref();
        if let Some(secret) = secret.filter(|secret| &*secret.namespace == ingress.namespace()) {
            if let Some(entry) = spec.pointer_mut(&format!("/tls/{index}")) {
                entry["secretName"] = json!(&*secret.name);
            }
            let message = format!("The entry gets the default certificate, Secret {secret}.");
            report.exact(&tls.place, message);
        } else {
            let message =
                "The data planes of the class show their own default certificate for hosts without a Secret.";
            report.limited(&tls.place, Reason::TlsWithoutSecret, message);
        }
    }
}

/// Replaces target ports by the ports of the Services, which alone are ports of backends for the class.
fn name_ports(ingress: &Annotated, spec: &mut Value, context: &Context<'_>, report: &mut Report) {
    for target in ingress.targets() {
        let service = ObjectName::new(ingress.namespace(), target.service.as_str());
        if context.sources.service_port(&service, &target.port) != ServicePort::NoPort {
            continue;
        }
        let Ok(number) = services::number(ingress, target, context.sources) else { continue };
        let field = target.place.field.strip_prefix("spec").unwrap_or_default();
        let pointer = field.replace(['.', '['], "/").replace(']', "");
        if let Some(backend) = spec.pointer_mut(&format!("{pointer}/service")) {
            backend["port"] = json!({ "number": number });
            let message = format!(
                "{} is a target port of Service {service}, whose port {number} the copy has.",
                target.port
            );
            report.exact(&target.place, message);
        }
    }
}

/// Replaces the parts of an Ingress of APISIX that the class reads in another way: paths, and a default backend.
fn standardise(ingress: &Annotated, spec: &mut Value, report: &mut Report) {
    if let Some(spec) = spec.as_object_mut().filter(|_| !ingress.entries.is_empty()) {
        spec.remove("defaultBackend");
    }
    if ingress.read.rewriting.is_some() {
        return;
    }
    let entries = spec.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten().enumerate();
    for (rule, entry) in entries {
        let items = entry.pointer_mut("/http/paths").and_then(Value::as_array_mut).into_iter().flatten();
        for (index, item) in items.enumerate().filter(|(_, item)| item.is_object()) {
            let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (written, kind) = (text("path"), text("pathType"));
            // An asterisk has its meaning in paths of every type.
            if !paths::is_implementation_specific(&kind) && !written.contains('*') {
                continue;
            }
            let at = ingress.place.at(&format!("spec.rules[{rule}].http.paths[{index}].path"));
            let Some(path) = matches::path(&at, &written, report) else { continue };
            let kind = if path["type"] == "Exact" { "Exact" } else { "Prefix" };
            item["path"] = path["value"].clone();
            item["pathType"] = json!(kind);
        }
    }
}

/// Reports the regular expressions that the class cannot match.
fn expressions(ingress: &Annotated, report: &mut Report) {
    let Some(rewriting) = &ingress.read.rewriting else { return };
    for (_, path) in ingress.paths() {
        if let Err(why) = rewriting.read(&path.path) {
            let message = format!("The class does not serve the path: {why}.");
            report.impossible(&path.place.at("path"), Reason::UnsupportedPath, message);
        }
    }
}

/// Reports the paths of challenges that the class redirects or protects, because it spares paths of a single challenge alone.
fn challenges(ingress: &Annotated, tls_hosts: &TlsHosts<'_>, report: &mut Report) {
    for entry in ingress.entries.iter().filter(|_| ingress.is_of_nginx() && !ingress.is_closed) {
        if ingress.read.security.basic_auth.is_none() && !wants_https(ingress, &entry.host, tls_hosts) {
            continue;
        }
        let of_challenges =
            |path: &&PathEntry| path.path.starts_with(CHALLENGES) && !is_challenge(&path.path);
        for path in entry.paths.iter().filter(of_challenges) {
            let message = "ingress-nginx neither redirects challenges of ACME nor asks for credentials. The class does both, except \
                           for a path of a single challenge.";
            report.limited(&path.place, Reason::AcmeChallenge, message);
        }
    }
}

fn annotations(ingress: &Annotated, tls_hosts: &TlsHosts<'_>, report: &mut Report) -> Map<String, Value> {
    let mut kept: Map<String, Value> = Map::new();
    for (name, value) in &ingress.annotations {
        if name != CLASS_ANNOTATION {
            kept.insert(name.clone(), json!(value));
        }
    }
    // The class redirects Ingresses that have an annotation of the dialect.
    let redirect = ingress.dialect.to_https_by_default.map(|name| ingress.dialect.whole_name(name));
    if let Some(redirect) = redirect.filter(|name| !kept.contains_key(name))
        && ingress.hosts().any(|host| tls_hosts.has(host))
        && ingress.read.canary.is_none()
    {
        let message = "ingress-nginx redirects hosts with a certificate by default, so the copy says ssl-redirect \"true\".";
        report.exact(&ingress.at_tls(), message);
        kept.insert(redirect, json!("true"));
    }
    let closing = verdicts::closing(ingress);
    if ingress.may_be_weaker && !closing.is_empty() {
        let before = ingress.annotations.get(IGNORED_ANNOTATIONS).cloned();
        let names: Vec<String> = before.into_iter().chain(closing).collect();
        kept.insert(IGNORED_ANNOTATIONS.to_owned(), json!(names.join(",")));
    }
    kept
}

/// Writes the class and its parameters, unless the input has the class.
fn write_class(ingresses: &[Annotated], draft: &mut Draft<'_>) {
    let context = draft.context;
    let is_used = |domain: &&str| ingresses.iter().any(|ingress| ingress.dialect.domain() == *domain);
    let domains: Vec<&str> = DIALECTS.iter().map(|dialect| dialect.domain()).filter(is_used).collect();
    let class = context.choices.ingress_class.clone();
    let key = ObjectKey::new(Kind::IngressClass, "", class.as_str());
    if context.sources.kept.contains_key(&key) {
        let message = format!(
            "The input has the class already. Its parameters have to switch the annotations of {} on, and redirects to HTTPS \
             need the layout PerPort.",
            domains.join(" and ")
        );
        return draft.report.limited(&Place::object(key.to_string()), Reason::ManualStep, message);
    }
    let namespace = context.owners.gateway.namespace.to_string();
    // Redirects to HTTPS need a data plane for each port.
    let spec = json!({ "attached": { "layout": "PerPort" }, "ingress": { "annotations": domains } });
    let proxy = match ingresses.first() {
        Some(ingress) if domains.len() == 1 => label(ingress.dialect.name, "ingresses"),
        _ => "ingresses".to_owned(),
    };
    let proxy = draft.output.objects.add(Kind::PingsixProxy, &namespace, &proxy, spec);
    let parameters = json!({
        "apiGroup": PINGSIX_GROUP, "kind": Kind::PingsixProxy.as_str(), "name": proxy,
        "scope": "Namespace", "namespace": namespace,
    });
    let spec = json!({ "controller": DEFAULT_CONTROLLER_NAME, "parameters": parameters });
    draft.output.objects.add(Kind::IngressClass, "", &class, spec);
}
