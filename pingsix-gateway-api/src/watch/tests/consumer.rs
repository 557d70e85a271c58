//! A consumer of watches, in place of the controller.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::snapshot::FromObject;
use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::fixture::api_server::ApiServer;
use crate::watch::{Answer, Availability, Input, WatchOptions, Watches};
use crate::world::{Stored, World};

/// A consumer of watches, which applies their inputs to a world.
pub(super) struct Consumer {
    pub(super) watches: Watches,
    pub(super) inputs: mpsc::Receiver<Input>,
    pub(super) stop: CancellationToken,
    pub(super) world: World,
    pub(super) availability: BTreeMap<Kind, Availability>,
    pub(super) answers: BTreeMap<ObjectKey, Answer>,
    /// All inputs, as text.
    pub(super) log: Vec<String>,
}

impl Consumer {
    pub(super) fn of(server: &ApiServer, options: WatchOptions) -> Self {
        Self::with_client(server.client(), options, CancellationToken::new())
    }

    pub(super) fn with_client(client: Client, options: WatchOptions, stop: CancellationToken) -> Self {
        let (watches, inputs) = Watches::start(client, options, &stop);
        Self {
            watches,
            inputs,
            stop,
            world: World::default(),
            availability: BTreeMap::new(),
            answers: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    /// Applies inputs until a condition holds, with a timeout.
    pub(super) async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_mins(10);
        while !holds(self) {
            let Ok(input) = tokio::time::timeout_at(deadline, self.inputs.recv()).await else {
                panic!("not within ten minutes: {what}\n{}", self.log.join("\n"));
            };
            self.apply(input.unwrap_or_else(|| panic!("the watches ended before {what}")));
        }
    }

    /// Applies the inputs of a period.
    pub(super) async fn during(&mut self, time: Duration) {
        let deadline = tokio::time::Instant::now() + time;
        while let Ok(Some(input)) = tokio::time::timeout_at(deadline, self.inputs.recv()).await {
            self.apply(input);
        }
    }

    /// Applies inputs until every kind but Secrets and ConfigMaps is complete.
    pub(super) async fn complete(&mut self) {
        self.until("everything is known", |consumer| {
            let mut kinds = Kind::ALL.iter().filter(|kind| !matches!(kind, Kind::Secret | Kind::ConfigMap));
            kinds.all(|kind| consumer.world.is_complete(*kind))
        })
        .await;
    }

    pub(super) fn apply(&mut self, input: Input) {
        self.log.push(format!("{input:?}"));
        match input {
            Input::Event(event) => drop(self.world.apply(event)),
            Input::Gone(key) => drop(self.world.remove(&key)),
            Input::Released(key) => {
                self.world.remove(&key);
                self.answers.remove(&key);
            }
            Input::Answered { key, answer } => drop(self.answers.insert(key, answer)),
            Input::Availability { kind, availability } => drop(self.availability.insert(kind, availability)),
        }
    }

    pub(super) fn has(&self, kind: Kind, namespace: &str, name: &str) -> bool {
        self.world.contains(&ObjectKey::new(kind, namespace, name))
    }

    pub(super) fn get<K: Stored + FromObject>(&self, namespace: &str, name: &str) -> std::sync::Arc<K> {
        self.world.get(&ObjectName::new(namespace, name)).unwrap()
    }

    pub(super) fn is_watching(&self, kind: Kind) -> bool {
        self.availability.get(&kind) == Some(&Availability::Watching)
    }

    /// The number of inputs that contain a text.
    pub(super) fn count_logged(&self, text: &str) -> usize {
        self.log.iter().filter(|line| line.contains(text)).count()
    }
}

/// An object with a name and nothing else.
pub(super) fn named(namespace: &str, name: &str) -> Value {
    match namespace {
        "" => json!({"metadata": {"name": name}}),
        _ => json!({"metadata": {"namespace": namespace, "name": name}}),
    }
}

/// A route.
pub(super) fn route(namespace: &str, name: &str) -> Value {
    let mut route = named(namespace, name);
    route["spec"] = json!({"hostnames": [format!("{name}.example")]});
    route
}
