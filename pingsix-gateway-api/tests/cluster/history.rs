//! A random history of a cluster ends in the state of its objects, with controllers killed meanwhile: equal to the
//! library's translation of a dump, including times, addresses and foreign entries, and to `pingsix-gatewayctl
//! translate`.

mod contents;
mod offline;

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use pingsix_gateway_api::controller::{ControllerOptions, PublishedAddresses};
use pingsix_gateway_api::leader::LeaseOptions;
use pingsix_sink::EmbeddedEtcd;
use pingsix_translate::status::Address;
use pingsix_translate::{Kind, ObjectKey, Options};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::test_env::expected_state::{Dump, ExpectedState, held};
use crate::test_env::{Running, TestEnv, WAIT_TIMEOUT, objects};
use contents::{KINDS, NAMESPACES, Pairs, object};
use offline::Offline;

/// The number of steps.
const STEPS: usize = 400;

fn options(identity: &str) -> ControllerOptions {
    let translation =
        Options { stream: true, responder: Some(([127, 0, 0, 1], 1).into()), ..Options::default() };
    let mut lease = LeaseOptions::new("default", &translation.controller_name, identity);
    lease.duration = Duration::from_secs(3);
    lease.renew_deadline = Duration::from_secs(2);
    lease.retry = Duration::from_millis(300);
    let mut options = ControllerOptions::new(translation, identity);
    options.addresses = PublishedAddresses::Fixed(addresses());
    options.lease = Some(lease);
    options
}

fn addresses() -> Vec<Address> {
    vec![Address::Ip([192, 0, 2, 1].into())]
}

/// Writer of the history.
struct HistoryWriter {
    client: Client,
    random: StdRng,
    pairs: Pairs,
    /// The number of applications and deletions of a kind, and of refused ones.
    done: BTreeMap<Kind, usize>,
    refused: usize,
    /// The status entries of other writers, by object and uid.
    foreign_entries: Vec<ForeignEntry>,
}

struct ForeignEntry {
    key: ObjectKey,
    uid: String,
    list: &'static str,
    entry: Value,
}

impl HistoryWriter {
    fn new(client: Client, seed: u64) -> Self {
        Self {
            client,
            random: StdRng::seed_from_u64(seed),
            pairs: Pairs::new(),
            done: BTreeMap::new(),
            refused: 0,
            foreign_entries: Vec::new(),
        }
    }

    fn api(&self, key: &ObjectKey) -> Api<DynamicObject> {
        objects(&self.client, key.kind, &key.name.namespace)
    }

    /// Makes one more step.
    async fn write(&mut self) {
        let kind = *KINDS.choose(&mut self.random).unwrap();
        let (key, content) = object(kind, &mut self.random, &self.pairs);
        let api = self.api(&key);
        let is_deletion = kind != Kind::Namespace && self.random.random_bool(0.2);
        let outcome = if is_deletion {
            api.delete(&key.name.name, &DeleteParams::default()).await.map(drop)
        } else {
            let params = PatchParams::apply("history").force();
            api.patch(&key.name.name, &params, &Patch::Apply(&content)).await.map(drop)
        };
        match outcome {
            Ok(()) => *self.done.entry(kind).or_default() += 1,
            // The absent objects, and the immutable fields.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 422) => self.refused += 1,
            Err(error) => panic!("{kind} {key}: {error}\n{content:#}"),
        }
        if self.random.random_bool(0.1) {
            self.write_foreign_entry().await;
        }
    }

    /// Writes a status entry as another controller.
    async fn write_foreign_entry(&mut self) {
        let kinds = [Kind::Gateway, Kind::HttpRoute, Kind::GrpcRoute, Kind::BackendTlsPolicy];
        let kind = *kinds.choose(&mut self.random).unwrap();
        let (key, _) = object(kind, &mut self.random, &self.pairs);
        let api = self.api(&key);
        let condition = json!({
            "type": "another.example/Seen", "status": "True", "reason": "Seen", "message": "Ä <&> \"quoted\"",
            "lastTransitionTime": "2020-02-02T02:02:02Z",
        });
        let reference = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "one"});
        let entry = |field: &str| json!({field: reference, "controllerName": "another.example/one", "conditions": [condition]});
        let (list, entry) = if kind == Kind::Gateway {
            ("conditions", condition)
        } else if kind == Kind::BackendTlsPolicy {
            ("ancestors", entry("ancestorRef"))
        } else {
            ("parents", entry("parentRef"))
        };
        for _ in 0..10 {
            let Some(mut found) = api.get_opt(&key.name.name).await.unwrap() else { return };
            let status = &mut found.data["status"];
            if !status.is_object() {
                *status = json!({});
            }
            if !status[list].is_array() {
                status[list] = json!([]);
            }
            let entries = status[list].as_array_mut().unwrap();
            if entries.contains(&entry) {
                return;
            }
            entries.push(entry.clone());
            let uid = found.metadata.uid.clone().unwrap();
            match api.replace_status(&key.name.name, &PostParams::default(), &found).await {
                Ok(_) => {
                    self.foreign_entries.push(ForeignEntry { key, uid, list, entry });
                    return;
                }
                // The controller, or another object of that name.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => panic!("{key}: {error}"),
            }
        }
        panic!("{key} is written all the time");
    }

    /// Foreign status entries that are lost. Whole entries in `parents` of routes must stay unchanged.
    fn lost(&self, dump: &Dump) -> Vec<String> {
        let mut lost = Vec::new();
        for ForeignEntry { key, uid, list, entry } in &self.foreign_entries {
            let Some(raw) = dump.raw.get(key).filter(|raw| raw["metadata"]["uid"] == **uid) else { continue };
            if !raw["status"][list].as_array().is_some_and(|entries| entries.contains(entry)) {
                lost.push(format!("{key} has lost what another controller wrote: {:#}", raw["status"]));
            }
        }
        lost
    }
}

