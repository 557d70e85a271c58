//! Every watched kind: the effects of creation, change and deletion in documents and conditions.

mod stories;

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::DeleteParams;
use pingsix_gateway_api::controller::{ControllerOptions, PublishedAddresses};
use pingsix_test_cluster::TestCluster;
use pingsix_translate::status::Address;
use pingsix_translate::{Kind, Options};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::lab::truth::{Dump, Truth, held};
use crate::lab::{Lab, PATIENCE, conditions, eventually_found, hasty};
use stories::{BASE, Sight, Story, story};

fn addresses() -> Vec<Address> {
    vec![Address::Ip([192, 0, 2, 1].into())]
}

fn options() -> ControllerOptions {
    let mut options = hasty();
    options.translation =
        Options { stream: true, responder: Some(([127, 0, 0, 1], 1).into()), ..Options::default() };
    options.addresses = PublishedAddresses::Fixed(addresses());
    options
}

/// The effects that are missing.
async fn missed(lab: &Lab, sights: &[Sight]) -> Vec<String> {
    let documents: Vec<Vec<u8>> = held(&lab.etcd).into_values().flat_map(BTreeMap::into_values).collect();
    let is_served = |text: &str| documents.iter().any(|value| String::from_utf8_lossy(value).contains(text));
    let mut missed = Vec::new();
    for sight in sights {
        let is_seen = match sight {
            Sight::Served(text) => is_served(text),
            Sight::NotServed(text) => !is_served(text),
            Sight::Says(kind, name, path, condition) => {
                let object = find(lab, *kind, name).await;
                let found = conditions(&object["status"], path);
                let is_seen = found.contains(&(*condition).to_owned());
                if !is_seen {
                    missed.push(format!("{found:?}"));
                }
                is_seen
            }
            Sight::SaysNothing(kind, name) => {
                let object = find(lab, *kind, name).await;
                conditions(&object["status"], "").iter().all(|said| said.contains("=Unknown/"))
            }
            Sight::HasAddress(kind, name) => {
                let object = find(lab, *kind, name).await;
                object["status"].to_string().contains("192.0.2.1")
            }
            Sight::HasNoEntry(kind, name) => {
                let object = find(lab, *kind, name).await;
                !object["status"].to_string().contains("pingsix.io/gateway-controller")
            }
        };
        if !is_seen {
            missed.push(format!("{sight:?}"));
        }
    }
    missed
}

async fn find(lab: &Lab, kind: Kind, name: &str) -> Value {
    let (namespace, name) = name.split_once('/').unwrap_or((namespace_of(kind), name));
    lab.object(kind, namespace, name).await
}

fn namespace_of(kind: Kind) -> &'static str {
    if kind.is_namespaced() { "default" } else { "" }
}

/// Waits until all effects are visible and no others.
async fn sees(lab: &Lab, when: &str, sights: &[Sight]) {
    let (deadline, client) = (Instant::now() + PATIENCE, lab.cluster.admin());
    loop {
        let mut wrong = missed(lab, sights).await;
        if wrong.is_empty() {
            let dump = Dump::of(&client).await;
            let truth = Truth::of(&dump, &options().translation, &addresses());
            wrong = [truth.unserved(&lab.etcd), truth.unsaid(&dump)].concat();
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
    let lab = Lab::of(cluster).await;
    let running = lab.ready(options()).await;
    for kind in Kind::ALL {
        lab.apply(BASE).await;
        let Story { name, created, changed, deleted } = story(*kind);
        let find = async || lab.objects(*kind, namespace_of(*kind)).get_opt(name).await.unwrap();
        assert!(find().await.is_none(), "{kind} {name} is there before it is created");
        lab.apply(&created.0).await;
        sees(&lab, &format!("{kind} {name} is created"), &created.1).await;
        let uid = find().await.unwrap().metadata.uid;
        lab.apply(&changed.0).await;
        assert_eq!(find().await.unwrap().metadata.uid, uid, "{kind} {name} is changed, not made anew");
        sees(&lab, &format!("{kind} {name} is changed"), &changed.1).await;
        let api = lab.objects(*kind, namespace_of(*kind));
        api.delete(name, &DeleteParams::default()).await.unwrap();
        sees(&lab, &format!("{kind} {name} is deleted"), &deleted).await;
        // A namespace takes a while to go.
        eventually_found(&format!("the end of {kind} {name}"), async || find().await.is_none()).await;
    }
    running.stop().await;
}
