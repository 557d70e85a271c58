//! An Ingress, field by field, with the settings of its annotations.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::annotations::{IngressAnnotations, MoreHosts, truth};
use pingsix_translate::crd::AnnotationDialect;
use pingsix_translate::{Kind, ObjectKey, read_annotations};
use serde_json::{Map, Value};

use super::chosen::{CLASS_ANNOTATION, class_name, default_class, is_guessed};
use super::dialect::Dialect;
use super::passthrough::PASSTHROUGH;
use super::plugins;
use crate::migrate::convert::Conversion;
use crate::migrate::plugin::Effects;
use crate::migrate::report::{Place, Reason, Report};
use crate::migrate::source::{Field, Fields, Sources, is_name};

/// An Ingress.
#[expect(clippy::struct_excessive_bools, reason = "each is the verdict of another step")]
pub(super) struct Annotated {
    pub(super) key: ObjectKey,
    pub(super) place: Place,
    pub(super) dialect: &'static Dialect,
    /// The name of its class; empty if that is unknown.
    pub(super) class: String,
    /// The time of its creation; empty if the input does not have it.
    created: String,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) read: IngressAnnotations,
    /// The effects of plugins that annotations name.
    pub(super) plugins: Effects,
    /// The namespace of the backends.
    pub(super) service_namespace: String,
    pub(super) entries: Vec<Entry>,
    pub(super) default_backend: Option<Target>,
    pub(super) tls: Vec<Tls>,
    pub(super) may_be_weaker: bool,
    /// Annotations that protect the Ingress, and that cannot be honoured with this input.
    pub(super) lost: BTreeSet<String>,
    /// Whether a field is not understood.
    pub(super) is_unclear: bool,
    /// Whether other spellings of its paths may reach an Ingress with other protection.
    pub(super) is_exposed: bool,
    /// Whether no request reaches its paths: TLS passes through, and plaintext is redirected.
    pub(super) is_bypassed: bool,
    /// Whether all rules answer 503: the protection of the Ingress cannot be honoured.
    pub(super) is_closed: bool,
}

/// An item of `spec.rules`.
pub(super) struct Entry {
    /// Empty for all hosts.
    pub(super) host: String,
    pub(super) paths: Vec<PathEntry>,
}

/// An item of `http.paths`.
pub(super) struct PathEntry {
    pub(super) place: Place,
    pub(super) path: String,
    pub(super) kind: String,
    /// `None` if the backend is no Service.
    pub(super) target: Option<Target>,
}

/// A port of a Service.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) place: Place,
    pub(super) service: String,
    /// A number or a name.
    pub(super) port: String,
}

/// An item of `spec.tls`.
pub(super) struct Tls {
    pub(super) place: Place,
    pub(super) hosts: Vec<(Place, String)>,
    pub(super) secret: Option<String>,
}

