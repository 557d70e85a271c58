//! An Ingress, field by field, with the settings of its annotations.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::annotations::{IngressAnnotations, MoreHosts, truth};
use pingsix_translate::crd::AnnotationDialect;
use pingsix_translate::{Hostname, Kind, ObjectKey, is_dns_subdomain, read_annotations};
use serde_json::Value;

use super::chosen::{CLASS_ANNOTATION, Classes};
use super::dialect::{Dialect, PASSTHROUGH};
use super::plugin_annotations;
use crate::convert::{Context, route};
use crate::plugin::Effects;
use crate::report::{Place, Reason, Report};
use crate::source::{Field, Fields, STANDARD_FIELDS};

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

impl PathEntry {
    pub(super) fn is_exact(&self) -> bool {
        self.kind == "Exact"
    }
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
        classes: &Classes<'_>,
        context: &Context<'_>,
        report: &mut Report,
    ) -> Self {
        let place = Place::object(key.to_string());
        let may_be_weaker = context.choices.may_be_weaker(Kind::Ingress.as_str(), &key.name);
        let before = report.losses();
        let (annotations, are_texts) = texts(ingress);
        let mut spec = spec(ingress, &place, report);
        let gateway = &context.owners.gateway;
        let class = spec.filled("ingressClassName", report);
        let class = class.map(|(place, _)| place);
        let of_annotation = annotations.contains_key(CLASS_ANNOTATION);
        let of_annotation = of_annotation.then(|| place.at(&annotation_field(CLASS_ANNOTATION)));
        let is_guessed = classes.is_guessed(ingress, dialect);
        for class in class.into_iter().chain(of_annotation) {
            let message = if context.choices.keep_ingress {
                format!("IngressClass {} takes the place of the class.", context.choices.ingress_class)
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
        let rules = spec.list("rules", report);
        let is_empty = rules.is_empty() && !spec.has("defaultBackend");
        let entries = rules.into_iter().filter_map(|item| entry(item, report)).collect();
        let default_backend = match (dialect.annotations, spec.object("defaultBackend", report)) {
            (AnnotationDialect::IngressNginx, Some(fields)) => target(fields, DEFAULT, report),
            (AnnotationDialect::Apisix, Some(fields)) => {
                report.exact_whole(&fields.place, "APISIX does not serve a default backend, either.");
                None
            }
            (_, None) => None,
        };
        let tls = spec.list("tls", report);
        let tls = tls.into_iter().filter_map(|item| tls_entry(item, report)).collect();
        spec.finish(report);
        if is_empty {
            let message = "The Ingress has neither rules nor a default backend, so it becomes nothing. An API server refuses it.";
            report.impossible(&place.at("spec"), Reason::MissingField, message);
        }
        let read = read_annotations(&[dialect.annotations], &key.name.namespace, Some(&annotations));
        let service_namespace = plugin_annotations::service_namespace(dialect, &annotations);
        Self {
            key: key.clone(),
            dialect,
            class: classes.name_for(ingress),
            plugins: Effects::default(),
            service_namespace: service_namespace.unwrap_or_else(|| key.name.namespace.to_string()),
            created: context.sources.created.get(key).cloned().unwrap_or_default(),
            annotations,
            read,
            entries,
            default_backend,
            tls,
            may_be_weaker,
            lost: BTreeSet::new(),
            is_unclear: report.losses() > before,
            is_exposed: false,
            is_bypassed: false,
            is_closed: (report.losses() > before || !are_texts) && !may_be_weaker,
            place,
        }
    }

    /// Whether the Ingress has neither rules nor a default backend that is served.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.default_backend.is_none()
    }

    /// The older Ingress comes first. Of equally old ones, ingress-nginx takes the last by name; without times, the first by
    /// name comes first.
    pub(super) fn by_age(&self, other: &Self) -> Ordering {
        let of_nginx = |one: &Self| one.dialect.annotations == AnnotationDialect::IngressNginx;
        // ingress-nginx compares namespace and name as one text with a slash.
        let [own, others] = [&self.key.name, &other.key.name]
            .map(|name| name.namespace.bytes().chain(*b"/").chain(name.name.bytes()));
        let by_name = own.cmp(others);
        let by_name = if of_nginx(self) && !self.created.is_empty() { by_name.reverse() } else { by_name };
        self.created.cmp(&other.created).then(of_nginx(self).cmp(&of_nginx(other))).then(by_name)
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
        // Without a problem, the Ingress gives the annotation up.
        let has_problem =
            || self.read.problems().iter().any(|problem| problem.annotation.as_ref() == Some(&name));
        let value = self.own(PASSTHROUGH).and_then(|value| truth(self.dialect.annotations, value));
        self.is_of_nginx() && self.read.canary.is_none() && value == Some(true) && has_problem()
    }

    /// The hosts of its rules that are no wildcards.
    pub(super) fn exact_hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts().filter(|host| !host.is_empty() && !host.starts_with('*'))
    }

    /// The hosts of its rules; an empty one stands for all hosts.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.host.as_str())
    }

    /// The paths of its rules.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&Entry, &PathEntry)> {
        self.entries.iter().flat_map(|entry| entry.paths.iter().map(move |path| (entry, path)))
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

    /// The name of one of several routes of the Ingress, by its host.
    pub(super) fn route_name(&self, host: &str) -> String {
        route::of_host(&self.key.name.name, host)
    }

    /// The backends of all paths.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Target> {
        self.paths().filter_map(|(_, path)| path.target.as_ref()).chain(&self.default_backend)
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

