//! BackendTrafficPolicies, translated and served: a user's requests reach one endpoint, and one that fails its check none.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use pingsix_translate::pingsix::{Config, Request};
use pingsix_translate::{Object, ObjectName, Options, translate};
use serde_json::{Value, json};

use crate::client::{Client, Protocol};
use crate::echo::{BACKEND, Echo};
use crate::etcd::Etcd;
use crate::expectations::{get, least_request, one_endpoint_by_user};
use crate::objects::{gateway_and_service, object, with_nodes};
use crate::process::{PingSix, Verdict, WAIT_TIMEOUT};
use crate::run::{binary, print_message};

const SCOPE: &str = "/contract/backend-traffic";

/// The documents of Gateway `infra/public` for an HTTPRoute to a Service with this policy.
fn config(settings: &Value, problems: usize) -> Config {
    let mut objects = gateway_and_service(&json!({ "port": 80 }), 8080);
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": { "namespace": "infra", "name": "shop" },
        "spec": {
            "parentRefs": [{ "name": "public" }],
            "rules": [{ "backendRefs": [{ "name": "shop", "port": 80 }] }],
        },
    }))));
    let mut spec = settings.clone();
    spec["targetRefs"] = json!([{ "kind": "Service", "name": "shop" }]);
    objects.insert(Object::BackendTrafficPolicy(object(json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "BackendTrafficPolicy",
        "metadata": { "namespace": "infra", "name": "shop" },
        "spec": spec,
    }))));
    let snapshot = objects.snapshot(&ObjectName::new("infra", "public")).unwrap();
    let translation = translate(&snapshot, &Options::default());
    assert_eq!(translation.verdicts.problems.len(), problems, "{:?}", translation.verdicts.problems);
    translation.data_planes.into_values().next().unwrap().config
}

/// PingSIX with a policy, before three endpoints.
struct PolicyEnv {
    pingsix: PingSix,
    endpoints: BTreeMap<String, Echo>,
    _etcd: Etcd,
}

impl PolicyEnv {
    async fn start(binary: &Path, test: &str, config: &Config) -> Self {
        let scope = format!("{SCOPE}-{test}");
        let etcd = Etcd::start(std::slice::from_ref(&scope)).await;
        let pingsix = PingSix::start(binary, etcd.address, &scope).await;
        let mut endpoints = BTreeMap::new();
        for name in ["one", "two", "three"] {
            endpoints.insert(name.to_owned(), Echo::start(name).await);
        }
        let nodes: Vec<String> = endpoints.values().map(|echo| echo.address.to_string()).collect();
        let changed = with_nodes(config, &nodes).await;
        let revision = etcd.publish(&scope, &changed, 1).await;
        assert_eq!(pingsix.verdict(revision, WAIT_TIMEOUT).await, Verdict::Accepted);
        Self { pingsix, endpoints, _etcd: etcd }
    }

    /// The endpoint that answers a request, or the status of another answer.
    async fn ask(&self, request: &Request) -> Result<String, u16> {
        let mut client = Client::new(Protocol::Http1, self.pingsix.address, None);
        let reply = client.ask(request).await.unwrap();
        reply.header(BACKEND).map(str::to_owned).ok_or(reply.status)
    }

    /// Waits until so many requests in a row have this answer.
    async fn settles(
        &self,
        request: &Request,
        is_expected: impl Fn(&Result<String, u16>) -> bool,
    ) -> Duration {
        let started = Instant::now();
        let mut in_a_row = 0;
        while in_a_row < 20 {
            let answer = self.ask(request).await;
            in_a_row = if is_expected(&answer) { in_a_row + 1 } else { 0 };
            assert!(started.elapsed() < WAIT_TIMEOUT, "the last answer is {answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        started.elapsed()
    }
}

/// The request of a user.
type RequestOf = fn(usize) -> Request;

/// The hashing of a policy, and the request of a user.
fn sources() -> Vec<(Value, RequestOf)> {
    let hash = |kind: &str, name: Option<&str>| json!({ "loadBalancer": { "type": "ConsistentHash", "consistentHash": { "type": kind, "name": name } } });
    vec![
        (one_endpoint_by_user(), |user| get("/").header("x-user", &format!("user-{user}"))),
        (hash("Cookie", Some("user")), |user| get("/").header("cookie", &format!("a=b; user=user-{user}"))),
        (hash("QueryParam", Some("user")), |user| get(&format!("/?a=b&user=user-{user}"))),
        (hash("URI", None), |user| get(&format!("/users/{user}"))),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_of_a_user_reaches_one_endpoint() {
    const TEST: &str = "consistent hash";
    let Some(binary) = binary(TEST) else { return };
    for (number, (settings, request)) in sources().into_iter().enumerate() {
        let env = PolicyEnv::start(&binary, &format!("hash-{number}"), &config(&settings, 0)).await;
        let mut chosen = BTreeMap::new();
        for user in 0..30 {
            let endpoint = env.ask(&request(user)).await.unwrap();
            *chosen.entry(endpoint.clone()).or_insert(0) += 1;
            for _ in 0..if user == 0 { 50 } else { 3 } {
                assert_eq!(env.ask(&request(user)).await.as_ref(), Ok(&endpoint), "{settings} user {user}");
            }
        }
        assert_eq!(chosen.len(), 3, "{settings}: {chosen:?}");
    }
    print_message(&format!("{TEST}: one endpoint for each user"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unhealthy_endpoint_gets_no_request_and_no_endpoints_give_500() {
    const TEST: &str = "active check";
    let Some(binary) = binary(TEST) else { return };
    let settings = json!({
        "loadBalancer": { "type": "ConsistentHash", "consistentHash": { "type": "Header", "name": "x-user" } },
        "healthCheck": { "active": { "type": "HTTP", "interval": "1s", "healthyThreshold": 1, "unhealthyThreshold": 2 } },
        "retry": { "numRetries": 0 },
    });
    let mut env = PolicyEnv::start(&binary, "check", &config(&settings, 0)).await;
    let request = get("/").header("x-user", "alice");
    let first = env.ask(&request).await.unwrap();
    let address = env.endpoints.remove(&first).unwrap().address;
    let moved =
        env.settles(&request, |answer| answer.as_ref().is_ok_and(|endpoint| *endpoint != first)).await;
    env.endpoints.insert(first.clone(), Echo::start_at(&first, address).await.unwrap());
    let back = env.settles(&request, |answer| answer.as_ref() == Ok(&first)).await;
    env.endpoints.clear();
    let none = env.settles(&request, |answer| *answer == Err(500)).await;
    print_message(&format!("{TEST}: moved after {moved:?}, back after {back:?}, 500 after {none:?}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_is_not_accepted_changes_no_answer() {
    const TEST: &str = "no such load balancer";
    let Some(binary) = binary(TEST) else { return };
    let config = config(&least_request(), 1);
    let env = PolicyEnv::start(&binary, "least", &config).await;
    let mut seen = BTreeMap::new();
    for _ in 0..30 {
        *seen.entry(env.ask(&get("/")).await.unwrap()).or_insert(0) += 1;
    }
    assert_eq!(seen.values().copied().collect::<Vec<_>>(), [10, 10, 10]);
    print_message(&format!("{TEST}: round robin as before"));
}
