//! The controller of an Ingress.

use std::sync::Arc;

use pingsix_translate::{DEFAULT_CONTROLLER_NAME, Kind, ObjectKey};
use serde_json::{Value, json};

use super::dialect::{DIALECTS, Dialect, INGRESS_NGINX};
use crate::source::Sources;

/// The annotation that names a class, in place of `spec.ingressClassName`.
pub(super) const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// The annotation of the class for Ingresses without one.
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// The controller that serves an Ingress.
#[derive(Debug)]
pub(super) enum Owner {
    /// One whose Ingresses are converted.
    Of(&'static Dialect),
    /// The controller of this project, with the domains of the annotations that the class reads.
    Own(Vec<String>),
    /// Another one, or unknown. The sentence says why the Ingress stays as it is.
    Other(String),
}

/// The usual classes of other controllers. Their Ingresses often keep annotations that no controller of theirs reads.
const OTHER_CLASSES: [&str; 13] = [
    "alb",
    "azure-application-gateway",
    "cilium",
    "cloudflare-tunnel",
    "contour",
    "gce",
    "gce-internal",
    "haproxy",
    "istio",
    "kong",
    "openshift-default",
    "tailscale",
    "traefik",
];

/// The label of the objects with which cert-manager answers the challenges of ACME.
const SOLVER_LABEL: &str = "acme.cert-manager.io/http01-solver";

/// The beginning of their names.
const SOLVER_NAME: &str = "cm-acme-http-solver-";

/// Whether cert-manager has made an Ingress for a challenge of ACME.
fn is_solver(ingress: &Value) -> bool {
    let metadata = |field: &str| ingress.pointer(&format!("/metadata/{field}"));
    let label = metadata("labels").and_then(|labels| labels.get(SOLVER_LABEL)).and_then(Value::as_str);
    let mut names =
        [metadata("name"), metadata("generateName")].into_iter().flatten().filter_map(Value::as_str);
    label == Some("true") || names.any(|name| name.starts_with(SOLVER_NAME))
}

/// Whether an annotation belongs to another controller that may serve the Ingress, by its domain.
pub(in crate::convert) fn is_foreign(annotation: &str) -> bool {
    let domain = annotation.split_once('/').map_or("", |(domain, _)| domain);
    domain.ends_with("apisix.apache.org")
        || domain == INGRESS_NGINX.domain()
        || domain.ends_with("nginx.org")
        || domain.ends_with("nginx.com")
}

/// Whether an annotation has a domain of controllers that neither ingress-nginx nor APISIX reads, whatever its name is.
pub(super) fn is_unread(annotation: &str) -> bool {
    let domain = annotation.split_once('/').map_or("", |(domain, _)| domain);
    domain.ends_with("ingress.kubernetes.io") && domain != INGRESS_NGINX.domain()
}

/// The loss of an Ingress without an annotation of another controller.
pub(super) fn loss_without(annotation: &str) -> &'static str {
    let domain = annotation.split_once('/').map_or("", |(domain, _)| domain);
    if domain.ends_with("nginx.org") || domain.ends_with("nginx.com") {
        "The annotation belongs to the controller of F5, whose class is often called nginx, too. If that controller serves the \
         Ingress, the annotation may protect it. Without that controller, the annotation has no effect and can go."
    } else {
        "Annotations of this controller are not converted, and this one may protect the Ingress."
    }
}

/// The class of an Ingress by name; `None` stands for the default class.
fn class_name(ingress: &Value) -> Option<&str> {
    let of_annotation = ingress.pointer("/metadata/annotations").and_then(|all| all.get(CLASS_ANNOTATION));
    of_annotation.or_else(|| ingress.pointer("/spec/ingressClassName")).and_then(Value::as_str)
}

/// The classes of the input.
pub(super) struct Classes<'s> {
    sources: &'s Sources,
    /// The class of Ingresses that name none.
    default: Option<(&'s ObjectKey, &'s Value)>,
}

impl<'s> Classes<'s> {
    pub(super) fn of(sources: &'s Sources) -> Self {
        let is_default = |class: &Value| {
            let annotations = class.pointer("/metadata/annotations").and_then(Value::as_object);
            annotations.and_then(|annotations| annotations.get(IS_DEFAULT)) == Some(&json!("true"))
        };
        let default = sources.kept_of(Kind::IngressClass).find(|(_, class)| is_default(class));
        Self { sources, default: default.map(|(key, class)| (key, &**class)) }
    }

