//! Attached routes: 1,000 routes come and go, until the status of the Gateway has their number.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::figures::Figures;
use crate::lab::Lab;
use crate::objects::{self, Shape};

/// The number of routes of the public benchmark.
const ROUTES: usize = 1_000;

/// The time limit of each direction.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

/// The figures of each controller of a lab, which all measure the same routes.
pub(crate) async fn measure_all(lab: &Lab) -> Vec<Figures> {
    let gateways = lab.gateways();
    let counts: Vec<Counts> = {
        let mut counts = Vec::new();
        for gateway in &gateways {
            counts.push(Counts::watch(lab.client(), gateway).await);
        }
        counts
    };
    let accepted = Accepted::watch(lab.client(), gateways.len()).await;
    for contender in lab.contenders() {
        contender.settle().await;
    }
    let mut before = Vec::new();
    for contender in lab.contenders() {
        before.push(contender.usage().await);
    }
    for count in &counts {
        count.forget();
    }

    let routes = || (0..ROUTES).map(|index| objects::route(&gateways, "default", index, Shape::Simple));
    let started = Instant::now();
    let created = objects::create_all(&lab.client(), routes()).await;
    let mut up = Vec::new();
    for count in &counts {
        up.push(count.reached(ROUTES).await);
    }
    let all_accepted = accepted.all(ROUTES).await;
    let up_writes: Vec<usize> = counts.iter().map(Counts::forget).collect();
    let deleted = objects::delete_all(&lab.client(), routes()).await;
    let mut figures = Vec::new();
    for (index, (contender, count)) in lab.contenders().iter().zip(&counts).enumerate() {
        let mut of = Figures::default();
        let down = count.reached(0).await;
        // A status may be written once more, as others delete theirs.
        sleep(Duration::from_secs(2)).await;
        of.time("first create to last create", created - started);
        of.time("last create to the count", up[index].saturating_duration_since(created));
        of.time("last delete to zero", down.saturating_duration_since(deleted));
        of.count("statuses of the Gateway, up", up_writes[index]);
        of.count("statuses of the Gateway, down", count.forget());
        if gateways.len() == 1 {
            of.time("last create to every route Accepted", all_accepted.saturating_duration_since(created));
        }
        let used = contender.usage().await.since(&before[index]);
        of.time("processor time of the controller", used.controller);
        of.time("processor time of the data plane", used.data_plane);
        let memory = contender.memory().await;
        of.bytes("RSS of the controller afterwards", memory.resident);
        of.bytes("peak RSS of the controller", memory.peak);
        figures.push(of);
    }
    figures
}

fn watch_api(client: Client, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", kind));
    Api::namespaced_with(client, "default", &resource)
}

/// Calls a function with each object that is added or modified, until the guard is dropped.
async fn watch(api: Api<DynamicObject>, mut on_object: impl FnMut(&Value) + Send + 'static) -> DropGuard {
    let version = api.list(&kube::api::ListParams::default().limit(1)).await.unwrap();
    let version = version.metadata.resource_version.unwrap();
    let mut events = api.watch(&WatchParams::default().timeout(290), &version).await.unwrap().boxed();
    let stop = CancellationToken::new();
    tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
        while let Some(Ok(event)) = events.next().await {
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                on_object(&serde_json::to_value(object).unwrap());
            }
        }
    }));
    stop.drop_guard()
}

/// The history of `attachedRoutes` of a Gateway.
struct Counts {
    /// The times of statuses with their counts, without successive statuses of the same content.
    history: Arc<Mutex<Vec<(Instant, u64)>>>,
    _watch: DropGuard,
}

impl Counts {
    async fn watch(client: Client, gateway: &str) -> Self {
        let history: Arc<Mutex<Vec<(Instant, u64)>>> = Arc::default();
        let (seen, gateway) = (history.clone(), gateway.to_owned());
        let mut last = Value::Null;
        let watch = watch(watch_api(client, "Gateway"), move |object| {
            if object["metadata"]["name"] == gateway.as_str() && object["status"] != last {
                last = object["status"].clone();
                let count = last["listeners"][0]["attachedRoutes"].as_u64().unwrap_or_default();
                seen.lock().push((Instant::now(), count));
            }
        })
        .await;
        Self { history, _watch: watch }
    }

    /// Forgets the history but for its last entry, and returns the number of statuses in it.
    fn forget(&self) -> usize {
        let mut history = self.history.lock();
        let count = history.len();
        let last = history.pop();
        history.clear();
        history.extend(last);
        count.saturating_sub(1)
    }

    /// When the last status had this count.
    async fn reached(&self, wanted: usize) -> Instant {
        let started = Instant::now();
        loop {
            if let Some((at, count)) = self.history.lock().last()
                && *count == wanted as u64
            {
                return *at;
            }
            assert!(started.elapsed() < WAIT_TIMEOUT, "{:?} instead of {wanted}", self.history.lock().last());
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The routes that each controller has accepted.
struct Accepted {
    names: Arc<Mutex<(Option<Instant>, BTreeSet<String>)>>,
    _watch: DropGuard,
}

impl Accepted {
    async fn watch(client: Client, controllers: usize) -> Self {
        let names: Arc<Mutex<(Option<Instant>, BTreeSet<String>)>> = Arc::default();
        let seen = names.clone();
        let watch = watch(watch_api(client, "HTTPRoute"), move |object| {
            let parents = object["status"]["parents"].as_array();
            let is_accepted = |parent: &&Value| {
                parent["conditions"].as_array().is_some_and(|conditions| {
                    conditions
                        .iter()
                        .any(|condition| condition["type"] == "Accepted" && condition["status"] == "True")
                })
            };
            if parents.is_some_and(|parents| parents.iter().filter(is_accepted).count() >= controllers) {
                let mut seen = seen.lock();
                if seen.1.insert(object["metadata"]["name"].to_string()) {
                    seen.0 = Some(Instant::now());
                }
            }
        })
        .await;
        Self { names, _watch: watch }
    }

    /// When the last of so many routes was accepted.
    async fn all(&self, wanted: usize) -> Instant {
        let started = Instant::now();
        loop {
            {
                let names = self.names.lock();
                if names.1.len() >= wanted {
                    return names.0.unwrap();
                }
            }
            assert!(
                started.elapsed() < WAIT_TIMEOUT,
                "{} of {wanted} are accepted",
                self.names.lock().1.len()
            );
            sleep(Duration::from_millis(5)).await;
        }
    }
}
