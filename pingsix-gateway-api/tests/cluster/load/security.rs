//! SecurityPolicies on a real API server and the real PingSIX: keys, Secrets of other namespaces, redirects, and a checker of
//! every answer to requests without credentials.

mod checker;
pub(super) mod client;
pub(super) mod fixtures;

use std::time::{Duration, Instant};

use pingsix_translate::Kind;
use serde_json::json;
use tokio::time::sleep;

use self::checker::Checker;
use self::client::Client;
use self::fixtures::{ORDERS, apply, delete, fixtures, grant, keys, patch, policy, policy_of};
use super::environment::Environment;
use super::objects::ABSENT;
use super::subjects::Listener;
use super::{namespace, number};
use crate::test_env::pingsix::{page, print_message};
use crate::test_env::{WAIT_TIMEOUT, conditions, eventually_async, objects};

/// The time in which a change of a Secret counts.
pub(super) const SECRET_CHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// The planes of both ports.
const PLANES: [&str; 2] = ["/pingsix/default/web:80", "/pingsix/default/web:443"];

/// The number of changes beside the checker by default.
const DEFAULT_ROUNDS: usize = 40;

fn at(listener: Listener, path: &str) -> Client<'_> {
    Client { listener, path, header: None }
}

fn with_key<'a>(path: &'a str, key: &'a str) -> Client<'a> {
    Client { header: Some(("apikey", key)), ..at(Listener::Plain, path) }
}

