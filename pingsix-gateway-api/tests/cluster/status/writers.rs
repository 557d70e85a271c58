//! A cluster, our picture of it, and the writers.

use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use kube_runtime::watcher;
use pingsix_gateway_api::leader::Leadership;
use pingsix_gateway_api::status::{
    EventBoard, EventOptions, EventWriter, Readers, StatusBoard, StatusWriter, WriterOptions,
};
use pingsix_gateway_api::watch::{DecodedObject, Watched, WatchedKind};
use pingsix_gateway_api::world::{Event, Stored, World};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) const CONTROLLER_NAME: &str = "example.com/ours";

/// A client, our picture of its cluster, and those who write there.
pub(crate) struct Writers {
    pub(crate) client: Client,
    pub(crate) world: World,
    pub(crate) board: StatusBoard,
    pub(crate) events: EventBoard,
    pub(crate) status: StatusWriter,
    stop: CancellationToken,
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Writers {
    pub(crate) fn new(client: Client) -> Self {
        Self::with_events(client, EventOptions::new(CONTROLLER_NAME, "pod-1"))
    }

    pub(crate) fn with_events(client: Client, options: EventOptions) -> Self {
        let (world, board, events) = (World::default(), StatusBoard::default(), EventBoard::default());
        let (readers, stop) = (Readers::of(&world), CancellationToken::new());
        let status = StatusWriter::new(
            client.clone(),
            readers.clone(),
            board.clone(),
            WriterOptions::new(CONTROLLER_NAME),
        );
        let writing = status.clone().run(Leadership::always());
        tokio::spawn(stop.clone().run_until_cancelled_owned(writing));
        let teller = EventWriter::new(client.clone(), readers, events.clone(), options);
        let telling = teller.run(Leadership::always());
        tokio::spawn(stop.clone().run_until_cancelled_owned(telling));
        Self { client, world, board, events, status, stop }
    }

    /// Reads an object anew, as a watch would bring it.
    pub(crate) async fn see<K: WatchedKind + Stored>(&mut self, api: Api<DecodedObject<K>>, name: &str)
    where
        Event: From<watcher::Event<Watched<K>>>,
    {
        let object = api.get(name).await.unwrap();
        for key in self.world.apply(watcher::Event::Apply(object.into_watched()).into()).touched {
            self.board.touched(&key);
        }
    }
}

/// `default` has everything that has a namespace.
pub(crate) fn namespaced<K: WatchedKind>(client: &Client) -> Api<DecodedObject<K>> {
    Api::namespaced_with(client.clone(), "default", &())
}

/// Writes a part of a status as another controller would.
pub(crate) async fn write_status<K: WatchedKind>(api: &Api<DecodedObject<K>>, name: &str, status: Value) {
    let patch = Patch::Merge(json!({ "status": status }));
    api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}
