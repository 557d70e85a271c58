//! Policies on a real API server and the real PingSIX: tokens, inheritance, rate limits, routes with one match and
//! endpoints of Services, each with the statuses of its objects.

mod endpoints;
mod inheritance;
mod one_match;
mod rate_limit;
mod tokens;

use std::net::Ipv4Addr;
use std::time::Instant;

use pingsix_translate::Kind;
use pingsix_translate::pingsix::Request;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::backends::Backends;
use super::environment::{Environment, end_of};
use super::expectations::Expectation;
use super::fixtures::Fixtures;
use super::objects::{service, slice};
use super::security::client::{Answer, HERE, ask_from};
use super::security::fixtures::{apply, fixtures as routes};
use crate::test_env::{WAIT_TIMEOUT, eventually_async, objects};

const ORDERS: [&str; 2] = ["HTTPRoute", "orders"];
const HELP: [&str; 2] = ["HTTPRoute", "help"];
const GATEWAY: [&str; 2] = ["Gateway", "web"];

/// Routes `orders` and `help` to Service `a`, and Service `b` of another backend.
fn fixtures(backends: &Backends) -> Fixtures {
    let mut fixtures = routes(backends);
    fixtures.objects.push((Kind::Service, service("default", "b", "b")));
    fixtures.objects.push((Kind::EndpointSlice, slice("default", "b", backends, &[("b", "b")])));
    fixtures
}

/// Makes policy `default/<name>` of a kind have these targets and fields.
async fn apply_policy(
    environment: &Environment,
    (kind, name): (Kind, &str),
    targets: &[[&str; 2]],
    fields: &Value,
) {
    let target_ref = |[kind, name]: &[&str; 2]| {
        let group = if *kind == "Service" { "" } else { "gateway.networking.k8s.io" };
        json!({"group": group, "kind": kind, "name": name})
    };
    let mut spec = fields.clone();
    spec["targetRefs"] = targets.iter().map(target_ref).collect();
    let policy = json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": kind.as_str(),
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    });
    apply(environment, kind, &policy).await;
}

/// Makes Secret `default/<name>` have this entry.
async fn apply_secret(environment: &Environment, name: &str, entry: &str, value: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"}, "stringData": {entry: value},
    });
    apply(environment, Kind::Secret, &secret).await;
}

async fn ask(environment: &Environment, request: &Request) -> Answer {
    ask_as(HERE, environment, request).await
}

async fn ask_as(client: Ipv4Addr, environment: &Environment, request: &Request) -> Answer {
    ask_from(client, &environment.addresses(), request).await.unwrap()
}

/// Waits until an answer is as expected.
async fn wait_for_answer(
    environment: &Environment,
    client: Ipv4Addr,
    request: &Request,
    is_expected: impl Fn(&Answer) -> bool,
) -> Answer {
    let started = Instant::now();
    loop {
        let answer = ask_as(client, environment, request).await;
        if is_expected(&answer) {
            return answer;
        }
        assert!(
            started.elapsed() < WAIT_TIMEOUT,
            "{request:?}: {answer:?}\n{}",
            end_of(&environment.controller.log())
        );
        sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Waits until each request has its status, and then checks all of them once more.
async fn wait_for_statuses(environment: &Environment, expected: &[Expectation]) {
    for (request, status) in expected {
        wait_for_answer(environment, HERE, request, |answer| answer.status == *status).await;
    }
    for (request, status) in expected {
        let answer = ask(environment, request).await;
        assert_eq!(answer.status, *status, "{request:?}: {answer:?}");
    }
}

/// Waits until an object has a condition, at the end of this path, with all of these texts in its message.
async fn wait_for_message(
    environment: &Environment,
    (kind, name): (Kind, &str),
    path: &str,
    [condition, status]: [&str; 2],
    texts: &[&str],
) {
    let objects = objects(&environment.cluster.admin(), kind, "default");
    eventually_async(&format!("{kind} {name}: {condition} {status} with {texts:?}"), async || {
        let object = objects.get_opt(name).await.unwrap();
        let object = object.map(|object| serde_json::to_value(object).unwrap()).unwrap_or_default();
        let conditions = object["status"].pointer(&format!("{path}/conditions"));
        conditions.and_then(Value::as_array).into_iter().flatten().any(|found| {
            let message = found["message"].as_str().unwrap_or_default();
            found["type"] == condition
                && found["status"] == status
                && texts.iter().all(|text| message.contains(text))
        })
    })
    .await;
}
