//! The examples work as documented.
//!
//! The tests call them as functions instead of programs: the tested code is then the compiled one, and the test
//! captures its output.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[cfg(feature = "controller")]
mod cluster;
#[cfg(feature = "controller")]
#[path = "../../examples/embedded_controller.rs"]
#[allow(dead_code, reason = "it has a main of its own")]
mod embedded_controller;
#[cfg(feature = "controller")]
#[path = "../../../pingsix-store/examples/reflector_store.rs"]
#[allow(dead_code, reason = "it has a main of its own")]
mod reflector_store;
#[path = "../../examples/translate_manifests.rs"]
#[allow(dead_code, reason = "it has a main of its own")]
mod translate_manifests;

const SHOP: &str = include_str!("../../examples/shop.yaml");

#[tokio::test]
async fn manifests_become_documents_and_requests_are_explained() {
    let mut out = Vec::new();
    translate_manifests::run(SHOP, &mut out).await.unwrap();
    let output = String::from_utf8(out).unwrap();
    println!("{output}");
    assert!(output.starts_with("/pingsix/shop/web: 2 created, 0 updated, 0 deleted\n"), "{output}");
    assert!(output.contains(" because of HTTPRoute shop/cart\n"), "{output}");
    assert!(output.contains("10.1.2.3:8080"), "{output}");
}

#[tokio::test]
async fn problems_of_manifests_are_printed() {
    let mut out = Vec::new();
    let misspelled = SHOP.replace("backendRefs: [{name: cart,", "backendRefs: [{name: card,");
    translate_manifests::run(&misspelled, &mut out).await.unwrap();
    let output = String::from_utf8(out).unwrap();
    assert!(output.contains("problem: ") && output.contains("card"), "{output}");
}
