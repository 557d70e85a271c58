//! Every watched kind: the effects of creation, change and deletion in documents and conditions.

mod life_cycles;

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::DeleteParams;
use pingsix_gateway_api::controller::{ControllerOptions, PublishedAddresses};
use pingsix_test_cluster::TestCluster;
use pingsix_translate::status::Address;
use pingsix_translate::{Kind, Options};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::test_env::expected_state::{Dump, ExpectedState, held};
use crate::test_env::{TestEnv, WAIT_TIMEOUT, conditions, eventually_async, fast_retries};
use life_cycles::{BASE, Effect, LifeCycle, life_cycle};

fn addresses() -> Vec<Address> {
    vec![Address::Ip([192, 0, 2, 1].into())]
}

fn options() -> ControllerOptions {
    let mut options = fast_retries();
    options.translation =
        Options { stream: true, responder: Some(([127, 0, 0, 1], 1).into()), ..Options::default() };
    options.addresses = PublishedAddresses::Fixed(addresses());
    options
}

/// The effects that are missing.
async fn missing_effects(test_env: &TestEnv, effects: &[Effect]) -> Vec<String> {
    let documents: Vec<Vec<u8>> =
        held(&test_env.etcd).into_values().flat_map(BTreeMap::into_values).collect();
    let is_served = |text: &str| documents.iter().any(|value| String::from_utf8_lossy(value).contains(text));
    let mut missing = Vec::new();
    for effect in effects {
        let is_seen = match effect {
            Effect::Served(text) => is_served(text),
            Effect::NotServed(text) => !is_served(text),
            Effect::HasCondition(kind, name, path, condition) => {
                let object = find(test_env, *kind, name).await;
                let found = conditions(&object["status"], path);
                let is_seen = found.contains(&(*condition).to_owned());
                if !is_seen {
                    missing.push(format!("{found:?}"));
                }
                is_seen
            }
            Effect::HasNoCondition(kind, name) => {
                let object = find(test_env, *kind, name).await;
                conditions(&object["status"], "").iter().all(|condition| condition.contains("=Unknown/"))
            }
            Effect::HasAddress(kind, name) => {
                let object = find(test_env, *kind, name).await;
                object["status"].to_string().contains("192.0.2.1")
            }
            Effect::HasNoEntry(kind, name) => {
                let object = find(test_env, *kind, name).await;
                !object["status"].to_string().contains("pingsix.io/gateway-controller")
            }
        };
        if !is_seen {
            missing.push(format!("{effect:?}"));
        }
    }
    missing
}

async fn find(test_env: &TestEnv, kind: Kind, name: &str) -> Value {
    let (namespace, name) = name.split_once('/').unwrap_or((namespace_of(kind), name));
    test_env.object(kind, namespace, name).await
}

fn namespace_of(kind: Kind) -> &'static str {
    if kind.is_namespaced() { "default" } else { "" }
}

/// Waits until all effects are visible and no others.
async fn wait_for_effects(test_env: &TestEnv, when: &str, effects: &[Effect]) {
    let (deadline, client) = (Instant::now() + WAIT_TIMEOUT, test_env.cluster.admin());
    loop {
        let mut wrong = missing_effects(test_env, effects).await;
        if wrong.is_empty() {
            let dump = Dump::of(&client).await;
            let expected_state = ExpectedState::of(&dump, &options().translation, &addresses());
            wrong = [expected_state.wrong_documents(&test_env.etcd), expected_state.wrong_statuses(&dump)]
                .concat();
        }
        if wrong.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{when}: {}", wrong.join("\n"));
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_kind_shows_when_it_is_created_changed_and_deleted() {
    // A deleted namespace with its content needs this controller.
    let builder = TestCluster::builder().controllers(["namespace-controller"]);
    let Some(cluster) = builder.start_or_skip().await else { return };
    let test_env = TestEnv::of(cluster).await;
    let running = test_env.ready(options()).await;
    for kind in Kind::ALL {
        test_env.apply(BASE).await;
        let LifeCycle { name, created, changed, deleted } = life_cycle(*kind);
        let find = async || test_env.objects(*kind, namespace_of(*kind)).get_opt(name).await.unwrap();
        assert!(find().await.is_none(), "{kind} {name} is there before it is created");
        test_env.apply(&created.0).await;
        wait_for_effects(&test_env, &format!("{kind} {name} is created"), &created.1).await;
        let uid = find().await.unwrap().metadata.uid;
        test_env.apply(&changed.0).await;
        assert_eq!(find().await.unwrap().metadata.uid, uid, "{kind} {name} is changed, not made anew");
        wait_for_effects(&test_env, &format!("{kind} {name} is changed"), &changed.1).await;
        let api = test_env.objects(*kind, namespace_of(*kind));
        api.delete(name, &DeleteParams::default()).await.unwrap();
        wait_for_effects(&test_env, &format!("{kind} {name} is deleted"), &deleted).await;
        // A namespace takes a while to go.
        eventually_async(&format!("the end of {kind} {name}"), async || find().await.is_none()).await;
    }
    running.stop().await;
}
