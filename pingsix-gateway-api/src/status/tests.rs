//! The writers with a simulated API server, and stores that lag behind the server as the test demands.

mod events;
mod schedule;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube_runtime::watcher;
use pingsix_translate::snapshot::{BackendTlsPolicy, Gateway, GatewayClass, HttpRoute, Ingress, Service};
use pingsix_translate::status::{
    Address, Ancestor, Condition, ConditionStatus, ConditionType, Conditions, GatewayVerdict,
    ListenerVerdict, ParentVerdict, PolicyVerdict, Reason, RouteVerdict,
};
use pingsix_translate::{Kind, Layout, ObjectKey, ParentRef};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::fixture::api_server::{ApiServer, Fate, RecordedRequest};
use crate::fixture::generate::merge;
use crate::leader::Leadership;
use crate::watch::{Watched, WatchedKind};
use crate::world::{Effects, Event, Stored, World};

const OURS: &str = "example.com/ours";
const THEIRS: &str = "example.com/theirs";
const CART: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/cart";
const WEB: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/infra/gateways/web";

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A cluster, its world, and a writer.
struct Rig {
    api: ApiServer,
    world: World,
    readers: Readers,
    board: StatusBoard,
    writer: StatusWriter,
    lead: watch::Sender<Option<Instant>>,
    stop: CancellationToken,
    /// The objects in the store, by path.
    known: BTreeMap<String, Value>,
    /// The version of the server that the store has reached.
    version: u64,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Rig {
    /// A rig with a writer that leads.
    fn new() -> Self {
        let rig = Self::following();
        rig.lead();
        rig
    }

    /// A rig with a writer that follows.
    fn following() -> Self {
        let rig = Self::without_writer();
        tokio::spawn(rig.stop.clone().run_until_cancelled_owned(rig.writer.clone().run(rig.leadership())));
        rig
    }

    /// A rig without a running writer.
    fn without_writer() -> Self {
        let api = ApiServer::default();
        let world = World::default();
        let readers = Readers::of(&world);
        let board = StatusBoard::default();
        let writer =
            StatusWriter::new(api.client(), readers.clone(), board.clone(), WriterOptions::new(OURS));
        let (lead, stop) = (watch::Sender::new(None), CancellationToken::new());
        Self { api, world, readers, board, writer, lead, stop, known: BTreeMap::new(), version: 0 }
    }

    fn leadership(&self) -> Leadership {
        Leadership::of(self.lead.subscribe())
    }

    fn lead(&self) {
        self.lead.send_replace(Some(Instant::now() + secs(1_000_000)));
    }

    fn follow(&self) {
        self.lead.send_replace(None);
    }

    /// Stores an object at the server and in the world.
    fn put(&mut self, path: &str, object: Value) {
        self.api.put(path, object);
        self.watch();
    }

    /// Updates the world to the state of the server, and the board with its effects.
    fn watch(&mut self) {
        let version = self.api.version();
        if std::mem::replace(&mut self.version, version) == version {
            return;
        }
        let mut effects = Effects::default();
        let paths = self.api.paths();
        let gone: Vec<String> = self.known.keys().filter(|path| !paths.contains(path)).cloned().collect();
        for path in gone {
            let object = self.known.remove(&path).unwrap();
            merge(&mut effects, self.world.apply(event(&path, object, true)));
        }
        for path in paths {
            let object = self.api.get(&path).unwrap();
            if path.contains("/events/") || self.known.get(&path) == Some(&object) {
                continue;
            }
            self.known.insert(path.clone(), object.clone());
            merge(&mut effects, self.world.apply(event(&path, object, false)));
        }
        for key in &effects.touched {
            self.board.touched(key);
        }
        for key in &effects.removed {
            self.board.removed(key);
        }
    }

    /// Advances the time and updates the world: every few milliseconds, or less often for long times.
    async fn run(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            sleep(ms(5).max(time / 2000)).await;
            self.watch();
        }
    }

    fn status(&self, path: &str) -> Value {
        self.api.get(path).unwrap()["status"].take()
    }

