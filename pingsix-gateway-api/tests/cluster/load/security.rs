//! SecurityPolicies on a real API server and the real PingSIX: keys, Secrets of other namespaces, redirects, and a judge of
//! every answer to requests without credentials.

mod client;
mod judge;
mod scene;

use std::time::{Duration, Instant};

use pingsix_translate::Kind;
use serde_json::json;
use tokio::time::sleep;

use self::client::Client;
use self::judge::Judge;
use self::scene::{ORDERS, apply, cast, delete, grant, keys, patch, policy, policy_of};
use super::objects::AWAY;
use super::scene::Scene;
use super::subjects::Door;
use super::{namespace, number};
use crate::lab::pingsix::{page, say};
use crate::lab::{PATIENCE, conditions, eventually_found, objects};

/// The time in which a change of a Secret counts.
const PROMPT: Duration = Duration::from_secs(5);

/// The planes of both ports.
const PLANES: [&str; 2] = ["/pingsix/default/web:80", "/pingsix/default/web:443"];

/// The number of changes beside the judge by default.
const ROUNDS: usize = 40;

fn at(door: Door, path: &str) -> Client<'_> {
    Client { door, path, header: None }
}

fn with_key<'a>(path: &'a str, key: &'a str) -> Client<'a> {
    Client { header: Some(("apikey", key)), ..at(Door::Plain, path) }
}

