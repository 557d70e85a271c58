//! Two routes for one path: the younger one adds a condition, and has another policy or the same.

use pingsix_translate::Kind;
use serde_json::json;

use super::super::environment::Environment;
use super::super::expectations::{
    HOST, KEY, answers_under_different_policies, answers_under_one_policy, get, keys_of, with_key,
    younger_match,
};
use super::super::namespace;
use super::super::objects::{backend_ref, prefix, route};
use super::super::security::fixtures::{apply, delete};
use super::super::security::wait_for_condition;
use super::{ORDERS, apply_policy, apply_secret, ask, fixtures, wait_for_message, wait_for_statuses};
use crate::test_env::{conditions, eventually_async, objects};

const YOUNGER: [&str; 2] = ["HTTPRoute", "younger"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_of_one_match_have_the_policy_of_the_older_route() {
    const TEST: &str = "policies::one_match::rules_of_one_match_have_the_policy_of_the_older_route";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(environment) = Environment::start(TEST, fixtures).await else { return };
    let keys = keys_of(&json!({"name": "keys"}));
    apply_secret(&environment, "keys", "alice", KEY).await;
    let conditional = json!({"matches": [younger_match()], "backendRefs": [backend_ref("b")]});
    let other = json!({"matches": [prefix("/other")], "backendRefs": [backend_ref("b")]});
    let younger = route("younger", HOST, &json!([conditional]));
    apply(&environment, Kind::HttpRoute, &younger).await;
    apply_policy(&environment, (Kind::SecurityPolicy, "older"), &[ORDERS], &keys).await;
    apply_policy(&environment, (Kind::SecurityPolicy, "younger"), &[YOUNGER], &json!({"anonymous": {}}))
        .await;
    wait_for_statuses(&environment, &answers_under_different_policies()).await;
    // Without a rule that is served, the route is not accepted.
    let names_older = &["HTTPRoute default/orders takes precedence", "SecurityPolicy default/older"];
    let (kind, path) = ((Kind::HttpRoute, "younger"), "/parents/0");
    wait_for_message(&environment, kind, path, ["Accepted", "False"], names_older).await;
    apply(&environment, Kind::HttpRoute, &route("younger", HOST, &json!([conditional, other]))).await;
    wait_for_message(&environment, kind, path, ["PartiallyInvalid", "True"], names_older).await;
    wait_for_condition(&environment, kind, path, "Accepted=True/Accepted").await;
    wait_for_statuses(&environment, &answers_under_different_policies()).await;
    wait_for_statuses(&environment, &[(get("/other"), 200)]).await;
    wait_for_condition(&environment, (Kind::HttpRoute, "orders"), "/parents/0", "Accepted=True/Accepted")
        .await;

    delete(&environment, Kind::SecurityPolicy, "default", "younger").await;
    apply_policy(&environment, (Kind::SecurityPolicy, "older"), &[ORDERS, YOUNGER], &keys).await;
    wait_for_statuses(&environment, &answers_under_one_policy()).await;
    let younger = objects(&environment.cluster.admin(), Kind::HttpRoute, "default");
    eventually_async("no refused rule", async || {
        let status = serde_json::to_value(younger.get("younger").await.unwrap()).unwrap();
        let found = conditions(&status["status"], path);
        !found.is_empty() && !found.iter().any(|condition| condition.starts_with("PartiallyInvalid="))
    })
    .await;
    assert_eq!(ask(&environment, &with_key("/orders", KEY)).await.body, "a /orders");
    assert_eq!(ask(&environment, &with_key("/orders", KEY).header("x", "1")).await.body, "b /orders");
    environment.stop().await;
}