    fn writes(&self, path: &str) -> usize {
        self.api.writes(path).len()
    }
}

/// An event of the kind of a path.
fn event(path: &str, object: Value, is_gone: bool) -> Event {
    fn of<K: WatchedKind + Stored>(object: Value, is_gone: bool) -> Event
    where
        Event: From<watcher::Event<Watched<K>>>,
    {
        let object: Watched<K> = serde_json::from_value(object).unwrap();
        Event::from(if is_gone { watcher::Event::Delete(object) } else { watcher::Event::Apply(object) })
    }
    match path.rsplit('/').nth(1).unwrap() {
        "httproutes" => of::<HttpRoute>(object, is_gone),
        "gateways" => of::<Gateway>(object, is_gone),
        "gatewayclasses" => of::<GatewayClass>(object, is_gone),
        "backendtlspolicies" => of::<BackendTlsPolicy>(object, is_gone),
        "ingresses" => of::<Ingress>(object, is_gone),
        "services" => of::<Service>(object, is_gone),
        other => unreachable!("{other}"),
    }
}

fn route_key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::HttpRoute, "shop", name)
}

fn web() -> ObjectKey {
    ObjectKey::new(Kind::Gateway, "infra", "web")
}

fn route_path(name: &str) -> String {
    CART.replace("cart", name)
}

fn route(name: &str, generation: i64) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "generation": generation,
            "labels": {"kept": "yes"}},
        "spec": {"parentRefs": [{"name": "web"}]},
    })
}

fn gateway(class: &str, generation: i64) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "infra", "uid": "uid-web", "generation": generation},
        "spec": {"gatewayClassName": class, "listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}]},
    })
}

fn accepted(message: &str, generation: i64) -> Conditions {
    Conditions::from(Condition {
        kind: ConditionType::Accepted,
        status: ConditionStatus::True,
        reason: Reason::Accepted,
        message: message.to_owned(),
        observed_generation: generation,
    })
}

fn parent_ref(name: &str) -> ParentRef {
    ParentRef {
        index: 0,
        group: None,
        kind: None,
        namespace: None,
        name: name.to_owned(),
        section_name: None,
        port: None,
    }
}

/// A verdict on a route, identified by its message.
fn judged(name: &str, message: &str, generation: i64) -> Wanted {
    Wanted::Route(RouteVerdict {
        key: Arc::new(route_key(name)),
        generation,
        parents: Arc::new([ParentVerdict {
            parent_ref: parent_ref("web"),
            conditions: accepted(message, generation),
        }]),
    })
}

fn gateway_verdict(attached: i32, generation: i64) -> GatewayVerdict {
    GatewayVerdict {
        key: Arc::new(web()),
        generation,
        layout: Layout::Shared,
        conditions: accepted("A sentence.", generation),
        obstacle: None,
        listeners: vec![ListenerVerdict {
            name: "a".to_owned(),
            port: 80,
            protocol: "HTTP".to_owned(),
            hostname: None,
            supported_kinds: Vec::new(),
            attached_routes: attached,
            conditions: accepted("A sentence.", generation),
            keeps_hosts: true,
            data_plane: None,
            front: None,
        }],
        attached_listener_sets: 0,
    }
}

fn judged_gateway(attached: i32) -> Wanted {
    Wanted::Gateway { verdict: Box::new(gateway_verdict(attached, 1)), addresses: None }
}

/// The message of our entry of a route.
fn message(status: &Value) -> Option<String> {
    let entries = status["parents"].as_array().into_iter().flatten();
    let ours: Vec<&Value> = entries.filter(|entry| entry["controllerName"] == OURS).collect();
    assert!(ours.len() <= 1);
    Some(ours.first()?["conditions"][0]["message"].as_str()?.to_owned())
}

/// An entry of another controller, with fields that our types lack.
fn foreign_entry(say: &str) -> Value {
    json!({
        "parentRef": {"name": "web", "odd": [1, {"a": null}]}, "controllerName": THEIRS,
        "conditions": [{"type": "Accepted", "status": "Perhaps", "message": say, "zzz": 0.5}],
    })
}
