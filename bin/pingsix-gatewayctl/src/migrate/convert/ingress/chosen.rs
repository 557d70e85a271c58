//! The controller of an Ingress.

use pingsix_translate::{DEFAULT_CONTROLLER_NAME, Kind, ObjectKey};
use serde_json::{Map, Value, json};

use super::dialect::{DIALECTS, Dialect};
use crate::migrate::source::Sources;

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
    /// Another one.
    Other,
}

/// Whether an annotation belongs to a controller of Ingresses, by its domain.
pub(super) fn is_foreign(annotation: &str) -> bool {
    let domain = annotation.split_once('/').map_or("", |(domain, _)| domain);
    domain.ends_with("apisix.apache.org")
        || domain.ends_with("ingress.kubernetes.io")
        || domain.ends_with("nginx.org")
        || domain.ends_with("nginx.com")
}

/// The class of an Ingress by name; `None` stands for the default class.
pub(super) fn class_name(ingress: &Value) -> Option<&str> {
    let of_annotation = ingress.pointer("/metadata/annotations").and_then(|all| all.get(CLASS_ANNOTATION));
    of_annotation.or_else(|| ingress.pointer("/spec/ingressClassName")).and_then(Value::as_str)
}

/// The controller of an Ingress, by its class. The class may be missing in the input.
pub(super) fn owner(ingress: &Value, sources: &Sources) -> Owner {
    let annotations = ingress.pointer("/metadata/annotations").and_then(Value::as_object);
    let is_annotated = |dialect: &&'static Dialect| {
        let domain =
            |name: &String| name.split_once('/').is_some_and(|(domain, _)| domain == dialect.domain());
        annotations.into_iter().flat_map(Map::keys).any(domain)
    };
    let otherwise = || DIALECTS.into_iter().find(is_annotated).map_or(Owner::Other, Owner::Of);
    let name = class_name(ingress);
    let class = match name {
        Some(name) => sources.kept.get(&ObjectKey::new(Kind::IngressClass, "", name)),
        None => default_class(sources).map(|(_, class)| class),
    };
    let Some(class) = class else {
        let usual = DIALECTS.into_iter().find(|dialect| name == Some(dialect.class));
        return usual.map_or_else(otherwise, Owner::Of);
    };
    let controller = class.pointer("/spec/controller").and_then(Value::as_str);
    if let Some(dialect) = DIALECTS.into_iter().find(|dialect| controller == Some(dialect.controller)) {
        return Owner::Of(dialect);
    }
    let read = read_annotations(class, sources);
    if controller == Some(DEFAULT_CONTROLLER_NAME) && !read.is_empty() {
        return Owner::Own(read);
    }
    otherwise()
}

/// The class of Ingresses that name none.
pub(super) fn default_class(sources: &Sources) -> Option<(&ObjectKey, &Value)> {
    let mut classes = sources.kept.iter().filter(|(key, _)| key.kind == Kind::IngressClass);
    let is_default = |class: &Value| {
        let annotations = class.pointer("/metadata/annotations").and_then(Value::as_object);
        annotations.and_then(|annotations| annotations.get(IS_DEFAULT)) == Some(&json!("true"))
    };
    classes.find(|(_, class)| is_default(class))
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