/// The present errors of the cluster and the servers.
async fn errors(client: &Client, writer: &HistoryWriter, etcds: &[&EmbeddedEtcd]) -> Vec<String> {
    let dump = Dump::of(client).await;
    let expected_state = ExpectedState::of(&dump, &options("expected").translation, &addresses());
    let mut errors = writer.lost(&dump);
    for (replica, etcd) in etcds.iter().enumerate() {
        errors.extend(
            expected_state.wrong_documents(etcd).into_iter().map(|what| format!("replica {replica}: {what}")),
        );
    }
    errors.extend(expected_state.wrong_statuses(&dump));
    errors
}

async fn wait_until_settled(when: &str, client: &Client, writer: &HistoryWriter, etcds: &[&EmbeddedEtcd]) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        let errors = errors(client, writer, etcds).await;
        if errors.is_empty() {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{when}: {} are wrong, among them\n{}",
            errors.len(),
            errors[..errors.len().min(4)].join("\n")
        );
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_history_ends_in_the_state_of_its_objects() {
    let Some(test_env) = TestEnv::start().await else { return };
    let seed = std::env::var("HISTORY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(4);
    println!("HISTORY_SEED={seed}");
    let mut writer = HistoryWriter::new(test_env.cluster.admin(), seed);
    for namespace in NAMESPACES {
        test_env.cluster.namespace(namespace).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    // The tasks of a killed controller end a moment after it, and hold the file until then.
    let served = async || {
        let started = Instant::now();
        loop {
            let served = EmbeddedEtcd::builder().state_file(folder.path().join("revisions")).start().await;
            if served.is_ok() || started.elapsed() > WAIT_TIMEOUT {
                return served;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    // One controller runs throughout, and another starts first, leads, and is killed repeatedly.
    let mut etcd = served().await.unwrap();
    let mut killed = Running::start(test_env.cluster.admin(), &etcd, options("killed"));
    killed.wait_until_ready().await;
    let mut steady = Running::start(test_env.cluster.admin(), &test_env.etcd, options("steady"));
    steady.wait_until_ready().await;
    let mut publications = 0;

    let started = Instant::now();
    for operation in 0..STEPS {
        writer.write().await;
        if operation % 150 == 149 {
            killed.kill().await;
            publications += etcd.stats().publications;
            drop(etcd);
            etcd = served().await.unwrap();
            killed = Running::start(test_env.cluster.admin(), &etcd, options("killed"));
        }
    }
    println!("{:?} done, {} refused, in {:?}", writer.done, writer.refused, started.elapsed());
    let done: usize = writer.done.values().sum();
    assert!(done >= 300, "most is refused: {:?}, {} refused", writer.done, writer.refused);
    assert!(KINDS.iter().all(|kind| writer.done.contains_key(kind)), "{:?}", writer.done);

    killed.wait_until_ready().await;
    let client = test_env.cluster.admin();
    wait_until_settled("after the history", &client, &writer, &[&etcd, &test_env.etcd]).await;
    let dump = Dump::of(&client).await;
    let expected_state = ExpectedState::of(&dump, &options("expected").translation, &addresses());
    let held = |etcd: &EmbeddedEtcd| {
        let held = held(etcd).into_iter();
        held.filter(|(scope, _)| !expected_state.is_kept(scope.as_str())).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(held(&etcd), held(&test_env.etcd), "replicas differ");
    println!(
        "{:?} documents and verdicts, {} planted",
        expected_state.weight(),
        writer.foreign_entries.len()
    );
    assert!(
        expected_state.weight().0 > 3 && expected_state.weight().1 > 5 && writer.foreign_entries.len() > 5,
        "it came to nothing"
    );
    assert!(publications + etcd.stats().publications > 20);

    let offline = Offline::of(&dump, &options("offline").translation).await;
    offline.assert_served(held(&etcd));
    offline.assert_served(held(&test_env.etcd));
    offline.assert_statuses(&dump);

    // The state stays, and no writer writes again.
    let versions = dump.versions();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(Dump::of(&client).await.versions(), versions);
    killed.stop().await;
    steady.stop().await;
}