/// The annotations that are texts, and whether all of them are; those that are none have a verdict already.
fn texts(ingress: &Value) -> (BTreeMap<String, String>, bool) {
    let annotations = ingress.pointer("/metadata/annotations").filter(|annotations| !annotations.is_null());
    let values = annotations.and_then(Value::as_object);
    let values = values.into_iter().flatten();
    let texts: BTreeMap<String, String> =
        values.clone().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    let are_texts = annotations.is_none_or(Value::is_object) && texts.len() == values.count();
    (texts, are_texts)
}

/// The spec. A field beside it is unknown.
fn spec(ingress: &Value, place: &Place, report: &mut Report) -> Fields {
    let mut fields = Fields::new(place.clone(), ingress.as_object().cloned().unwrap_or_default());
    let spec = fields.object("spec", report);
    for name in STANDARD_FIELDS {
        let _ = fields.take(name);
    }
    fields.finish(report);
    spec.unwrap_or_else(|| Fields::empty(place.at("spec")))
}

fn entry(item: Field, report: &mut Report) -> Option<Entry> {
    let mut fields = item.object(report)?;
    let place = fields.place.clone();
    let has_host = fields.has("host");
    let host = match fields.text("host", report) {
        None if has_host => {
            let message = "The rule is not written, because its host is unknown.";
            report.blocking(&place, Reason::UnsupportedHost, message);
            return None;
        }
        None => String::new(),
        Some((_, host)) if host.is_empty() => String::new(),
        Some((at, host)) => {
            let host = host.to_ascii_lowercase();
            if Hostname::parse(&host).is_err() {
                let message = "An HTTPRoute cannot have the host, so the rule is not written.";
                report.blocking(&place, Reason::UnsupportedHost, message);
                return None;
            }
            report.exact(&at, format!("The host becomes hostname {host}."));
            host
        }
    };
    let mut paths = Vec::new();
    if let Some(mut http) = fields.object("http", report) {
        for item in http.list("paths", report) {
            paths.extend(path_entry(item, report));
        }
        http.finish(report);
    }
    fields.finish(report);
    Some(Entry { host, paths })
}

fn path_entry(item: Field, report: &mut Report) -> Option<PathEntry> {
    let mut fields = item.object(report)?;
    let place = fields.place.clone();
    let path = fields.text_or_empty("path", report);
    let kind = fields.text_or_empty("pathType", report);
    let target = if let Some(backend) = fields.take("backend") {
        backend.object(report).and_then(|fields| target(fields, PATH, report))
    } else {
        let message = format!("The path has no backend. {PATH}");
        report.impossible(&place.at("backend"), Reason::MissingField, message);
        None
    };
    fields.finish(report);
    let path = if path.is_empty() { "/".to_owned() } else { path };
    Some(PathEntry { place, path, kind, target })
}

/// The consequence for a path without a Service.
const PATH: &str = "The path answers 503.";

/// The consequence for a default backend without a Service.
const DEFAULT: &str = "It is not written.";

/// Reads a backend, which has to be a Service.
fn target(mut fields: Fields, without: &str, report: &mut Report) -> Option<Target> {
    let place = fields.place.clone();
    let resource = fields.take("resource");
    let service = fields.take("service");
    for (old, new) in [("serviceName", "service.name"), ("servicePort", "service.port")] {
        if let Some(field) = fields.take(old) {
            let message = format!(
                "The field is one of networking.k8s.io/v1beta1. In networking.k8s.io/v1 it is {new}. {without}"
            );
            report.impossible(&field.place, Reason::UnknownField, message);
        }
    }
    fields.finish(report);
    let why = match (service, resource) {
        (Some(service), None) => match port_of_service(service, report) {
            Some((service, port)) => return Some(Target { place, service, port }),
            None => "The backend lacks the name or the port of a Service.",
        },
        (None, None) => "The backend names no Service.",
        (None, Some(_)) => "A backend has to be a Service.",
        (Some(_), Some(_)) => {
            "The backend names a Service and another resource, and an API server refuses both at once."
        }
    };
    report.impossible(&place, Reason::UnsupportedBackend, format!("{why} {without}"));
    None
}

/// A Service, and the number or the name of its port.
fn port_of_service(service: Field, report: &mut Report) -> Option<(String, String)> {
    let mut service = service.object(report)?;
    let name = service.text("name", report).map(|(_, name)| name);
    let port = service.object("port", report).and_then(|mut port| {
        let number = port.take("number").and_then(|number| number.whole(report));
        let name = port.filled("name", report);
        port.finish(report);
        let number = number.filter(|(_, number)| *number > 0).map(|(_, number)| number.to_string());
        number.or_else(|| name.map(|(_, name)| name))
    });
    service.finish(report);
    Some((name.filter(|name| is_dns_subdomain(name))?, port?))
}

fn tls_entry(item: Field, report: &mut Report) -> Option<Tls> {
    let mut fields = item.object(report)?;
    let place = fields.place.clone();
    let hosts = fields.texts("hosts", report);
    let hosts = hosts.into_iter().map(|(place, host)| (place, host.to_ascii_lowercase())).collect();
    let secret = fields.filled("secretName", report);
    let secret = secret.and_then(|(at, secret)| {
        if is_dns_subdomain(&secret) {
            return Some(secret);
        }
        let message = "The value is not the name of a Secret, so the hosts have no certificate.";
        report.impossible(&at, Reason::InvalidValue, message);
        None
    });
    fields.finish(report);
    Some(Tls { place, hosts, secret })
}
