//! Manifests of the classes that Gateways and Ingresses name and that do not exist.

use std::collections::BTreeSet;
use std::io::{self, Write};

use pingsix_gateway_api::pipeline::{Output, reason};
use pingsix_translate::snapshot::{Object, class_of_ingress};
use pingsix_translate::{Objects, Options};
use serde_json::{Value, json};

/// The missing classes, as classes of this controller. A kind with a class of this controller lacks none: another name is a
/// mistake.
pub(crate) fn missing_classes(output: &Output, objects: &Objects, options: &Options) -> Vec<Value> {
    let controller = &options.controller_name;
    let has_class = objects.gateway_classes().any(|(_, class)| class.spec.controller_name == *controller);
    let has_ingress_class = objects.ingress_classes().any(|(_, class)| {
        class.spec.as_ref().is_some_and(|spec| spec.controller.as_ref() == Some(controller))
    });
    let with = |reason| output.findings.iter().filter(move |finding| finding.reason == reason);
    let of_gateways: BTreeSet<String> = with(reason::CLASS_NOT_FOUND)
        .filter(|_| !has_class)
        .filter_map(|finding| {
            let Object::Gateway(gateway) = objects.get(&finding.object)? else { return None };
            Some(gateway.spec.gateway_class_name.clone())
        })
        .collect();
    let gateway_classes = of_gateways.into_iter().map(|name| {
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": name},
            "spec": {"controllerName": controller},
        })
    });
    let of_ingresses: BTreeSet<String> = with(reason::INGRESS_CLASS_NOT_FOUND)
        .filter(|_| !has_ingress_class)
        .filter_map(|finding| {
            let Object::Ingress(ingress) = objects.get(&finding.object)? else { return None };
            class_of_ingress(&ingress).map(str::to_owned)
        })
        .collect();
    let ingress_classes = of_ingresses.into_iter().map(|name| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": name},
            "spec": {"controller": controller},
        })
    });
    gateway_classes.chain(ingress_classes).collect()
}

/// Prints the manifests of missing classes.
pub(crate) fn print_missing(classes: &[Value], out: &mut dyn Write) -> io::Result<()> {
    if classes.is_empty() {
        return Ok(());
    }
    writeln!(out, "To be served by PingSIX, add to the input or to the cluster:")?;
    for class in classes {
        let text = |pointer| class.pointer(pointer).unwrap_or(&Value::Null);
        let spec = class["spec"].as_object().into_iter().flatten();
        writeln!(out, "---")?;
        writeln!(out, "apiVersion: {}", class["apiVersion"].as_str().unwrap_or_default())?;
        writeln!(out, "kind: {}", class["kind"].as_str().unwrap_or_default())?;
        // JSON strings are YAML, whatever is in them.
        writeln!(out, "metadata: {{name: {}}}", text("/metadata/name"))?;
        for (field, controller) in spec {
            writeln!(out, "spec: {{{field}: {controller}}}")?;
        }
    }
    Ok(())
}

/// Prints the manifests of the missing classes of an output.
pub(crate) fn print_classes(
    output: &Output,
    objects: &Objects,
    options: &Options,
    out: &mut dyn Write,
) -> io::Result<()> {
    print_missing(&missing_classes(output, objects, options), out)
}
