//! The token of a Gateway and the key of its route, beside a TrafficPolicy of the route.

use pingsix_translate::Kind;

use super::super::environment::Environment;
use super::super::expectations::{Inheritance, KEY, SIGNING, gzip, inheritance, zipped};
use super::super::namespace;
use super::super::security::wait_for_condition;
use super::{
    GATEWAY, HERE, ORDERS, apply_policy, apply_secret, fixtures, wait_for_answer, wait_for_message,
    wait_for_statuses,
};

/// The condition of targets of policies.
const AFFECTED: &str = "pingsix.io/PolicyAffected=True/PolicyAffected";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_replaces_authentication_of_its_gateway_unless_that_overrides() {
    const TEST: &str =
        "policies::inheritance::a_route_replaces_authentication_of_its_gateway_unless_that_overrides";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(environment) = Environment::start(TEST, fixtures).await else { return };
    let (of_gateway, of_route) = ((Kind::SecurityPolicy, "tokens"), (Kind::SecurityPolicy, "keys"));
    apply_secret(&environment, "tokens", "key", SIGNING).await;
    apply_secret(&environment, "keys", "alice", KEY).await;
    apply_policy(&environment, (Kind::TrafficPolicy, "gzip"), &[ORDERS], &gzip()).await;
    for Inheritance { of_gateway: gateway, of_route: route, expected } in inheritance() {
        apply_policy(&environment, of_gateway, &[GATEWAY], &gateway).await;
        if let Some(route) = route {
            apply_policy(&environment, of_route, &[ORDERS], &route).await;
        }
        wait_for_statuses(&environment, &expected).await;
        for (mut request, status) in expected.into_iter().filter(|(_, status)| *status == 200) {
            // PingSIX compresses no answer below 20 bytes, and the backend repeats the path.
            request.path = "/orders/with-a-path-of-some-length".to_owned();
            wait_for_answer(&environment, HERE, &zipped(request), |answer| {
                answer.status == status && answer.header("content-encoding") == Some("gzip")
            })
            .await;
        }
    }
    let overriding = ["authentication", "SecurityPolicy default/tokens"];
    wait_for_message(&environment, of_route, "/ancestors/0", ["pingsix.io/Overridden", "True"], &overriding)
        .await;
    for policy in [of_gateway, of_route, (Kind::TrafficPolicy, "gzip")] {
        wait_for_condition(&environment, policy, "/ancestors/0", "Accepted=True/Accepted").await;
    }
    wait_for_condition(&environment, (Kind::Gateway, "web"), "", AFFECTED).await;
    wait_for_condition(&environment, (Kind::HttpRoute, "orders"), "/parents/0", AFFECTED).await;
    environment.stop().await;
}
