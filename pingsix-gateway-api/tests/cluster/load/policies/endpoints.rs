//! The choice between the endpoints of a Service: by user, by health checks, and under a policy that is refused.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pingsix_translate::Kind;
use serde_json::{Value, json};

use super::super::backends::{Backends, HEALTH, NAMES};
use super::super::environment::Environment;
use super::super::expectations::{HOST, get, least_request, one_endpoint_by_user};
use super::super::fixtures::Fixtures;
use super::super::namespace;
use super::super::objects::{backend_ref, prefix, route, service, slice};
use super::super::security::{SECRET_CHANGE_TIMEOUT, wait_for_condition};
use super::{HERE, apply_policy, ask, wait_for_answer, wait_for_message};
use crate::test_env::pingsix::print_message;

const SERVICE: [&str; 2] = ["Service", "spread"];
const POLICY: (Kind, &str) = (Kind::BackendTrafficPolicy, "spread");

/// The time between two health checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The number of failed checks after which an endpoint gets no requests.
const UNHEALTHY_THRESHOLD: u32 = 2;

/// A route to a Service with an endpoint of each backend.
fn fixtures(backends: &Backends) -> Fixtures {
    let mut fixtures = super::fixtures(backends);
    fixtures.objects.push((Kind::Service, service("default", "spread", "web")));
    for name in NAMES {
        let mut endpoint = slice("default", "spread", backends, &[("web", name)]);
        endpoint["metadata"]["name"] = json!(format!("spread-{name}"));
        fixtures.objects.push((Kind::EndpointSlice, endpoint));
    }
    let rules = json!([{"matches": [prefix("/spread")], "backendRefs": [backend_ref("spread")]}]);
    fixtures.objects.push((Kind::HttpRoute, route("spread", HOST, &rules)));
    fixtures
}

/// A policy with the choice by user, and with health checks.
fn checked() -> Value {
    let mut fields = one_endpoint_by_user();
    fields["healthCheck"] = json!({"active": {
        "type": "HTTP", "http": {"path": HEALTH}, "interval": "1s",
        "healthyThreshold": 1, "unhealthyThreshold": UNHEALTHY_THRESHOLD,
    }});
    fields
}

/// The endpoints of so many requests, each with the number of its requests.
async fn endpoints(
    environment: &Environment,
    user: Option<&str>,
    requests: usize,
) -> BTreeMap<String, usize> {
    let mut endpoints = BTreeMap::new();
    for _ in 0..requests {
        let request = get("/spread");
        let request = if let Some(user) = user { request.header("x-user", user) } else { request };
        let answer = ask(environment, &request).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        *endpoints.entry(answer.body[..1].to_owned()).or_insert(0) += 1;
    }
    endpoints
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_reaches_one_healthy_endpoint_and_a_refused_policy_does_nothing() {
    const TEST: &str =
        "policies::endpoints::a_user_reaches_one_healthy_endpoint_and_a_refused_policy_does_nothing";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(environment) = Environment::start(TEST, fixtures).await else { return };
    let in_turn = NAMES.map(|name| (name.to_owned(), 10)).into();
    assert_eq!(endpoints(&environment, None, 30).await, in_turn);
    apply_policy(&environment, POLICY, &[SERVICE], &least_request()).await;
    wait_for_message(&environment, POLICY, "/ancestors/0", ["Accepted", "False"], &["LeastRequest"]).await;
    environment.is_published().await;
    assert_eq!(endpoints(&environment, None, 30).await, in_turn);

    apply_policy(&environment, POLICY, &[SERVICE], &checked()).await;
    wait_for_condition(&environment, POLICY, "/ancestors/0", "Accepted=True/Accepted").await;
    environment.is_published().await;
    let user = || get("/spread").header("x-user", "alice");
    let chosen = endpoints(&environment, Some("alice"), 50).await;
    let [(first, 50)] = &Vec::from_iter(chosen)[..] else { panic!("one endpoint of a user") };

    let failed = Instant::now();
    environment.backends.fail(first);
    wait_for_answer(&environment, HERE, &user(), |answer| !answer.body.starts_with(first.as_str())).await;
    let moved = failed.elapsed();
    assert!(
        moved < CHECK_INTERVAL * UNHEALTHY_THRESHOLD + SECRET_CHANGE_TIMEOUT,
        "the requests moved after {moved:.1?}"
    );
    let second = endpoints(&environment, Some("alice"), 50).await;
    assert!(second.len() == 1 && !second.contains_key(first), "{second:?}");

    for name in NAMES {
        environment.backends.fail(name);
    }
    let failed = Instant::now();
    wait_for_answer(&environment, HERE, &user(), |answer| answer.status == 500).await;
    let none = failed.elapsed();
    assert_eq!(ask(&environment, &get("/orders")).await.status, 200);
    print_message(&format!("{TEST}: moved after {moved:.1?}, 500 after {none:.1?}"));
    environment.stop().await;
}
