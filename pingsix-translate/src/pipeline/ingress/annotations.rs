//! Annotations of an Ingress that only other controllers honour, and those that are honoured here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_api::experimental::httproutes as api;

use crate::annotations::{IngressAnnotations, MoreHosts, PathChange, is_read, regex_uri};
use crate::crd::{self, AnnotationDialect};
use crate::model::{FieldPath, Kind, ObjectKey, Problem, Reason, Severity};
use crate::normalise::{Cors, HeaderChanges, RegexRewrite, admits_any_origin};
use crate::snapshot::{Ingress, Referents};

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

/// The danger of annotations that look like those of ingress-nginx.
const OF_F5: &str =
    " Those of nginx.org and nginx.com belong to the controller of F5, and may protect the Ingress there.";

/// Reads the annotations of an Ingress in these dialects. A problem that depends on other objects, such as a Secret, is
/// not among the problems.
pub fn read_annotations(
    dialects: &[AnnotationDialect],
    namespace: &str,
    annotations: Option<&BTreeMap<String, String>>,
) -> IngressAnnotations {
    let mut annotations = IngressAnnotations::read(namespace, annotations, dialects);
    // Permissions for scripts tune an Ingress, so they close nothing.
    let problem_of = |cors: &crd::Cors| {
        let mut refusals = Vec::new();
        let _ = Cors::of_policy(cors, &FieldPath::new("cors"), &mut refusals);
        refusals.first().map(|refusal| refusal.message.clone())
    };
    annotations.check_cors(problem_of, admits_any_origin);
    annotations.check_directives(|filter| {
        let (at, mut refusals) = (FieldPath::new("metadata"), Vec::new());
        let request = filter.request_header_modifier.as_ref();
        let _ = request.map(|request| HeaderChanges::of_request(request, &at, &mut refusals));
        let response = filter.response_header_modifier.as_ref();
        let _ = response.map(|response| HeaderChanges::of_response(response, &at, &mut refusals));
        refusals.first().map(|refusal| refusal.message.clone())
    });
    // The path for backends tunes an Ingress, too.
    if let Some(PathChange::Regex(path)) = &annotations.path_change
        && let Err(message) = RegexRewrite::read(path)
    {
        annotations.lose_path_change(format!("The path is not rewritten: {message}"));
    }
    annotations
}

/// The path of an HTTPRouteFilter for `regex_uri` of APISIX: a pattern, and the text in the place of its first match.
///
/// # Errors
///
/// The reason against it, as a sentence.
pub fn read_regex_uri(pattern: &str, template: &str) -> Result<crd::FilterPath, String> {
    let path = regex_uri(pattern, template)?;
    RegexRewrite::read(&path)?;
    Ok(path)
}

/// The most headers of a ConfigMap that are set.
const MAX_HEADERS: usize = 64;

/// The most bytes of the names and values of these headers.
const MAX_HEADER_BYTES: usize = 8 * 1024;

/// The filter that sets the headers of a ConfigMap in responses; `None` without any. Headers that cannot be set have a
/// message in `problems`, and so have those beyond the bounds.
pub fn read_custom_headers(
    data: &BTreeMap<String, String>,
    problems: &mut Vec<String>,
) -> Option<api::HttpRouteRulesFilters> {
    let mut set: Vec<api::HttpRouteRulesFiltersResponseHeaderModifierSet> = Vec::new();
    let mut bytes = 0;
    for (name, value) in data {
        bytes += name.len() + value.len();
        if set.len() >= MAX_HEADERS || bytes > MAX_HEADER_BYTES {
            problems.push(format!(
                "The ConfigMap has more than {MAX_HEADERS} headers, or more than {MAX_HEADER_BYTES} bytes of them; those from \
                 \"{name}\" on are not set."
            ));
            break;
        }
        let header =
            api::HttpRouteRulesFiltersResponseHeaderModifierSet { name: name.clone(), value: value.clone() };
        let mut refusals = Vec::new();
        let alone = setting(vec![header.clone()]);
        let filter = alone.response_header_modifier.as_ref();
        let at = FieldPath::new("data");
        let _ = filter.map(|filter| HeaderChanges::of_response(filter, &at, &mut refusals));
        match refusals.first() {
            Some(refusal) => problems.push(format!("Header \"{name}\" is not set: {}", refusal.message)),
            None if set.iter().any(|earlier| earlier.name.eq_ignore_ascii_case(name)) => {
                problems.push(format!(
                    "Header \"{name}\" is not set: the ConfigMap has it in another letter case, too."
                ));
            }
            None => set.push(header),
        }
    }
    (!set.is_empty()).then(|| setting(set))
}

