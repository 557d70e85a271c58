//! `--keep-ingress`: Ingresses keep their annotations, and move to a class that reads them.

use pingsix_translate::annotations::IGNORED_ANNOTATIONS;
use pingsix_translate::{DEFAULT_CONTROLLER_NAME, Kind, ObjectKey, PINGSIX_GROUP};
use serde_json::{Map, Value, json};

use super::annotated::Annotated;
use super::chosen::{CLASS_ANNOTATION, DOMAIN};
use super::verdicts;
use crate::migrate::convert::Conversion;
use crate::migrate::report::Place;
use crate::migrate::source::Sources;

/// The name of the parameters of the class.
const PROXY: &str = "ingress-nginx";

/// Writes copies of the Ingresses, and their class. The names are others, because the old controller still serves the
/// Ingresses of the input.
pub(super) fn write(ingresses: &[Annotated], sources: &Sources, conversion: &mut Conversion) {
    if ingresses.is_empty() {
        return;
    }
    write_class(sources, conversion);
    for ingress in ingresses {
        let Some(original) = sources.kept.get(&ingress.key) else { continue };
        let mut spec = original.get("spec").cloned().unwrap_or_else(|| json!({}));
        spec["ingressClassName"] = json!(conversion.choices.ingress_class);
        let wanted = format!("{}-pingsix", ingress.key.name.name);
        let name = conversion.output.add(Kind::Ingress, ingress.namespace(), &wanted, ("spec", spec));
        let key = ObjectKey::new(Kind::Ingress, ingress.namespace(), name.as_str());
        let annotations = annotations(ingress, conversion);
        if let Some(metadata) = conversion.output.get_mut(&key).and_then(|one| one.get_mut("metadata")) {
            if let Some(labels) = original.pointer("/metadata/labels") {
                metadata["labels"] = labels.clone();
            }
            if !annotations.is_empty() {
                metadata["annotations"] = Value::Object(annotations);
            }
        }
        paths(ingress, conversion);
        conversion.report.exact(&ingress.place, format!("The copy {key} has the new class."));
    }
}

/// Reports the paths that the class cannot match.
fn paths(ingress: &Annotated, conversion: &mut Conversion) {
    let Some(rewriting) = &ingress.read.rewriting else { return };
    for path in ingress.entries.iter().flat_map(|entry| &entry.paths) {
        if let Err(why) = rewriting.read(&path.path) {
            let message = format!("The class does not serve the path: {why}.");
            conversion.report.impossible(&path.place.at("path"), message);
        }
    }
}

fn annotations(ingress: &Annotated, conversion: &mut Conversion) -> Map<String, Value> {
    let mut kept: Map<String, Value> = Map::new();
    for (name, value) in &ingress.annotations {
        if name != CLASS_ANNOTATION {
            kept.insert(name.clone(), json!(value));
        }
    }
    // The class redirects Ingresses that have an annotation of the dialect.
    let redirect = format!("{DOMAIN}/ssl-redirect");
    if !ingress.tls.is_empty() && ingress.read.canary.is_none() && !kept.contains_key(&redirect) {
        let message = "ingress-nginx redirects hosts with a certificate by default, so the copy says ssl-redirect \"true\".";
        conversion.report.exact(&ingress.place.at("spec.tls"), message);
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
fn write_class(sources: &Sources, conversion: &mut Conversion) {
    let class = conversion.choices.ingress_class.clone();
    let key = ObjectKey::new(Kind::IngressClass, "", class.as_str());
    if sources.kept.contains_key(&key) {
        let message = format!(
            "The input has the class already. Its parameters have to switch the annotations of {DOMAIN} on, and redirects to \
             HTTPS need the layout PerPort."
        );
        conversion.report.limited(&Place::object(key.to_string()), message);
        return;
    }
    let namespace = conversion.parent.name.namespace.to_string();
    // Redirects to HTTPS need a data plane for each port.
    let spec = json!({ "attached": { "layout": "PerPort" }, "ingress": { "annotations": [DOMAIN] } });
    let proxy = conversion.output.add(Kind::PingsixProxy, &namespace, PROXY, ("spec", spec));
    let parameters = json!({
        "apiGroup": PINGSIX_GROUP, "kind": Kind::PingsixProxy.as_str(), "name": proxy,
        "scope": "Namespace", "namespace": namespace,
    });
    let spec = json!({ "controller": DEFAULT_CONTROLLER_NAME, "parameters": parameters });
    conversion.output.add(Kind::IngressClass, "", &class, ("spec", spec));
}
