use pingsix_translate::pingsix::Request;

use crate::explain::Inquiry;

use super::*;

const SHOP: &str = include_str!("../../examples/shop.yaml");

fn run(manifests: &str) -> Output {
    let (objects, faults) = Objects::from_yaml(manifests);
    assert!(faults.is_empty(), "{faults:?}");
    let options = Options { controller_name: "example.com/embedded".to_owned(), ..Options::default() };
    Pipeline::new(options).run(&objects)
}

fn reasons(output: &Output) -> Vec<(String, &'static str)> {
    output.findings.iter().map(|finding| (finding.object.to_string(), finding.reason)).collect()
}

#[test]
fn objects_become_documents_verdicts_and_explanations() {
    let output = run(SHOP);
    assert_eq!(reasons(&output), []);
    let [(key, desired)] = output.desired().collect::<Vec<_>>()[..] else { panic!("{output:?}") };
    assert_eq!((key.to_string().as_str(), desired.documents().len()), ("shop/web", 2));
    assert!(output.has(key) && output.routes.len() == 1 && output.classes.len() == 1);
    let explanations = output.explain(&Request::get("shop.example", "/cart").into()).unwrap();
    assert!(explanations[0].to_string().contains("Service shop/cart port 80"), "{}", explanations[0]);
    let owner = Some(ObjectKey::new(pingsix_translate::Kind::Gateway, "shop", "other"));
    let other = Inquiry { owner, ..Request::get("shop.example", "/").into() };
    assert_eq!(output.explain(&other).unwrap_err().to_string(), "Gateway shop/other is not served");
}

#[test]
fn objects_without_a_status_in_a_cluster_have_findings() {
    let foreign = run(&SHOP.replace("example.com/embedded", "example.com/other"));
    assert_eq!(reasons(&foreign), [("Gateway shop/web".to_owned(), reason::CLASS_NOT_OURS)]);
    assert_eq!(foreign.desired().count(), 0);
    let lost = run(&SHOP.replace("parentRefs: [{name: web}]", "parentRefs: [{name: gone}]"));
    assert_eq!(reasons(&lost), [("HTTPRoute shop/cart".to_owned(), reason::PARENT_NOT_FOUND)]);
    let mesh = run(&SHOP.replace("[{name: web}]", "[{group: '', kind: Service, name: cart}]"));
    assert_eq!(reasons(&mesh), [("HTTPRoute shop/cart".to_owned(), reason::NO_PARENT)]);
    let finding = &mesh.findings[0];
    assert_eq!(
        finding.to_string(),
        "HTTPRoute shop/cart: spec.parentRefs: The route names no Gateway, so nothing serves it."
    );
}

#[test]
fn the_order_of_objects_changes_nothing() {
    let mut reversed: Vec<&str> = SHOP.split("---\n").collect();
    reversed.reverse();
    let (one, other) = (run(SHOP), run(&reversed.join("\n---\n")));
    let desired = |output: &Output| output.desired().map(|(_, desired)| desired.clone()).collect::<Vec<_>>();
    assert_eq!(desired(&one), desired(&other));
}