/// Waits until a request is answered with a status. Returns the body.
async fn comes_to(scene: &Scene, client: &Client<'_>, status: u16) -> String {
    let started = Instant::now();
    loop {
        let answer = client.ask(scene).await;
        match answer {
            Ok(answer) if answer.status == status => return answer.body,
            answer => assert!(
                started.elapsed() < PATIENCE,
                "{client:?} is not answered with {status}, but {answer:?}\n{}",
                super::scene::end_of(&scene.controller.log())
            ),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until an object says something, at the end of this path.
async fn says(scene: &Scene, (kind, name): (Kind, &str), path: &str, expected: &str) {
    let objects = objects(&scene.cluster.admin(), kind, "default");
    eventually_found(&format!("{kind} {name}: {expected}"), async || {
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
    let Some(scene) = Scene::start(TEST, cast).await else { return };
    comes_to(&scene, &at(Door::Plain, ORDERS), 200).await;
    apply(&scene, Kind::Secret, &keys("default", "keys", FIRST)).await;
    apply(&scene, Kind::SecurityPolicy, &policy("keys", ("HTTPRoute", "orders"), ("default", "keys"))).await;
    comes_to(&scene, &at(Door::Plain, ORDERS), 401).await;
    // The client that sends the key to another rule shows that the backend would repeat it.
    assert_eq!(comes_to(&scene, &with_key(ORDERS, FIRST), 200).await, "a /orders");
    assert_eq!(comes_to(&scene, &with_key("/help", FIRST), 200).await, format!("a /help key {FIRST}"));
    says(&scene, (Kind::HttpRoute, "orders"), "/parents/0", "pingsix.io/PolicyAffected=True/PolicyAffected")
        .await;
    scene.is_published().await;

    let before = documents(&scene).await;
    let rotated = Instant::now();
    patch(&scene, Kind::Secret, ("default", "keys"), &json!({"stringData": {"alice": SECOND}})).await;
    comes_to(&scene, &with_key(ORDERS, FIRST), 401).await;
    comes_to(&scene, &with_key(ORDERS, SECOND), 200).await;
    let took = rotated.elapsed();
    assert!(took < PROMPT, "the rotation took {took:.1?}");
    for (plane, before, after) in before
        .into_iter()
        .zip(documents(&scene).await)
        .zip(PLANES)
        .map(|((one, other), plane)| (plane, one, other))
    {
        let changed = after.iter().filter(|document| !before.contains(document)).count();
        assert_eq!((changed, after.len()), (1, before.len()), "documents of {plane}");
    }
    for (place, text) in told(&scene).await {
        assert!(!text.contains(FIRST) && !text.contains(SECOND), "a key is in {place}");
    }
    say(&format!("{TEST}: the rotation took {took:.1?}"));
    scene.stop().await;
}

/// The documents of each plane.
async fn documents(scene: &Scene) -> Vec<Vec<(String, Vec<u8>)>> {
    let mut documents = Vec::new();
    for plane in PLANES {
        documents.push(scene.feed(plane).await.unwrap().1);
    }
    documents
}

/// Every text about the key, apart from Secret and feed: objects with their statuses, Events, logs and dumps.
async fn told(scene: &Scene) -> Vec<(String, String)> {
    let mut told = vec![("a log".to_owned(), scene.logs())];
    for kind in [Kind::SecurityPolicy, Kind::HttpRoute, Kind::Gateway] {
        let list = objects(&scene.cluster.admin(), kind, "default")
            .list(&kube::api::ListParams::default())
            .await
            .unwrap();
        assert!(!list.items.is_empty(), "{kind}");
        told.push((kind.to_string(), serde_json::to_string(&list).unwrap()));
    }
    let events = kube::Api::<k8s_openapi::api::events::v1::Event>::all(scene.cluster.admin());
    let events = events.list(&kube::api::ListParams::default()).await.unwrap();
    told.push(("an Event".to_owned(), serde_json::to_string(&events).unwrap()));
    for dump in [
        "/debug/world?about=Secret/default/keys",
        "/debug/world?about=SecurityPolicy/default/keys",
        "/debug/index?about=Secret/default/keys",
        "/debug/translation?about=Gateway/default/web",
        "/debug/sink?about=Gateway/default/web",
    ] {
        let dumped = page(scene.debug.port(), dump).await;
        told.push((dump.to_owned(), dumped.unwrap_or_else(|| panic!("no page {dump}")).to_string()));
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_another_namespace_takes_a_grant_and_closes_its_route_when_it_goes() {
    const TEST: &str =
        "security::a_secret_of_another_namespace_takes_a_grant_and_closes_its_route_when_it_goes";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(scene) = Scene::start(TEST, cast).await else { return };
    let secret = keys(AWAY, "keys", "k1");
    apply(&scene, Kind::Secret, &secret).await;
    apply(&scene, Kind::SecurityPolicy, &policy("keys", ("HTTPRoute", "orders"), (AWAY, "keys"))).await;
    for client in [at(Door::Plain, ORDERS), with_key(ORDERS, "k1"), at(Door::Secure, ORDERS)] {
        comes_to(&scene, &client, 500).await;
    }
    says(&scene, (Kind::SecurityPolicy, "keys"), "/ancestors/0", "ResolvedRefs=False/RefNotPermitted").await;
    says(&scene, (Kind::SecurityPolicy, "keys"), "/ancestors/0", "Accepted=False/Invalid").await;
    comes_to(&scene, &at(Door::Plain, "/help"), 200).await;

    apply(&scene, Kind::ReferenceGrant, &grant("keys")).await;
    comes_to(&scene, &at(Door::Plain, ORDERS), 401).await;
    comes_to(&scene, &with_key(ORDERS, "k1"), 200).await;
    says(&scene, (Kind::SecurityPolicy, "keys"), "/ancestors/0", "Accepted=True/Accepted").await;

    delete(&scene, Kind::Secret, AWAY, "keys").await;
    comes_to(&scene, &with_key(ORDERS, "k1"), 500).await;
    comes_to(&scene, &at(Door::Plain, ORDERS), 500).await;
    says(&scene, (Kind::SecurityPolicy, "keys"), "/ancestors/0", "ResolvedRefs=False/RefNotFound").await;
    comes_to(&scene, &at(Door::Plain, "/help"), 200).await;

    apply(&scene, Kind::Secret, &secret).await;
    comes_to(&scene, &at(Door::Plain, ORDERS), 401).await;
    comes_to(&scene, &with_key(ORDERS, "k1"), 200).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_in_plaintext_is_redirected_before_anybody_asks_for_a_user() {
    const TEST: &str = "security::a_request_in_plaintext_is_redirected_before_anybody_asks_for_a_user";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(scene) = Scene::start(TEST, cast).await else { return };
    apply(&scene, Kind::Secret, &scene::user()).await;
    // The same for a class with one data plane for both ports.
    for (kind, object) in scene::shared() {
        apply(&scene, kind, &object).await;
    }
    for gateway in ["web", "shared"] {
        for (kind, object) in scene::redirected(gateway) {
            apply(&scene, kind, &object).await;
        }
    }
    let plain = at(Door::Plain, scene::ACCOUNT);
    comes_to(&scene, &plain, 301).await;
    let answer = plain.ask(&scene).await.unwrap();
    assert!(answer.head.contains("location: https://shop.example/account"), "{}", answer.head);
    assert!(!answer.head.contains("www-authenticate"), "{}", answer.head);
    let secure = at(Door::Secure, scene::ACCOUNT);
    comes_to(&scene, &secure, 401).await;
    assert!(secure.ask(&scene).await.unwrap().head.contains("www-authenticate: basic"));
    let user = Client { header: Some(("authorization", scene::USER)), ..secure };
    comes_to(&scene, &user, 200).await;
    // A user in plaintext changes nothing.
    let user = Client { door: Door::Plain, ..user };
    assert_eq!(user.ask(&scene).await.unwrap().status, 301);

    let route = objects(&scene.cluster.admin(), Kind::HttpRoute, "default");
    eventually_found("that the shared data plane refuses the route", async || {
        let route = serde_json::to_value(route.get("account-shared").await.unwrap()).unwrap();
        let message =
            route.pointer("/status/parents/0/conditions").map(ToString::to_string).unwrap_or_default();
        message.contains("SecurityPolicy default/account-shared") && message.contains("use layout perPort")
    })
    .await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_without_credentials_reaches_the_backend_whatever_happens_to_its_policies() {
    const TEST: &str =
        "security::no_request_without_credentials_reaches_the_backend_whatever_happens_to_its_policies";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(scene) = Scene::start(TEST, cast).await else { return };
    // At each moment, a policy of the Gateway or of the route is there.
    let of_gateway = |secret: &str| policy("web", ("Gateway", "web"), (AWAY, secret));
    let of_route = |name: &str, secret: &str| policy(name, ("HTTPRoute", "orders"), (AWAY, secret));
    for secret in ["gateway", "route"] {
        apply(&scene, Kind::Secret, &keys(AWAY, secret, "k1")).await;
    }
    apply(&scene, Kind::ReferenceGrant, &grant("keys")).await;
    apply(&scene, Kind::SecurityPolicy, &of_gateway("gateway")).await;
    apply(&scene, Kind::SecurityPolicy, &of_route("route", "route")).await;
    for door in [Door::Plain, Door::Secure] {
        comes_to(&scene, &at(door, ORDERS), 401).await;
    }
    scene.is_published().await;

    let judge = Judge::start(&scene);
    let rounds = number("SECURITY_ROUNDS").unwrap_or(ROUNDS);
    for round in 0..rounds {
        match round % 8 {
            0 => {
                let key = json!({"stringData": {"alice": format!("k{round}")}});
                patch(&scene, Kind::Secret, (AWAY, "route"), &key).await;
            }
            1 => {
                delete(&scene, Kind::Secret, AWAY, "route").await;
                pause(round).await;
                apply(&scene, Kind::Secret, &keys(AWAY, "route", "k1")).await;
            }
            2 => {
                delete(&scene, Kind::ReferenceGrant, AWAY, "keys").await;
                pause(round).await;
                apply(&scene, Kind::ReferenceGrant, &grant("keys")).await;
            }
            3 => {
                delete(&scene, Kind::SecurityPolicy, "default", "route").await;
                pause(round).await;
                apply(&scene, Kind::SecurityPolicy, &of_route("route", "route")).await;
            }
            4 => {
                delete(&scene, Kind::SecurityPolicy, "default", "web").await;
                pause(round).await;
                apply(&scene, Kind::SecurityPolicy, &of_gateway("gateway")).await;
            }
            5 => {
                // A policy with a Secret that nobody has named takes over from the policy of the Gateway at once.
                let secret = format!("new-{round}");
                delete(&scene, Kind::SecurityPolicy, "default", "route").await;
                apply(&scene, Kind::Secret, &keys(AWAY, &secret, "k1")).await;
                pause(0).await;
                apply(&scene, Kind::SecurityPolicy, &of_route("route", &secret)).await;
                delete(&scene, Kind::SecurityPolicy, "default", "web").await;
                pause(round).await;
                apply(&scene, Kind::SecurityPolicy, &of_gateway("gateway")).await;
                delete(&scene, Kind::SecurityPolicy, "default", "route").await;
                apply(&scene, Kind::SecurityPolicy, &of_route("route", "route")).await;
                delete(&scene, Kind::Secret, AWAY, &secret).await;
            }
            6 => new_route(&scene, &judge, round).await,
            _ => {
                scene.controller.kill().await.unwrap();
                delete(&scene, Kind::Secret, AWAY, "gateway").await;
                scene.controller.start().await.unwrap();
                apply(&scene, Kind::Secret, &keys(AWAY, "gateway", "k1")).await;
            }
        }
        pause(round).await;
    }
    patch(&scene, Kind::Secret, (AWAY, "route"), &json!({"stringData": {"alice": "last"}})).await;
    comes_to(&scene, &with_key(ORDERS, "last"), 200).await;
    comes_to(&scene, &at(Door::Plain, ORDERS), 401).await;
    let seen = judge.stop().await;
    say(&format!("{TEST}: {rounds} rounds, {seen:?}"));
    assert_eq!(seen.wrong, Vec::<String>::new());
    assert!(seen.statuses.contains_key(&401) && seen.statuses.contains_key(&500), "{seen:?}");
    scene.stop().await;
}

/// A route that comes after its policy, of which no part is known to the controller before.
async fn new_route(scene: &Scene, judge: &Judge, round: usize) {
    let name = format!("new-{round}");
    apply(scene, Kind::Secret, &keys("default", &name, "k1")).await;
    let mut open =
        policy_of(&name, ("HTTPRoute", &name), &json!({"apiKeyAuth": {"credentialRefs": [{"name": name}]}}));
    // The Gateway asks for a key, too, so the policy of the route is the one that counts.
    open["metadata"]["name"] = json!(name);
    apply(scene, Kind::SecurityPolicy, &open).await;
    // The policy of the Gateway must not hide what becomes of the route.
    delete(scene, Kind::SecurityPolicy, "default", "web").await;
    sleep(Duration::from_millis(500)).await;
    let path = format!("/{name}");
    let watched = judge.watch_new(scene, &path);
    apply(scene, Kind::HttpRoute, &scene::route(&name, &path)).await;
    comes_to(scene, &with_key(&path, "k1"), 200).await;
    comes_to(scene, &at(Door::Plain, &path), 401).await;
    watched.stop().await;
    apply(scene, Kind::SecurityPolicy, &policy("web", ("Gateway", "web"), (AWAY, "gateway"))).await;
    delete(scene, Kind::HttpRoute, "default", &name).await;
    delete(scene, Kind::SecurityPolicy, "default", &name).await;
    delete(scene, Kind::Secret, "default", &name).await;
}

/// A pause of another length in each round, also none.
async fn pause(round: usize) {
    sleep(Duration::from_millis([0, 5, 40, 250][(round / 8) % 4])).await;
}
