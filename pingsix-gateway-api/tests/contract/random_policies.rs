//! Random SecurityPolicies, TrafficPolicies and BackendTrafficPolicies with edge values: PingSIX builds all documents of
//! accepted policies, and no route under them answers 500 on its own account.

mod specs;

use std::collections::BTreeMap;

use pingsix_translate::pingsix::Request;
use pingsix_translate::status::{ConditionStatus, ConditionType};
use pingsix_translate::{Kind, Object, Objects, Translation};
use serde_json::{Value, json};

use crate::expectations::HOST;
use crate::objects::object;
use crate::policy_env::{PolicyEnv, add_policy, add_route, add_secret, world};
use crate::rng::SeededRng;
use crate::run::{binary, cases, print_message, seed};

/// The number of routes in a world, each with a SecurityPolicy and a TrafficPolicy of its own.
const ROUTES: usize = 100;

/// The specs of a route's policies.
struct RoutePolicies {
    security: Value,
    traffic: Value,
}

impl RoutePolicies {
    /// Whether the policies themselves ask for a status.
    fn ask_for(&self, status: u16) -> bool {
        let fields = ["/rateLimit/local/rejectCode", "/faultInjection/abort/httpStatus"];
        let mut asked = fields.iter().filter_map(|field| self.traffic.pointer(field).and_then(Value::as_u64));
        asked.any(|asked| asked == u64::from(status))
    }
}

/// A world, and the policies of its routes.
fn random_world(rng: &mut SeededRng) -> (Objects, Vec<RoutePolicies>) {
    let mut objects = world();
    for (name, entry, value) in [
        ("keys", "alice", "open-sesame"),
        ("more-keys", "bob", "a\"b\\c"),
        ("tokens", "key", "a secret of thirty-two characters"),
        ("csrf", "key", "k"),
    ] {
        add_secret(&mut objects, ["infra", name], entry, value);
    }
    objects.insert(Object::Secret(object(json!({
        "metadata": { "namespace": "infra", "name": "user" }, "type": "kubernetes.io/basic-auth",
        "stringData": { "username": "alice", "password": "pa:ss\"word" },
    }))));
    objects.insert(Object::ConfigMap(object(json!({
        "metadata": { "namespace": "infra", "name": "public-key" }, "data": { "key": specs::public_key() },
    }))));
    let policy = json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "BackendTrafficPolicy",
        "metadata": { "namespace": "infra", "name": "shop" }, "spec": specs::backend_traffic(rng),
    });
    objects.insert(Object::BackendTrafficPolicy(object(policy)));
    let routes = (0..ROUTES).map(|route| {
        let name = format!("r{route}");
        let matched = json!({ "path": { "value": format!("/{name}") } });
        add_route(&mut objects, &name, "2026-01-01T00:00:00Z", &matched);
        let policies = RoutePolicies { security: specs::security(rng), traffic: specs::traffic(rng) };
        let target = [["HTTPRoute", name.as_str()]];
        add_policy(&mut objects, (Kind::SecurityPolicy, &name), &target, &policies.security);
        add_policy(&mut objects, (Kind::TrafficPolicy, &name), &target, &policies.traffic);
        policies
    });
    let routes = routes.collect();
    (objects, routes)
}

/// Whether the policies of a name are accepted.
fn are_accepted(translation: &Translation, name: &str) -> bool {
    let verdicts = translation.verdicts.policies.values().filter(|verdict| &*verdict.key.name.name == name);
    let mut conditions = verdicts.map(|verdict| verdict.conditions.get(ConditionType::Accepted));
    conditions.all(|condition| condition.is_some_and(|condition| condition.status == ConditionStatus::True))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_builds_every_accepted_policy_and_answers_under_it() {
    const TEST: &str = "random policies";
    let Some(binary) = binary(TEST) else { return };
    let worlds = (cases() / 10).div_ceil(2 * ROUTES);
    let mut env = PolicyEnv::start(&binary, "/contract/random-policies").await;
    let (mut refused, mut answers, mut failed) = (0, BTreeMap::<u16, usize>::new(), Vec::new());
    for number in 0..worlds {
        let (objects, routes) = random_world(&mut SeededRng::new(seed(), number));
        let (translation, _) = env.publish(&objects).await;
        for (route, policies) in routes.iter().enumerate() {
            if !are_accepted(&translation, &format!("r{route}")) {
                refused += 1;
                continue;
            }
            let request = Request::get(HOST, &format!("/r{route}"));
            let request = request.header("origin", "https://a.example").header("accept-encoding", "br, gzip");
            let status = env.ask(&request.header("apikey", "open-sesame")).await.status;
            *answers.entry(status).or_default() += 1;
            if status >= 500 && !policies.ask_for(status) {
                let RoutePolicies { security, traffic } = policies;
                failed.push(format!("world {number}, route {route}: {status}: {security} {traffic}"));
            }
        }
    }
    let total = worlds * ROUTES;
    print_message(&format!(
        "{TEST}: {worlds} worlds of {ROUTES} routes, {refused} routes with a refused policy, answers {answers:?}, seed {}",
        seed()
    ));
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    assert!(refused < total / 10, "{refused} of {total} routes have a refused policy");
    for status in [200, 401, 403] {
        assert!(answers.contains_key(&status), "no answer has the status {status}: {answers:?}");
    }
}