impl Annotated {
    pub(super) fn read(
        (key, ingress): (&ObjectKey, &Value),
        dialect: &'static Dialect,
        sources: &Sources,
        conversion: &mut Conversion,
    ) -> Self {
        let place = Place::object(key.to_string());
        let may_be_weaker = conversion.is_named(Kind::Ingress.as_str(), &key.name);
        let before = conversion.report.losses();
        let annotations = texts(ingress, &place, &mut conversion.report);
        let mut spec = match ingress.get("spec") {
            Some(Value::Object(spec)) => Fields::new(place.at("spec"), spec.clone()),
            _ => Fields::empty(place.at("spec")),
        };
        let gateway = conversion.parent.name.clone();
        let report = &mut conversion.report;
        let class = spec.text("ingressClassName", report).filter(|(_, name)| !name.is_empty());
        let class = class.map(|(place, _)| place);
        let of_annotation = annotations.contains_key(CLASS_ANNOTATION);
        let of_annotation = of_annotation.then(|| place.at(&annotation_field(CLASS_ANNOTATION)));
        let is_guessed = is_guessed(ingress, dialect, sources);
        for class in class.into_iter().chain(of_annotation) {
            let message = if conversion.choices.keep_ingress {
                format!("IngressClass {} takes the place of the class.", conversion.choices.ingress_class)
            } else {
                format!("Gateway {gateway} takes the place of the class.")
            };
            if is_guessed {
                let message = format!(
                    "{message} The input has no such class, and the annotations are those of {}. If another controller \
                     serves the Ingress, give the class, too.",
                    dialect.name
                );
                report.limited(&class, Reason::MissingReferent, message);
            } else {
                report.exact(&class, message);
            }
        }
        let entries = spec.list("rules", report);
        let entries = entries.into_iter().filter_map(|item| entry(item, report)).collect();
        let default_backend = match (dialect.annotations, spec.object("defaultBackend", report)) {
            (AnnotationDialect::IngressNginx, Some(fields)) => target(fields, report),
            (AnnotationDialect::Apisix, Some(fields)) => {
                report.exact(&fields.place, "APISIX does not serve a default backend, either.");
                None
            }
            (_, None) => None,
        };
        let tls = spec.list("tls", report);
        let tls = tls.into_iter().filter_map(|item| tls_entry(item, report)).collect();
        spec.finish(report);
        let read = read_annotations(&[dialect.annotations], Some(&annotations));
        let class = class_name(ingress).map(str::to_owned);
        let class = class.or_else(|| Some(default_class(sources)?.0.name.name.to_string()));
        let service_namespace = plugins::service_namespace(dialect, &annotations);
        Self {
            key: key.clone(),
            dialect,
            class: class.unwrap_or_default(),
            plugins: Effects::default(),
            service_namespace: service_namespace.unwrap_or_else(|| key.name.namespace.to_string()),
            created: sources.created.get(key).cloned().unwrap_or_default(),
            annotations,
            read,
            entries,
            default_backend,
            tls,
            may_be_weaker,
            lost: BTreeSet::new(),
            is_unclear: conversion.report.losses() > before,
            is_exposed: false,
            is_bypassed: false,
            is_closed: conversion.report.losses() > before && !may_be_weaker,
            place,
        }
    }

    /// The older Ingress comes first, then the first by name.
    pub(super) fn age(&self) -> (&str, &ObjectKey) {
        (&self.created, &self.key)
    }

    /// The namespace.
    pub(super) fn namespace(&self) -> &str {
        &self.key.name.namespace
    }

    /// Whether ingress-nginx serves the Ingress.
    pub(super) fn is_of_nginx(&self) -> bool {
        self.dialect.annotations == AnnotationDialect::IngressNginx
    }

    /// Whether TLS for its hosts passes through. A canary has no such setting of its own.
    pub(super) fn passes_tls(&self) -> bool {
        let name = self.dialect.whole_name(PASSTHROUGH);
        // Without a fault, the Ingress gives the annotation up.
        let has_fault = || self.read.faults().iter().any(|fault| fault.annotation.as_ref() == Some(&name));
        let value = self.own(PASSTHROUGH).and_then(|value| truth(self.dialect.annotations, value));
        self.is_of_nginx() && self.read.canary.is_none() && value == Some(true) && has_fault()
    }

    /// The hosts of its rules that are no wildcards.
    pub(super) fn exact_hosts(&self) -> impl Iterator<Item = &str> {
        let hosts = self.entries.iter().map(|entry| entry.host.as_str());
        hosts.filter(|host| !host.is_empty() && !host.starts_with('*'))
    }

    /// The place of an annotation, by its whole name.
    pub(super) fn at(&self, annotation: &str) -> Place {
        self.place.at(&annotation_field(annotation))
    }

    /// The place of an annotation of the dialect.
    pub(super) fn at_own(&self, name: &str) -> Place {
        self.at(&self.dialect.whole_name(name))
    }

    /// The place of `spec.tls`; of the whole Ingress without it.
    pub(super) fn at_tls(&self) -> Place {
        if self.tls.is_empty() { self.place.clone() } else { self.place.at("spec.tls") }
    }

    /// The value of an annotation of the dialect, unless it is empty.
    pub(super) fn own(&self, name: &str) -> Option<&str> {
        let value = self.annotations.get(&self.dialect.whole_name(name));
        value.map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// The backends of all paths.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Target> {
        let paths = self.entries.iter().flat_map(|entry| &entry.paths);
        paths.filter_map(|path| path.target.as_ref()).chain(&self.default_backend)
    }