fn setting(set: Vec<api::HttpRouteRulesFiltersResponseHeaderModifierSet>) -> api::HttpRouteRulesFilters {
    api::HttpRouteRulesFilters {
        r#type: api::HttpRouteRulesFiltersType::ResponseHeaderModifier,
        response_header_modifier: Some(api::HttpRouteRulesFiltersResponseHeaderModifier {
            set: Some(set),
            ..api::HttpRouteRulesFiltersResponseHeaderModifier::default()
        }),
        ..api::HttpRouteRulesFilters::default()
    }
}

/// The headers of responses that annotations change, in lower case.
fn changed_headers(annotations: &IngressAnnotations) -> BTreeSet<String> {
    let filters = annotations.filters.iter().filter_map(|filter| filter.response_header_modifier.as_ref());
    let names = filters.flat_map(|filter| {
        let set = filter.set.iter().flatten().map(|header| &header.name);
        let add = filter.add.iter().flatten().map(|header| &header.name);
        set.chain(add).chain(filter.remove.iter().flatten())
    });
    names.map(|name| name.to_ascii_lowercase()).collect()
}

/// Adds the headers of the ConfigMap that the annotations of an Ingress name.
pub(super) fn add_custom_headers(
    annotations: &mut IngressAnnotations,
    ingress: &ObjectKey,
    referents: &Referents,
) {
    let Some(name) = annotations.custom_headers.clone() else { return };
    if name.namespace != ingress.name.namespace {
        // Existence in another namespace must not show.
        let message = format!("ConfigMap {name} is not in the namespace of the Ingress.");
        annotations.lose_custom_headers(message);
        return;
    }
    let Some(config_map) = referents.config_maps.get(&name) else {
        let key = ObjectKey { kind: Kind::ConfigMap, name };
        let is_pending = referents.pending.contains_key(&key);
        annotations.lose_custom_headers(if is_pending {
            format!("The API server has not answered whether {key} exists.")
        } else {
            format!("{key} does not exist.")
        });
        return;
    };
    let mut problems = Vec::new();
    let mut data = config_map.data.clone().unwrap_or_default();
    // A rule with two changes of one header is refused.
    let changed = changed_headers(annotations);
    data.retain(|name, _| {
        let is_free = !changed.contains(&name.to_ascii_lowercase());
        if !is_free {
            problems.push(format!("Header \"{name}\" is not set: another annotation changes it, too."));
        }
        is_free
    });
    let filter = read_custom_headers(&data, &mut problems);
    if let Some(filter) = filter {
        annotations.add_filter(filter);
    }
    for problem in problems {
        annotations.lose_custom_headers(problem);
    }
}

/// An Ingress with its annotations, as its class reads them.
pub(super) struct Annotated<'i> {
    pub(super) ingress: &'i Ingress,
    pub(super) annotations: IngressAnnotations,
}

impl<'i> Annotated<'i> {
    pub(super) fn read(ingress: &'i Ingress, dialects: &[AnnotationDialect]) -> Self {
        let namespace = ingress.metadata.namespace.as_deref().unwrap_or_default();
        let annotations = read_annotations(dialects, namespace, ingress.metadata.annotations.as_ref());
        Self { ingress, annotations }
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
    let is_of_f5 = |name: &&str| {
        let domain = name.split_once('/').map_or("", |(domain, _)| domain);
        domain.ends_with("nginx.org") || domain.ends_with("nginx.com")
    };
    let of_f5 = if ignored.iter().any(is_of_f5) { OF_F5 } else { "" };
    let verbs = if ignored.len() == 1 { "is not supported and has" } else { "are not supported and have" };
    (!ignored.is_empty()).then(|| Problem {
        object: key.clone(),
        field: FieldPath::new("metadata").child("annotations"),
        severity: Severity::Warning,
        reason: Reason::UnsupportedAnnotation,
        message: format!("{} {verbs} no effect on the Ingress.{of_f5}", ignored.join(", ")),
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