    fn get(&self, name: &str) -> Option<&'s Value> {
        self.sources.kept.get(&ObjectKey::new(Kind::IngressClass, "", name)).map(Arc::as_ref)
    }

    /// The name of the class of an Ingress: its own, or that of the default class. Empty if there is none.
    pub(super) fn name_for(&self, ingress: &Value) -> String {
        let default = || self.default.map(|(key, _)| &*key.name.name);
        class_name(ingress).or_else(default).unwrap_or_default().to_owned()
    }

    /// The controller of an Ingress, by its class. If the input does not have the class, its name and the annotations decide.
    pub(super) fn owner(&self, ingress: &Value) -> Owner {
        if is_solver(ingress) {
            let message = "cert-manager has made the Ingress for a challenge of ACME, and deletes it afterwards. Its solver for \
                           Gateways makes HTTPRoutes.";
            return Owner::Other(message.to_owned());
        }
        let name = class_name(ingress);
        let class = match name {
            Some(name) => self.get(name),
            None => self.default.map(|(_, class)| class),
        };
        let Some(class) = class else {
            let usual = DIALECTS.into_iter().find(|dialect| name == Some(dialect.class));
            let is_other = name.is_some_and(|name| OTHER_CLASSES.contains(&name));
            let dialect = usual.or_else(|| annotated(ingress).filter(|_| !is_other));
            return dialect.map_or_else(|| Owner::Other(unknown_class(name, is_other)), Owner::Of);
        };
        let controller = class.pointer("/spec/controller").and_then(Value::as_str).unwrap_or_default();
        if let Some(dialect) = DIALECTS.into_iter().find(|dialect| dialect.is_of(controller)) {
            return Owner::Of(dialect);
        }
        if controller != DEFAULT_CONTROLLER_NAME {
            let name = class.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            return Owner::Other(format!("IngressClass {name} belongs to the controller {controller}."));
        }
        let read = read_annotations(class, self.sources);
        // A class without annotations ignores those that an Ingress has from before.
        annotated(ingress).filter(|_| read.is_empty()).map_or(Owner::Own(read), Owner::Of)
    }

    /// Whether only the annotations of an Ingress say which controller serves it, because the input does not have its class.
    pub(super) fn is_guessed(&self, ingress: &Value, dialect: &Dialect) -> bool {
        let name = class_name(ingress).filter(|name| *name != dialect.class);
        name.is_some_and(|name| self.get(name).is_none())
    }
}

/// The first controller whose annotations an Ingress has.
fn annotated(ingress: &Value) -> Option<&'static Dialect> {
    let annotations = ingress.pointer("/metadata/annotations").and_then(Value::as_object)?;
    let has = |dialect: &&'static Dialect| {
        annotations
            .keys()
            .any(|name| name.split_once('/').is_some_and(|(domain, _)| domain == dialect.domain()))
    };
    DIALECTS.into_iter().find(has)
}

/// The reason why an Ingress stays whose class the input does not have.
fn unknown_class(name: Option<&str>, is_other: bool) -> String {
    match name {
        Some(name) if is_other => format!("The class {name} is usually one of another controller."),
        Some(name) => format!(
            "The input has no IngressClass {name}. Give the class, too, if ingress-nginx or APISIX serves the Ingress."
        ),
        None => "The Ingress names no class, and the input has no default class. Give the class, too, if ingress-nginx or \
                 APISIX serves the Ingress."
            .to_owned(),
    }
}

/// The domains of the annotations that the parameters of a class switch on.
fn read_annotations(class: &Value, sources: &Sources) -> Vec<String> {
    let text = |field: &str| {
        let value = class.pointer(&format!("/spec/parameters/{field}")).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let proxy = ObjectKey::new(Kind::PingsixProxy, text("namespace"), text("name"));
    let domains = sources.kept.get(&proxy).and_then(|proxy| proxy.pointer("/spec/ingress/annotations"));
    let domains = domains.and_then(Value::as_array).into_iter().flatten();
    domains.filter_map(Value::as_str).map(str::to_owned).collect()
}