/// Waits until a request is answered with a status. Returns the body.
async fn comes_to(environment: &Environment, client: &Client<'_>, status: u16) -> String {
    let started = Instant::now();
    loop {
        let answer = client.ask(environment).await;
        match answer {
            Ok(answer) if answer.status == status => return answer.body,
            answer => assert!(
                started.elapsed() < WAIT_TIMEOUT,
                "{client:?} is not answered with {status}, but {answer:?}\n{}",
                super::environment::end_of(&environment.controller.log())
            ),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until an object says something, at the end of this path.
pub(super) async fn wait_for_condition(
    environment: &Environment,
    (kind, name): (Kind, &str),
    path: &str,
    expected: &str,
) {
    let objects = objects(&environment.cluster.admin(), kind, "default");
    eventually_async(&format!("{kind} {name}: {expected}"), async || {
        let object = objects.get_opt(name).await.unwrap();
        let object = object.map(|object| serde_json::to_value(object).unwrap()).unwrap_or_default();
        conditions(&object["status"], path).iter().any(|said| said == expected)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_counts_until_it_is_rotated_and_no_other_place_has_it() {
    const TEST: &str = "security::a_key_counts_until_it_is_rotated_and_no_other_place_has_it";
    const FIRST: &str = "first-key-of-alice";
    const SECOND: &str = "second-key-of-alice";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(environment) = Environment::start(TEST, fixtures).await else { return };
    comes_to(&environment, &at(Listener::Plain, ORDERS), 200).await;
    apply(&environment, Kind::Secret, &keys("default", "keys", FIRST)).await;
    apply(&environment, Kind::SecurityPolicy, &policy("keys", ("HTTPRoute", "orders"), ("default", "keys")))
        .await;
    comes_to(&environment, &at(Listener::Plain, ORDERS), 401).await;
    // The client that sends the key to another rule shows that the backend would repeat it.
    assert_eq!(comes_to(&environment, &with_key(ORDERS, FIRST), 200).await, "a /orders");
    assert_eq!(comes_to(&environment, &with_key("/help", FIRST), 200).await, format!("a /help key {FIRST}"));
    wait_for_condition(
        &environment,
        (Kind::HttpRoute, "orders"),
        "/parents/0",
        "pingsix.io/PolicyAffected=True/PolicyAffected",
    )
    .await;
    environment.is_published().await;

    let before = documents(&environment).await;
    let rotated = Instant::now();
    patch(&environment, Kind::Secret, ("default", "keys"), &json!({"stringData": {"alice": SECOND}})).await;
    comes_to(&environment, &with_key(ORDERS, FIRST), 401).await;
    comes_to(&environment, &with_key(ORDERS, SECOND), 200).await;
    let took = rotated.elapsed();
    assert!(took < SECRET_CHANGE_TIMEOUT, "the rotation took {took:.1?}");
    for (plane, before, after) in before
        .into_iter()
        .zip(documents(&environment).await)
        .zip(PLANES)
        .map(|((one, other), plane)| (plane, one, other))
    {
        let changed = after.iter().filter(|document| !before.contains(document)).count();
        assert_eq!((changed, after.len()), (1, before.len()), "documents of {plane}");
    }
    for (place, text) in told(&environment).await {
        assert!(!text.contains(FIRST) && !text.contains(SECOND), "a key is in {place}");
    }
    print_message(&format!("{TEST}: the rotation took {took:.1?}"));
    environment.stop().await;
}

/// The documents of each plane.
async fn documents(environment: &Environment) -> Vec<Vec<(String, Vec<u8>)>> {
    let mut documents = Vec::new();
    for plane in PLANES {
        documents.push(environment.feed(plane).await.unwrap().1);
    }
    documents
}

/// Every text about the key, apart from Secret and feed: objects with their statuses, Events, logs and dumps.
async fn told(environment: &Environment) -> Vec<(String, String)> {
    let mut told = vec![("a log".to_owned(), environment.logs())];
    for kind in [Kind::SecurityPolicy, Kind::HttpRoute, Kind::Gateway] {
        let list = objects(&environment.cluster.admin(), kind, "default")
            .list(&kube::api::ListParams::default())
            .await
            .unwrap();
        assert!(!list.items.is_empty(), "{kind}");
        told.push((kind.to_string(), serde_json::to_string(&list).unwrap()));
    }
    let events = kube::Api::<k8s_openapi::api::events::v1::Event>::all(environment.cluster.admin());
    let events = events.list(&kube::api::ListParams::default()).await.unwrap();
    told.push(("an Event".to_owned(), serde_json::to_string(&events).unwrap()));
    for dump in [
        "/debug/world?about=Secret/default/keys",
        "/debug/world?about=SecurityPolicy/default/keys",
        "/debug/index?about=Secret/default/keys",
        "/debug/translation?about=Gateway/default/web",
        "/debug/sink?about=Gateway/default/web",
    ] {
        let dumped = page(environment.debug.port(), dump).await;
        told.push((dump.to_owned(), dumped.unwrap_or_else(|| panic!("no page {dump}")).to_string()));
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_secret_takes_a_grant_and_closes_its_route_when_it_goes() {
    const TEST: &str = "security::a_foreign_secret_takes_a_grant_and_closes_its_route_when_it_goes";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(environment) = Environment::start(TEST, fixtures).await else { return };
    let secret = keys(ABSENT, "keys", "k1");
    apply(&environment, Kind::Secret, &secret).await;
    apply(&environment, Kind::SecurityPolicy, &policy("keys", ("HTTPRoute", "orders"), (ABSENT, "keys")))
        .await;
    for client in [at(Listener::Plain, ORDERS), with_key(ORDERS, "k1"), at(Listener::Secure, ORDERS)] {
        comes_to(&environment, &client, 500).await;
    }
    wait_for_condition(
        &environment,
        (Kind::SecurityPolicy, "keys"),
        "/ancestors/0",
        "ResolvedRefs=False/RefNotPermitted",
    )
    .await;
    wait_for_condition(
        &environment,
        (Kind::SecurityPolicy, "keys"),
        "/ancestors/0",
        "Accepted=False/Invalid",
    )
    .await;
    comes_to(&environment, &at(Listener::Plain, "/help"), 200).await;

    apply(&environment, Kind::ReferenceGrant, &grant("keys")).await;
    comes_to(&environment, &at(Listener::Plain, ORDERS), 401).await;
    comes_to(&environment, &with_key(ORDERS, "k1"), 200).await;
    wait_for_condition(
        &environment,
        (Kind::SecurityPolicy, "keys"),
        "/ancestors/0",
        "Accepted=True/Accepted",
    )
    .await;

    delete(&environment, Kind::Secret, ABSENT, "keys").await;
    comes_to(&environment, &with_key(ORDERS, "k1"), 500).await;
    comes_to(&environment, &at(Listener::Plain, ORDERS), 500).await;
    wait_for_condition(
        &environment,
        (Kind::SecurityPolicy, "keys"),
        "/ancestors/0",
        "ResolvedRefs=False/RefNotFound",
    )
    .await;
    comes_to(&environment, &at(Listener::Plain, "/help"), 200).await;

    apply(&environment, Kind::Secret, &secret).await;
    comes_to(&environment, &at(Listener::Plain, ORDERS), 401).await;
    comes_to(&environment, &with_key(ORDERS, "k1"), 200).await;
    environment.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_in_plaintext_is_redirected_before_anybody_asks_for_a_user() {
    const TEST: &str = "security::a_request_in_plaintext_is_redirected_before_anybody_asks_for_a_user";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(environment) = Environment::start(TEST, fixtures).await else { return };
    apply(&environment, Kind::Secret, &fixtures::user()).await;
    // The same for a class with one data plane for both ports.
    for (kind, object) in fixtures::shared() {
        apply(&environment, kind, &object).await;
    }
    for gateway in ["web", "shared"] {
        for (kind, object) in fixtures::redirected(gateway) {
            apply(&environment, kind, &object).await;
        }
    }
    let plain = at(Listener::Plain, fixtures::ACCOUNT);
    comes_to(&environment, &plain, 301).await;
    let answer = plain.ask(&environment).await.unwrap();
    assert!(answer.head.contains("location: https://shop.example/account"), "{}", answer.head);
    assert!(!answer.head.contains("www-authenticate"), "{}", answer.head);
    let secure = at(Listener::Secure, fixtures::ACCOUNT);
    comes_to(&environment, &secure, 401).await;
    assert!(secure.ask(&environment).await.unwrap().head.contains("www-authenticate: basic"));
    let user = Client { header: Some(("authorization", fixtures::USER)), ..secure };
    comes_to(&environment, &user, 200).await;
    // A user in plaintext changes nothing.
    let user = Client { listener: Listener::Plain, ..user };
    assert_eq!(user.ask(&environment).await.unwrap().status, 301);

    let route = objects(&environment.cluster.admin(), Kind::HttpRoute, "default");
    eventually_async("that the shared data plane refuses the route", async || {
        let route = serde_json::to_value(route.get("account-shared").await.unwrap()).unwrap();
        let message =
            route.pointer("/status/parents/0/conditions").map(ToString::to_string).unwrap_or_default();
        message.contains("SecurityPolicy default/account-shared") && message.contains("use layout perPort")
    })
    .await;
    environment.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_without_credentials_passes_while_its_policies_change() {
    const TEST: &str = "security::no_request_without_credentials_passes_while_its_policies_change";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(environment) = Environment::start(TEST, fixtures).await else { return };
    // At each moment, a policy of the Gateway or of the route is there.
    let of_gateway = |secret: &str| policy("web", ("Gateway", "web"), (ABSENT, secret));
    let of_route = |name: &str, secret: &str| policy(name, ("HTTPRoute", "orders"), (ABSENT, secret));
    for secret in ["gateway", "route"] {
        apply(&environment, Kind::Secret, &keys(ABSENT, secret, "k1")).await;
    }
    apply(&environment, Kind::ReferenceGrant, &grant("keys")).await;
    apply(&environment, Kind::SecurityPolicy, &of_gateway("gateway")).await;
    apply(&environment, Kind::SecurityPolicy, &of_route("route", "route")).await;
    for listener in [Listener::Plain, Listener::Secure] {
        comes_to(&environment, &at(listener, ORDERS), 401).await;
    }
    environment.is_published().await;

    let checker = Checker::start(&environment);
    let rounds = number("SECURITY_ROUNDS").unwrap_or(DEFAULT_ROUNDS);
    for round in 0..rounds {
        match round % 8 {
            0 => {
                let key = json!({"stringData": {"alice": format!("k{round}")}});
                patch(&environment, Kind::Secret, (ABSENT, "route"), &key).await;
            }
            1 => {
                delete(&environment, Kind::Secret, ABSENT, "route").await;
                pause(round).await;
                apply(&environment, Kind::Secret, &keys(ABSENT, "route", "k1")).await;
            }
            2 => {
                delete(&environment, Kind::ReferenceGrant, ABSENT, "keys").await;
                pause(round).await;
                apply(&environment, Kind::ReferenceGrant, &grant("keys")).await;
            }
            3 => {
                delete(&environment, Kind::SecurityPolicy, "default", "route").await;
                pause(round).await;
                apply(&environment, Kind::SecurityPolicy, &of_route("route", "route")).await;
            }
            4 => {
                delete(&environment, Kind::SecurityPolicy, "default", "web").await;
                pause(round).await;
                apply(&environment, Kind::SecurityPolicy, &of_gateway("gateway")).await;
            }
            5 => {
                // A policy with a Secret that nobody has named takes over from the policy of the Gateway at once.
                let secret = format!("new-{round}");
                delete(&environment, Kind::SecurityPolicy, "default", "route").await;
                apply(&environment, Kind::Secret, &keys(ABSENT, &secret, "k1")).await;
                pause(0).await;
                apply(&environment, Kind::SecurityPolicy, &of_route("route", &secret)).await;
                delete(&environment, Kind::SecurityPolicy, "default", "web").await;
                pause(round).await;
                apply(&environment, Kind::SecurityPolicy, &of_gateway("gateway")).await;
                delete(&environment, Kind::SecurityPolicy, "default", "route").await;
                apply(&environment, Kind::SecurityPolicy, &of_route("route", "route")).await;
                delete(&environment, Kind::Secret, ABSENT, &secret).await;
            }
            6 => new_route(&environment, &checker, round).await,
            _ => {
                environment.controller.kill().await.unwrap();
                delete(&environment, Kind::Secret, ABSENT, "gateway").await;
                environment.controller.start().await.unwrap();
                apply(&environment, Kind::Secret, &keys(ABSENT, "gateway", "k1")).await;
            }
        }
        pause(round).await;
    }
    patch(&environment, Kind::Secret, (ABSENT, "route"), &json!({"stringData": {"alice": "last"}})).await;
    comes_to(&environment, &with_key(ORDERS, "last"), 200).await;
    comes_to(&environment, &at(Listener::Plain, ORDERS), 401).await;
    let seen = checker.stop().await;
    print_message(&format!("{TEST}: {rounds} rounds, {seen:?}"));
    assert_eq!(seen.wrong, Vec::<String>::new());
    assert!(seen.statuses.contains_key(&401) && seen.statuses.contains_key(&500), "{seen:?}");
    environment.stop().await;
}

/// A route that comes after its policy, of which no part is known to the controller before.
async fn new_route(environment: &Environment, checker: &Checker, round: usize) {
    let name = format!("new-{round}");
    apply(environment, Kind::Secret, &keys("default", &name, "k1")).await;
    let mut open =
        policy_of(&name, ("HTTPRoute", &name), &json!({"apiKeyAuth": {"credentialRefs": [{"name": name}]}}));
    // The Gateway asks for a key, too, so the policy of the route is the one that counts.
    open["metadata"]["name"] = json!(name);
    apply(environment, Kind::SecurityPolicy, &open).await;
    // The policy of the Gateway must not hide what becomes of the route.
    delete(environment, Kind::SecurityPolicy, "default", "web").await;
    sleep(Duration::from_millis(500)).await;
    let path = format!("/{name}");
    let watched = checker.watch_new(environment, &path);
    apply(environment, Kind::HttpRoute, &fixtures::route(&name, &path)).await;
    comes_to(environment, &with_key(&path, "k1"), 200).await;
    comes_to(environment, &at(Listener::Plain, &path), 401).await;
    watched.stop().await;
    apply(environment, Kind::SecurityPolicy, &policy("web", ("Gateway", "web"), (ABSENT, "gateway"))).await;
    delete(environment, Kind::HttpRoute, "default", &name).await;
    delete(environment, Kind::SecurityPolicy, "default", &name).await;
    delete(environment, Kind::Secret, "default", &name).await;
}

/// A pause of another length in each round, also none.
async fn pause(round: usize) {
    sleep(Duration::from_millis([0, 5, 40, 250][(round / 8) % 4])).await;
}
