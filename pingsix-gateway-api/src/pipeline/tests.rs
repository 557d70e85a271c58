use pingsix_sink::{Desired, MemorySink, Scope, Sink as _};
use pingsix_translate::pingsix::Request;

use crate::explain::Inquiry;

use super::*;

const SHOP: &str = include_str!("../../examples/shop.yaml");

fn run(manifests: &str) -> Output {
    let (objects, problems) = Objects::from_yaml(manifests);
    assert!(problems.is_empty(), "{problems:?}");
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

/// The objects of the shop, and their copies in another namespace.
fn shop_and_zoo() -> Output {
    let shop = SHOP.split_once("---\n").unwrap().1;
    run(&format!("{SHOP}---\n{}", shop.replace("namespace: shop", "namespace: zoo")))
}

fn scope(output: &Output, data_plane: &str) -> Scope {
    let mut all = output.desired();
    all.find(|(key, _)| key.to_string() == data_plane).unwrap().1.scope().clone()
}

#[tokio::test]
async fn a_data_plane_that_cannot_be_published_stops_no_other() {
    let output = shop_and_zoo();
    let (shop, zoo) = (scope(&output, "shop/web"), scope(&output, "zoo/web"));
    let sink = MemorySink::new();
    // A scope that overlaps with the first one.
    let held = Scope::new(format!("{}held", shop.key_prefix())).unwrap();
    sink.publish(&Desired::empty(held.clone())).await.unwrap();
    let error = output.publish(&sink).await.unwrap_err();
    assert!(error.to_string().starts_with("data plane shop/web is not published: "), "{error}");
    assert!(!error.is_retryable());
    assert_eq!(sink.scopes(), [held, zoo]);

    // The sink holds no documents of `shop/web`, so the failed withdrawal is not repeated.
    let mut publisher = Publisher::new(sink);
    assert!(publisher.publish(&output).await.values().any(Result::is_err));
    let rest = run(&SHOP.replace("namespace: shop", "namespace: zoo"));
    assert_eq!(publisher.publish(&rest).await.len(), 2);
    assert!(publisher.publish(&rest).await.values().all(Result::is_ok));
}

#[tokio::test]
async fn a_publisher_withdraws_what_is_gone() {
    let both = shop_and_zoo();
    let (shop, zoo) = (scope(&both, "shop/web"), scope(&both, "zoo/web"));
    let mut publisher = Publisher::new(MemorySink::new());
    let count = |publisher: &Publisher<MemorySink>, scope| {
        publisher.sink().documents(scope).map_or(0, |documents| documents.len())
    };
    assert!(publisher.publish(&both).await.values().all(Result::is_ok));
    assert_eq!((count(&publisher, &shop), count(&publisher, &zoo)), (2, 2));

    // A failure is made up for at the next time.
    publisher.sink().fail_after(Some(0));
    let results = publisher.publish(&run(SHOP)).await;
    let failed: Vec<_> = results.iter().filter(|(_, result)| result.is_err()).collect();
    assert_eq!(failed.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>(), ["zoo/web"]);
    publisher.sink().fail_after(None);
    let results = publisher.publish(&run(SHOP)).await;
    assert_eq!((results.len(), count(&publisher, &shop), count(&publisher, &zoo)), (2, 2, 0));
    assert_eq!(publisher.publish(&run(SHOP)).await.len(), 1);

    // Parameters that cannot be used say nothing about the data plane, so it stays.
    let unusable = SHOP.replace(
        "spec: {controllerName: example.com/embedded}",
        "spec: {controllerName: example.com/embedded, parametersRef: {group: pingsix.io, kind: PingsixProxy, name: gone, namespace: shop}}",
    );
    assert!(publisher.publish(&run(&unusable)).await.is_empty());
    assert_eq!(count(&publisher, &shop), 2);
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

/// An Ingress of a class of ours, with a Service of the shop.
const INGRESS: &str = "
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: embedded}
spec: {controller: example.com/embedded}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: cart, namespace: shop}
spec:
  ingressClassName: embedded
  rules:
  - host: old.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: cart, port: {number: 80}}}}]}
";

#[test]
fn an_incremental_pipeline_has_the_outputs_of_a_pipeline() {
    let states = [
        SHOP.to_owned(),
        SHOP.replace("/cart}", "/basket}"),
        format!("{SHOP}{INGRESS}"),
        format!("{}{INGRESS}", SHOP.replace("10.1.2.3", "10.1.2.4")),
        // Neither the Gateway nor the class belongs to the controller.
        format!("{SHOP}{INGRESS}").replace("example.com/embedded", "example.com/other"),
        format!("{SHOP}{}", INGRESS.replace("number: 80", "number: 81")),
        SHOP.to_owned(),
    ];
    let options = Options { controller_name: "example.com/embedded".to_owned(), ..Options::default() };
    let mut incremental = IncrementalPipeline::new(options.clone());
    let mut objects = Objects::default();
    for (number, manifests) in states.iter().enumerate() {
        let (read, problems) = Objects::from_yaml(manifests);
        assert!(problems.is_empty(), "{problems:?}");
        replace(&mut objects, &read);
        let other = Pipeline::new(options.clone()).run(&objects);
        let desired = |output: &Output| {
            output.desired().map(|(key, desired)| (key.clone(), desired.clone())).collect::<Vec<_>>()
        };
        let unjudged = incremental.translate(&objects, None);
        assert_eq!(desired(unjudged.output()), desired(&other), "{number}");
        let one = unjudged.judge();
        assert_eq!(desired(&one), desired(&other), "{number}");
        assert_eq!(one.findings, other.findings, "{number}");
        assert_eq!(format!("{:?}", one.owners), format!("{:?}", other.owners), "{number}");
        assert_eq!(format!("{:?}", one.routes), format!("{:?}", other.routes), "{number}");
    }
}

/// Makes a collection equal to another one. Equal objects stay the same ones.
fn replace(objects: &mut Objects, wanted: &Objects) {
    for kind in pingsix_translate::Kind::ALL.iter().copied() {
        let gone = objects.of_kind(kind).map(|object| object.key()).filter(|key| !wanted.contains(key));
        for key in gone.collect::<Vec<_>>() {
            objects.remove(&key);
        }
        for object in wanted.of_kind(kind) {
            // The manifests of the test differ in these kinds.
            let differs = matches!(
                kind.as_str(),
                "HTTPRoute" | "EndpointSlice" | "Ingress" | "GatewayClass" | "IngressClass"
            );
            if differs || !objects.contains(&object.key()) {
                objects.insert(object);
            }
        }
    }
}
