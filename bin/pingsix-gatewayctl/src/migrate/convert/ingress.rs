//! Ingresses stay as they are. Their annotations are the place for the next conversions: a file per family of
//! annotations, from an Ingress to policies. Until then, an Ingress with annotations of another controller is withheld.

use pingsix_translate::Kind;
use serde_json::Value;

use super::Conversion;
use crate::migrate::report::Place;
use crate::migrate::source::Sources;

/// Whether the annotation belongs to a controller, by its domain.
fn is_foreign(annotation: &str) -> bool {
    let domain = annotation.split_once('/').map_or("", |(domain, _)| domain);
    domain.ends_with("apisix.apache.org")
        || domain.ends_with("ingress.kubernetes.io")
        || domain.ends_with("nginx.org")
        || domain.ends_with("nginx.com")
}

/// Withholds Ingresses with annotations of other controllers.
pub(super) fn convert(conversion: &mut Conversion, sources: &Sources) {
    for (key, ingress) in sources.kept.iter().filter(|(key, _)| key.kind == Kind::Ingress) {
        let annotations = ingress.pointer("/metadata/annotations").and_then(Value::as_object);
        let foreign: Vec<&String> =
            annotations.into_iter().flat_map(serde_json::Map::keys).filter(|name| is_foreign(name)).collect();
        if foreign.is_empty() {
            continue;
        }
        let place = Place::object(key.to_string());
        for name in foreign {
            let at = place.at(&format!("metadata.annotations[{name}]"));
            conversion
                .report
                .blocking(&at, "Annotations are not converted yet, and this one may protect the Ingress.");
        }
        if !conversion.is_named(Kind::Ingress.as_str(), &key.name) {
            conversion.withhold(&place, "The Ingress is not written.");
            conversion.output.remove(key);
        }
    }
}
