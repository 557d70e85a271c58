//! Ingresses and IngressClasses of the versions before `networking.k8s.io/v1`.
//!
//! They get the form of v1 before anything else sees them, field by field, as an API server stores them
//! (`pkg/apis/networking/v1beta1/conversion.go` and `defaults.go` of Kubernetes). The report names the fields of the input.

use pingsix_translate::{INGRESS_GROUP, Kind};
use serde_json::{Map, Value, json};

use crate::report::{Place, Reason, Report};

/// The kind of an object of an older version.
pub(super) fn kind(group: &str, version: &str, kind: &str) -> Option<Kind> {
    match (group, version, kind) {
        ("extensions" | INGRESS_GROUP, "v1beta1", "Ingress") => Some(Kind::Ingress),
        (INGRESS_GROUP, "v1beta1", "IngressClass") => Some(Kind::IngressClass),
        _ => None,
    }
}

/// Gives an object the form of v1.
pub(super) fn convert(kind: Kind, fields: &mut Map<String, Value>, place: &Place, report: &mut Report) {
    fields.insert("apiVersion".to_owned(), json!(kind.api_version()));
    let message = format!("The object is converted to {}, field by field.", kind.api_version());
    report.exact(&place.at("apiVersion"), message);
    if kind != Kind::Ingress {
        return;
    }
    if let Some(Value::Object(spec)) = fields.get_mut("spec") {
        convert_spec(spec, &place.at("spec"), report);
    }
    report.rename_fields(&place.object, as_written);
}

fn convert_spec(spec: &mut Map<String, Value>, place: &Place, report: &mut Report) {
    refuse("defaultBackend", "backend", spec, place, report);
    if let Some(mut backend) = spec.remove("backend") {
        convert_backend(&mut backend, &place.at("backend"), report);
        spec.insert("defaultBackend".to_owned(), backend);
    }
    let rules = spec.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten().enumerate();
    for (rule, value) in rules {
        let at = place.at("rules").item(rule).at("http.paths");
        let paths = value.pointer_mut("/http/paths").and_then(Value::as_array_mut).into_iter().flatten();
        for (path, value) in paths.enumerate() {
            let (at, Value::Object(path)) = (at.item(path), value) else { continue };
            if !path.is_empty() && path.get("pathType").is_none_or(Value::is_null) {
                path.insert("pathType".to_owned(), json!("ImplementationSpecific"));
                let message = "A path of this version without a type has the type ImplementationSpecific.";
                report.exact(&at.at("pathType"), message);
            }
            if let Some(backend) = path.get_mut("backend") {
                convert_backend(backend, &at.at("backend"), report);
            }
        }
    }
}

/// A value of another type stays as it is, and has a verdict where it is read.
fn convert_backend(backend: &mut Value, place: &Place, report: &mut Report) {
    let Value::Object(backend) = backend else { return };
    refuse("service", "serviceName and servicePort", backend, place, report);
    let (name, port) = (backend.remove("serviceName"), backend.remove("servicePort"));
    if name.is_none() && port.is_none() {
        return;
    }
    let mut service = Map::new();
    service.extend(name.map(|name| ("name".to_owned(), name)));
    if let Some(port) = port {
        let number = port.as_str().and_then(|text| text.parse::<u16>().ok());
        let port = match (number, port) {
            (Some(number), _) => {
                let message = "The number of a port stands without quotes. It is taken for a number.";
                report.limited(&place.at("servicePort"), Reason::InvalidValue, message);
                json!({ "number": number })
            }
            (None, Value::String(name)) => json!({ "name": name }),
            (None, other) => json!({ "number": other }),
        };
        service.insert("port".to_owned(), port);
    }
    backend.insert("service".to_owned(), Value::Object(service));
}

/// Removes a field that v1 alone has: an API server drops it in an object of an older version.
fn refuse(name: &str, instead: &str, fields: &mut Map<String, Value>, place: &Place, report: &mut Report) {
    if fields.remove(name).is_some() {
        let message = format!(
            "The field is one of {}. This version has {instead}, so the field has no effect. Write that apiVersion.",
            Kind::Ingress.api_version()
        );
        report.impossible(&place.at(name), Reason::UnknownField, message);
    }
}

/// A field of v1 by its name in the versions before.
fn as_written(field: &str) -> String {
    if !field.starts_with("spec.") {
        return field.to_owned();
    }
    let field = field.replacen("spec.defaultBackend", "spec.backend", 1);
    let Some((before, rest)) = field.split_once("backend.service") else { return field };
    let rest = match rest {
        "" => "",
        ".name" => ".serviceName",
        ".port" | ".port.name" | ".port.number" => ".servicePort",
        _ => return field,
    };
    format!("{before}backend{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_names_of_the_input() {
        let path = "spec.rules[0].http.paths[1].backend";
        for (field, expected) in [
            (format!("{path}.service.port.number"), format!("{path}.servicePort")),
            (format!("{path}.service.name"), format!("{path}.serviceName")),
            (format!("{path}.service"), path.to_owned()),
            (format!("{path}.resource"), format!("{path}.resource")),
            ("spec.defaultBackend.service.name".to_owned(), "spec.backend.serviceName".to_owned()),
            ("spec.defaultBackend".to_owned(), "spec.backend".to_owned()),
            ("spec.tls[0]".to_owned(), "spec.tls[0]".to_owned()),
            (
                "metadata.annotations[a/backend.service]".to_owned(),
                "metadata.annotations[a/backend.service]".to_owned(),
            ),
        ] {
            assert_eq!(as_written(&field), expected, "{field}");
        }
    }
}
