//! One count for the routes of a policy, for each client.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use pingsix_translate::Kind;
use serde_json::json;

use super::super::backends::Backends;
use super::super::environment::Environment;
use super::super::expectations::{HOST, LIMIT, SHARED_COUNT, get, three_a_minute};
use super::super::fixtures::Fixtures;
use super::super::namespace;
use super::super::objects::{backend_ref, prefix, route, slice};
use super::super::security::fixtures::apply;
use super::super::security::wait_for_condition;
use super::{HELP, HERE, ORDERS, apply_policy, ask, ask_as, wait_for_answer};
use crate::test_env::pingsix::print_message;

/// A client whose requests show that a limit is in force.
const OBSERVER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

/// A client with a count of its own.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The length of the window of a limit.
const WINDOW: Duration = Duration::from_mins(1);

/// A route to Service `b` as well.
fn fixtures(backends: &Backends) -> Fixtures {
    let mut fixtures = super::fixtures(backends);
    let rules = json!([{"matches": [prefix("/other")], "backendRefs": [backend_ref("b")]}]);
    fixtures.objects.push((Kind::HttpRoute, route("other", HOST, &rules)));
    fixtures
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_two_routes_has_one_count_per_client_until_a_service_scales() {
    const TEST: &str =
        "policies::rate_limit::a_limit_of_two_routes_has_one_count_per_client_until_a_service_scales";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(environment) = Environment::start(TEST, fixtures).await else { return };
    let mut by_header = three_a_minute();
    by_header["rateLimit"]["local"]["key"] = json!({"type": "Header", "name": "X-User"});
    apply_policy(&environment, (Kind::TrafficPolicy, "limit"), &[ORDERS, HELP], &three_a_minute()).await;
    apply_policy(&environment, (Kind::TrafficPolicy, "by-header"), &[["HTTPRoute", "other"]], &by_header)
        .await;
    for policy in ["limit", "by-header"] {
        wait_for_condition(
            &environment,
            (Kind::TrafficPolicy, policy),
            "/ancestors/0",
            "Accepted=True/Accepted",
        )
        .await;
    }
    for path in ["/orders", "/help", "/other"] {
        let request = get(path).header("x-user", "observer");
        let is_counted = |answer: &super::Answer| answer.header("x-rate-limit-limit") == Some(LIMIT);
        wait_for_answer(&environment, OBSERVER, &request, is_counted).await;
    }
    environment.is_published().await;

    let started = Instant::now();
    for (path, status, remaining) in SHARED_COUNT {
        let answer = ask(&environment, &get(path)).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.header("x-rate-limit-limit"), Some(LIMIT), "{answer:?}");
        assert_eq!(answer.header("x-rate-limit-remaining"), Some(remaining), "{answer:?}");
        assert_eq!(answer.header("retry-after").is_some(), status == 429, "{answer:?}");
    }
    assert_eq!(ask_as(ELSEWHERE, &environment, &get("/orders")).await.status, 200);

    // Requests without the header share a count, wherever they come from.
    for (client, status) in [(HERE, 200), (ELSEWHERE, 200), (HERE, 200), (ELSEWHERE, 429), (HERE, 429)] {
        assert_eq!(ask_as(client, &environment, &get("/other")).await.status, status, "{client}");
    }
    assert_eq!(ask(&environment, &get("/other").header("x-user", "alice")).await.status, 200);

    // A route that comes leaves the counts alone. PingSIX forgets them with an endpoint of any Service that comes.
    let rules = json!([{"matches": [prefix("/new")], "backendRefs": [backend_ref("b")]}]);
    apply(&environment, Kind::HttpRoute, &route("new", HOST, &rules)).await;
    wait_for_answer(&environment, HERE, &get("/new"), |answer| answer.status == 200).await;
    assert_eq!(ask(&environment, &get("/orders")).await.status, 429);
    let mut more = slice("default", "b", &environment.backends, &[("b", "c")]);
    more["metadata"]["name"] = json!("b-more");
    apply(&environment, Kind::EndpointSlice, &more).await;
    let answer = wait_for_answer(&environment, HERE, &get("/orders"), |answer| answer.status == 200).await;
    let took = started.elapsed();
    assert!(took < WINDOW, "the window of the limit was over after {took:.1?}");
    assert_eq!(answer.header("x-rate-limit-remaining"), Some("2"), "{answer:?}");
    print_message(&format!("{TEST}: {took:.1?} of the window were enough"));
    environment.stop().await;
}
