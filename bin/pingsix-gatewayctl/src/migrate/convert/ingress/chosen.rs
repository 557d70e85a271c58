//! The controller of an Ingress.

use pingsix_translate::{DEFAULT_CONTROLLER_NAME, Kind, ObjectKey};
use serde_json::{Map, Value, json};

use crate::migrate::source::Sources;

/// The domain of the annotations of ingress-nginx.
pub(super) const DOMAIN: &str = "nginx.ingress.kubernetes.io";

/// The annotation that names a class, in place of `spec.ingressClassName`.
pub(super) const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// The controller in an IngressClass of ingress-nginx.
const CONTROLLER: &str = "k8s.io/ingress-nginx";

/// The usual name of that class.
const CLASS: &str = "nginx";

/// The annotation of the class for Ingresses without one.
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// The controller that serves an Ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// ingress-nginx.
    IngressNginx,
    /// The controller of this project, which reads the annotations of ingress-nginx.
    Dialect,
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

/// The controller of an Ingress, by its class. The class may be missing in the input.
pub(super) fn owner(ingress: &Value, sources: &Sources) -> Owner {
    let annotations = ingress.pointer("/metadata/annotations").and_then(Value::as_object);
    let is_of_nginx = |name: &String| name.split_once('/').is_some_and(|(domain, _)| domain == DOMAIN);
    let is_annotated = annotations.into_iter().flat_map(Map::keys).any(is_of_nginx);
    let otherwise = if is_annotated { Owner::IngressNginx } else { Owner::Other };
    let of_annotation = annotations.and_then(|annotations| annotations.get(CLASS_ANNOTATION));
    let name = of_annotation.or_else(|| ingress.pointer("/spec/ingressClassName")).and_then(Value::as_str);
    let class = match name {
        Some(name) => sources.kept.get(&ObjectKey::new(Kind::IngressClass, "", name)),
        None => default_class(sources),
    };
    let Some(class) = class else {
        return if name == Some(CLASS) { Owner::IngressNginx } else { otherwise };
    };
    match class.pointer("/spec/controller").and_then(Value::as_str) {
        Some(CONTROLLER) => Owner::IngressNginx,
        Some(DEFAULT_CONTROLLER_NAME) if reads_annotations(class, sources) => Owner::Dialect,
        _ => otherwise,
    }
}

fn default_class(sources: &Sources) -> Option<&Value> {
    let mut classes = sources.kept.iter().filter(|(key, _)| key.kind == Kind::IngressClass);
    let is_default = |class: &Value| {
        let annotations = class.pointer("/metadata/annotations").and_then(Value::as_object);
        annotations.and_then(|annotations| annotations.get(IS_DEFAULT)) == Some(&json!("true"))
    };
    classes.find(|(_, class)| is_default(class)).map(|(_, class)| class)
}

/// Whether the parameters of a class switch the annotations of ingress-nginx on.
fn reads_annotations(class: &Value, sources: &Sources) -> bool {
    let text = |field: &str| {
        let value = class.pointer(&format!("/spec/parameters/{field}")).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let proxy = ObjectKey::new(Kind::PingsixProxy, text("namespace"), text("name"));
    let dialects = sources.kept.get(&proxy).and_then(|proxy| proxy.pointer("/spec/ingress/annotations"));
    dialects.and_then(Value::as_array).is_some_and(|dialects| dialects.contains(&json!(DOMAIN)))
}
