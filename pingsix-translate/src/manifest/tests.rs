use kube::core::DynamicObject;
use serde_json::json;

use super::*;
use crate::model::Severity;

const GATEWAY: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: web, namespace: shop }
spec: { gatewayClassName: pingsix, listeners: [{ name: http, port: 80, protocol: HTTP }] }
";

fn reasons(faults: &[Fault]) -> Vec<(Option<usize>, FaultReason)> {
    faults.iter().map(|fault| (fault.line, fault.reason)).collect()
}

fn dynamic(value: serde_json::Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_fault_costs_its_document_and_no_other_one() {
    let text = format!(
        "- a list\n---\n{GATEWAY}---\n{GATEWAY}---\nkind: Gateway\n---\napiVersion: apps/v1\nkind: Deployment\n---\na: [\n"
    );
    let (objects, faults) = Objects::from_yaml(&text);
    assert_eq!(objects.gateways().count(), 1);
    let expected = [
        (Some(1), FaultReason::NotAManifest),
        (Some(8), FaultReason::Duplicate),
        (Some(13), FaultReason::NotAnObject),
        (Some(15), FaultReason::UnknownKind),
    ];
    assert_eq!(reasons(&faults[..4]), expected);
    assert_eq!(faults[4].reason, FaultReason::NotYaml);
    assert_eq!(faults[3].severity(), Severity::Warning);
}

#[test]
fn lists_in_lists_are_bounded() {
    let mut list = json!({ "apiVersion": "v1", "kind": "List", "items": [] });
    for _ in 0..20 {
        list = json!({ "apiVersion": "v1", "kind": "List", "items": [list] });
    }
    let (_, faults) = Objects::from_yaml(&list.to_string());
    assert_eq!(reasons(&faults), [(Some(1), FaultReason::NotAManifest)]);
}

#[test]
fn an_object_is_applied_and_deleted() {
    let service = |port: serde_json::Value| {
        dynamic(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "cart", "namespace": "shop" },
            "spec": { "ports": [{ "port": port }] },
        }))
    };
    let mut objects = Objects::default();
    let key = objects.apply(service(json!(80))).unwrap();
    assert_eq!(key.to_string(), "Service shop/cart");
    assert!(objects.contains(&key));
    // An object that no longer decodes is absent.
    let fault = objects.apply(service(json!("eighty"))).unwrap_err();
    assert_eq!((fault.reason, fault.field.as_str()), (FaultReason::DoesNotDecode, "spec.ports[0].port"));
    assert!(!objects.contains(&key));
    objects.apply(service(json!(81))).unwrap();
    assert!(objects.delete(&service(json!(81))));
    assert!(!objects.delete(&service(json!(81))));
    let other =
        dynamic(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" } }));
    assert!(!objects.delete(&other));
    assert_eq!(objects.apply(other).unwrap_err().reason, FaultReason::UnknownKind);
}

#[test]
fn the_data_of_a_secret_is_in_no_fault() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: { name: s }\ndata: { tls.key: [hunter2] }\n---\n\
                  kind: Secret\nstringData: { key: \"hunter2\nx: {\n";
    let (_, faults) = Objects::from_yaml(secret);
    assert_eq!(faults.len(), 2);
    assert!(!format!("{faults:?}").contains("hunter2"), "{faults:?}");
}

#[test]
fn values_that_may_be_secret_are_quoted_nowhere() {
    let texts = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\ndata: { password: 918273646 }\n---\n\
                 apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: { name: r }\nspec: { rules: [{ filters: [{ \
                 type: RequestHeaderModifier, requestHeaderModifier: { set: [{ name: a, value: 918273646 }] } }] }] }\n---\n\
                 apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: { name: r }\nspec: { rules: [{ filters: [{ \
                 type: RequestHeaderModifier, requestHeaderModifier: { set: \"a=918273646\" } }] }] }\n---\n\
                 apiVersion: v1\nkind: Secret\nmetadata: { name: s }\nstringData: { a: b, c: 918273646 }\n---\n\
                 apiVersion: v1\nkind: Secret\nmetadata: { name: t }\nstringData: [918273646]\n---\n\
                 apiVersion: v1\nkind: List\nitems: { a: 918273646 }\n---\napiVersion: v1\nkind: List\nitems:\n";
    let (_, faults) = Objects::from_yaml(texts);
    let fields: Vec<&str> = faults.iter().map(|fault| &*fault.field).collect();
    let set = "spec.rules[0].filters[0].requestHeaderModifier.set";
    let value = format!("{set}[0].value");
    assert_eq!(fields, ["data.password", &*value, set, "stringData.c", "stringData", "items"]);
    assert!(!format!("{faults:?}").contains("918273646"), "{faults:?}");
}
