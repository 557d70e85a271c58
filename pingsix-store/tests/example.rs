//! The example works as documented. Without a cluster, it follows a script.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../examples/reflector_store.rs"]
#[allow(dead_code, reason = "it has a main of its own")]
mod reflector_store;

#[tokio::test]
async fn a_script_says_which_deployments_have_to_restart() {
    let mut out = Vec::new();
    reflector_store::follow(reflector_store::script(), &mut out).await.unwrap();
    let expected = "\
ConfigMap shop/settings has changed: restart shop/cart, shop/web
Secret shop/session-key has come: restart shop/web
Secret shop/session-key is gone: restart shop/web
ConfigMap shop/settings is gone: restart shop/cart, shop/web
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