    /// The hosts that annotations add.
    pub(super) fn more_hosts(&self) -> MoreHosts {
        self.read.more_hosts(self.entries.iter().map(|entry| (entry.host.as_str(), entry.paths.len())))
    }

    /// Whether the Ingress limits who may send requests.
    pub(super) fn protects(&self) -> bool {
        let security = &self.read.security;
        self.is_closed
            || self.plugins.protects
            || self.read.methods.is_some()
            || security.basic_auth.is_some()
            || security.authorization.is_some()
    }
}

fn annotation_field(name: &str) -> String {
    format!("metadata.annotations[{name}]")
}

fn texts(ingress: &Value, place: &Place, report: &mut Report) -> BTreeMap<String, String> {
    let values = ingress.pointer("/metadata/annotations").and_then(Value::as_object);
    let mut texts = BTreeMap::new();
    for (name, value) in values.into_iter().flat_map(Map::iter) {
        match value.as_str() {
            Some(text) => {
                texts.insert(name.clone(), text.to_owned());
            }
            None => report.blocking(
                &place.at(&annotation_field(name)),
                Reason::InvalidValue,
                "The value is not a text.",
            ),
        }
    }
    texts
}

fn entry(item: Field, report: &mut Report) -> Option<Entry> {
    let mut fields = item.object(report)?;
    let host = fields.text("host", report).filter(|(_, host)| !host.is_empty());
    let host = match host {
        None => String::new(),
        Some((place, host)) => {
            let host = host.to_ascii_lowercase();
            let name = host.strip_prefix("*.").unwrap_or(&host);
            if !is_name(name) || name.parse::<std::net::IpAddr>().is_ok() {
                report.blocking(&place, Reason::UnsupportedHost, "An HTTPRoute cannot have the host.");
                return None;
            }
            report.exact(&place, format!("The host becomes hostname {host}."));
            host
        }
    };
    let mut paths = Vec::new();
    if let Some(mut http) = fields.object("http", report) {
        for item in http.list("paths", report) {
            let Some(mut fields) = item.object(report) else { continue };
            let place = fields.place.clone();
            let path = fields.text("path", report).map(|(_, path)| path).unwrap_or_default();
            let kind = fields.text("pathType", report).map(|(_, kind)| kind).unwrap_or_default();
            let target = fields.object("backend", report).and_then(|fields| target(fields, report));
            fields.finish(report);
            let path = if path.is_empty() { "/".to_owned() } else { path };
            paths.push(PathEntry { place, path, kind, target });
        }
        http.finish(report);
    }
    fields.finish(report);
    Some(Entry { host, paths })
}

fn target(mut fields: Fields, report: &mut Report) -> Option<Target> {
    let place = fields.place.clone();
    if let Some(resource) = fields.take("resource") {
        report.impossible(
            &resource.place,
            Reason::UnsupportedBackend,
            "A backend has to be a Service; the path answers 503.",
        );
        return None;
    }
    let mut service = fields.object("service", report)?;
    let name = service.text("name", report).map(|(_, name)| name);
    let port = service.object("port", report).and_then(|mut port| {
        let number = port.text("number", report);
        let name = port.text("name", report);
        port.finish(report);
        number.or(name).map(|(_, port)| port)
    });
    service.finish(report);
    fields.finish(report);
    match (name, port) {
        (Some(service), Some(port)) if is_name(&service) => Some(Target { place, service, port }),
        _ => {
            report.impossible(
                &place,
                Reason::MissingField,
                "The backend lacks the name or the port of a Service; the path answers 503.",
            );
            None
        }
    }
}

fn tls_entry(item: Field, report: &mut Report) -> Option<Tls> {
    let mut fields = item.object(report)?;
    let place = fields.place.clone();
    let hosts = fields.texts("hosts", report);
    let hosts = hosts.into_iter().map(|(place, host)| (place, host.to_ascii_lowercase())).collect();
    let secret = fields.text("secretName", report).map(|(_, secret)| secret).filter(|secret| is_name(secret));
    fields.finish(report);
    Some(Tls { place, hosts, secret })
}
