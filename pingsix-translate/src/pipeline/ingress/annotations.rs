//! Annotations of an Ingress that ask for something, and get nothing.

use std::sync::Arc;

use crate::model::{FieldPath, ObjectKey, Problem, Reason, Severity};
use crate::snapshot::Ingress;

/// Domains of controllers whose annotations change what an Ingress means, besides `ingress.kubernetes.io`; what is under
/// them counts too.
const DOMAINS: [&str; 10] = [
    "appgw.azure.com",
    "getambassador.io",
    "haproxy-ingress.github.io",
    "haproxy.org",
    "k8s.apisix.apache.org",
    "konghq.com",
    "nginx.com",
    "nginx.org",
    "projectcontour.io",
    "traefik.io",
];

/// One warning that names all annotations another controller would obey: without them, an Ingress may let in whom it
/// was meant to turn away.
pub(super) fn warn_of_annotations(key: &Arc<ObjectKey>, ingress: &Ingress) -> Option<Problem> {
    let annotations = ingress.metadata.annotations.as_ref()?;
    let ignored: Vec<&str> = annotations.keys().map(String::as_str).filter(|name| is_foreign(name)).collect();
    let (are, they_ask) = if ignored.len() == 1 { ("is", "it asks") } else { ("are", "they ask") };
    (!ignored.is_empty()).then(|| Problem {
        object: key.clone(),
        field: FieldPath::new("metadata").child("annotations"),
        severity: Severity::Warning,
        reason: Reason::UnsupportedAnnotation,
        message: format!(
            "{} {are} not supported, so the Ingress is served without what {they_ask} for.",
            ignored.join(", ")
        ),
    })
}

fn is_foreign(annotation: &str) -> bool {
    let Some((domain, name)) = annotation.split_once('/') else { return false };
    let within =
        |parent: &str| domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    match domain {
        "kubernetes.io" => name.starts_with("ingress.") && name != "ingress.class",
        _ => within("ingress.kubernetes.io") || DOMAINS.into_iter().any(within),
    }
}
