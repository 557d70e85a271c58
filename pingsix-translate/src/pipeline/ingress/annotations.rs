//! Annotations of an Ingress that only other controllers honour, and those that are honoured here.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::annotations::{IngressAnnotations, MoreHosts, is_read};
use crate::crd::AnnotationDialect;
use crate::model::{FieldPath, ObjectKey, Problem, Reason, Severity};
use crate::normalise::Cors;
use crate::snapshot::Ingress;

/// Domains of other controllers, besides `ingress.kubernetes.io`. Their annotations change the meaning of an Ingress.
/// Subdomains count, too.
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

/// Reads the annotations of an Ingress in these dialects. A fault that depends on other objects, such as a Secret, is not
/// among the faults.
pub fn read_annotations(
    dialects: &[AnnotationDialect],
    annotations: Option<&BTreeMap<String, String>>,
) -> IngressAnnotations {
    let mut annotations = IngressAnnotations::read(annotations, dialects);
    // Permissions for scripts tune an Ingress, so they close nothing.
    if let Some(cors) = &annotations.security.cors {
        let mut refusals = Vec::new();
        let _ = Cors::read(&cors.into(), &FieldPath::new("cors"), &mut refusals);
        if let Some(refusal) = refusals.first() {
            annotations.security.cors = None;
            annotations.add_flaw(false, "cors", refusal.message.clone());
        }
    }
    annotations
}

/// An Ingress with its annotations, as its class reads them.
pub(super) struct Annotated<'i> {
    pub(super) ingress: &'i Ingress,
    pub(super) annotations: IngressAnnotations,
}

impl<'i> Annotated<'i> {
    pub(super) fn read(ingress: &'i Ingress, dialects: &[AnnotationDialect]) -> Self {
        Self { ingress, annotations: read_annotations(dialects, ingress.metadata.annotations.as_ref()) }
    }

    /// The hosts that the annotations add.
    pub(super) fn more_hosts(&self) -> MoreHosts {
        let rules = self.ingress.spec.iter().flat_map(|spec| spec.rules.iter().flatten());
        self.annotations.more_hosts(rules.map(|rule| {
            let paths = rule.http.as_ref().map_or(0, |http| http.paths.len());
            (rule.host.as_deref().unwrap_or_default(), paths)
        }))
    }
}

/// One warning with all annotations of other controllers. Without their effect, an Ingress may admit clients that its
/// author wants to reject.
pub(super) fn warn_of_annotations(
    key: &Arc<ObjectKey>,
    ingress: &Ingress,
    dialects: &[AnnotationDialect],
) -> Option<Problem> {
    let annotations = ingress.metadata.annotations.as_ref()?;
    let is_ignored = |name: &&str| is_foreign(name) && !is_read(name, dialects);
    let ignored: Vec<&str> = annotations.keys().map(String::as_str).filter(is_ignored).collect();
    let verbs = if ignored.len() == 1 { "is not supported and has" } else { "are not supported and have" };
    (!ignored.is_empty()).then(|| Problem {
        object: key.clone(),
        field: FieldPath::new("metadata").child("annotations"),
        severity: Severity::Warning,
        reason: Reason::UnsupportedAnnotation,
        message: format!("{} {verbs} no effect on the Ingress.", ignored.join(", ")),
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
