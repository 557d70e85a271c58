use kube::core::DynamicObject;
use serde_json::json;

use super::*;
use crate::model::Severity;
use crate::snapshot::Referents;

const GATEWAY: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: web, namespace: shop }
spec: { gatewayClassName: pingsix, listeners: [{ name: http, port: 80, protocol: HTTP }] }
";

fn reasons(problems: &[ManifestProblem]) -> Vec<(Option<usize>, ManifestReason)> {
    problems.iter().map(|problem| (problem.line, problem.reason)).collect()
}

fn dynamic(value: serde_json::Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_problem_costs_its_document_and_no_other_one() {
    let text = format!(
        "- a list\n---\n{GATEWAY}---\n{GATEWAY}---\nkind: Gateway\n---\napiVersion: apps/v1\nkind: Deployment\n---\na: [\n"
    );
    let (objects, problems) = Objects::from_yaml(&text);
    assert_eq!(objects.gateways().count(), 1);
    let expected = [
        (Some(1), ManifestReason::NotAManifest),
        (Some(8), ManifestReason::Duplicate),
        (Some(13), ManifestReason::NotAnObject),
        (Some(15), ManifestReason::UnknownKind),
    ];
    assert_eq!(reasons(&problems[..4]), expected);
    assert_eq!(problems[4].reason, ManifestReason::NotYaml);
    assert_eq!(problems[3].severity(), Severity::Warning);
}

#[test]
fn lists_in_lists_are_bounded() {
    let mut list = json!({ "apiVersion": "v1", "kind": "List", "items": [] });
    for _ in 0..20 {
        list = json!({ "apiVersion": "v1", "kind": "List", "items": [list] });
    }
    let (_, problems) = Objects::from_yaml(&list.to_string());
    assert_eq!(reasons(&problems), [(Some(1), ManifestReason::NotAManifest)]);
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
    let problem = objects.apply(service(json!("eighty"))).unwrap_err();
    assert_eq!(
        (problem.reason, problem.field.as_str()),
        (ManifestReason::DoesNotDecode, "spec.ports[0].port")
    );
    assert!(!objects.contains(&key));
    objects.apply(service(json!(81))).unwrap();
    assert!(objects.delete(&service(json!(81))));
    assert!(!objects.delete(&service(json!(81))));
    let other =
        dynamic(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" } }));
    assert!(!objects.delete(&other));
    assert_eq!(objects.apply(other).unwrap_err().reason, ManifestReason::UnknownKind);
}

#[test]
fn an_object_without_a_namespace_is_one_of_the_default_namespace() {
    let service = dynamic(json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "cart" } }));
    let mut objects = Objects::default();
    assert_eq!(objects.apply(service.clone()).unwrap().to_string(), "Service default/cart");
    assert!(objects.delete(&service));
}

#[test]
fn the_items_of_a_list_have_the_types_of_their_resource() {
    let resource = ApiResource::erase::<k8s_openapi::api::core::v1::Service>(&());
    let item = dynamic(json!({ "metadata": { "name": "cart", "namespace": "shop" } }));
    let mut objects = Objects::default();
    assert_eq!(objects.apply(item.clone()).unwrap_err().message, "A manifest needs kind.");
    assert_eq!(objects.apply_as(&resource, item).unwrap().to_string(), "Service shop/cart");
}

#[test]
fn a_text_counts_as_a_whole_or_not_at_all() {
    let warnings = format!("{GATEWAY}---\napiVersion: apps/v1\nkind: Deployment\n");
    assert_eq!(Objects::try_from_yaml(&warnings).unwrap().gateways().count(), 1);
    let problem = Objects::try_from_yaml(&format!("{warnings}---\nkind: [\n")).unwrap_err();
    assert_eq!(problem.reason, ManifestReason::NotYaml);
}

#[test]
fn a_problem_of_an_object_with_a_name_has_its_key() {
    let texts = "apiVersion: v1\nkind: Secret\nmetadata: { name: s }\nstringData: { a: 1 }\n---\n\
                 apiVersion: gateway.networking.k8s.io/v9\nkind: Gateway\nmetadata: { name: web, namespace: shop }\n---\n\
                 apiVersion: v1\nkind: Service\nmetadata: { name: cart }\nspec: []\n";
    let (_, problems) = Objects::from_yaml(texts);
    let keys = problems.iter().map(|problem| problem.key.as_ref().unwrap().to_string());
    let keys: Vec<String> = keys.collect();
    assert_eq!(keys, ["Secret default/s", "Gateway shop/web", "Service default/cart"]);
}

#[test]
fn the_data_of_a_secret_is_in_no_debug_text() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata: { name: s }\nstringData: { a: hunter2 }\n";
    let objects = Objects::try_from_yaml(text).unwrap();
    let secrets = objects.secrets().map(|(name, secret)| (name.clone(), secret.clone())).collect();
    let referents = Referents { secrets, ..Referents::default() };
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [{ "stringData": { "a": "hunter2" } }] });
    let debug = format!("{objects:?} {referents:?} {:?} {:?}", documents(text), decode(list));
    assert!(debug.contains("List(1 items)") && debug.matches("default").count() == 2, "{debug}");
    // The bytes of a Secret are printed as numbers.
    let bytes = format!("{:?}", b"hunter2");
    assert!(!debug.contains("hunter2") && !debug.contains(bytes.trim_matches(['[', ']'])), "{debug}");
}

#[test]
fn the_data_of_a_secret_is_in_no_problem() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: { name: s }\ndata: { tls.key: [hunter2] }\n---\n\
                  kind: Secret\nstringData: { key: \"hunter2\nx: {\n";
    let (_, problems) = Objects::from_yaml(secret);
    assert_eq!(problems.len(), 2);
    assert!(!format!("{problems:?}").contains("hunter2"), "{problems:?}");
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
    let (_, problems) = Objects::from_yaml(texts);
    let fields: Vec<&str> = problems.iter().map(|problem| &*problem.field).collect();
    let set = "spec.rules[0].filters[0].requestHeaderModifier.set";
    let value = format!("{set}[0].value");
    assert_eq!(fields, ["data.password", &*value, set, "stringData.c", "stringData", "items"]);
    assert!(!format!("{problems:?}").contains("918273646"), "{problems:?}");
}
