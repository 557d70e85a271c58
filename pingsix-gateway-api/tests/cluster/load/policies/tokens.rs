//! Tokens with claims that are missing or wrong, and an algorithm that PingSIX lacks.

use pingsix_translate::Kind;

use super::super::environment::Environment;
use super::super::expectations::{
    SIGNING, answers_to_tokens, get, good_token, tokens, tokens_of_another_algorithm,
};
use super::super::namespace;
use super::super::security::fixtures::{apply, route};
use super::super::security::wait_for_condition;
use super::{ORDERS, apply_policy, apply_secret, fixtures, wait_for_message, wait_for_statuses};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_needs_every_claim_and_an_unknown_algorithm_closes_one_route() {
    const TEST: &str =
        "policies::tokens::a_token_needs_every_claim_and_an_unknown_algorithm_closes_one_route";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(environment) = Environment::start(TEST, fixtures).await else { return };
    let policy = (Kind::SecurityPolicy, "tokens");
    apply_secret(&environment, "tokens", "key", SIGNING).await;
    apply_policy(&environment, policy, &[ORDERS], &tokens()).await;
    wait_for_statuses(&environment, &answers_to_tokens()).await;
    wait_for_condition(&environment, policy, "/ancestors/0", "Accepted=True/Accepted").await;

    apply_policy(&environment, policy, &[ORDERS], &tokens_of_another_algorithm()).await;
    wait_for_statuses(&environment, &[(good_token(), 500), (get("/orders"), 500), (get("/help"), 200)]).await;
    wait_for_message(
        &environment,
        policy,
        "/ancestors/0",
        ["Accepted", "False"],
        &["HS384", "jwt.algorithm"],
    )
    .await;
    // Other routes still change.
    apply(&environment, Kind::HttpRoute, &route("new", "/new")).await;
    wait_for_statuses(&environment, &[(get("/new"), 200), (good_token(), 500)]).await;
    apply_policy(&environment, policy, &[ORDERS], &tokens()).await;
    wait_for_statuses(&environment, &answers_to_tokens()).await;
    environment.stop().await;
}
