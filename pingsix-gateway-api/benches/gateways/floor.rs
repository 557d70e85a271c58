//! The floors beside the figures: what the API server alone takes, and what PingSIX alone takes.

use std::time::Instant;

use bytes::Bytes;
use futures::StreamExt as _;
use kube::Client as KubeClient;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use pingsix_test_cluster::TestCluster;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::{PutRequest, RangeRequest};
use pingsix_test_programs::proto::mvccpb::KeyValue;
use pingsix_test_programs::{Etcd, free_address, pingsix_config};
use tonic::transport::Channel;

use crate::client::wait_for_publication;
use crate::description::{Ours, PREFIX};
use crate::lab::CORE;
use crate::objects::{self, Shape};
use crate::samples::Samples;

/// The number of changes.
const CHANGES: usize = 20;

/// From the answer of the API server to the event at a client that decodes nothing else.
pub(crate) async fn watch_of_the_api_server(client: &KubeClient, gateways: &[String]) -> Samples {
    let resource =
        ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "HTTPRoute"));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut events = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    let (arrived, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(event)) = events.next().await {
            if let WatchEvent::Added(object) = event
                && arrived.send((object.metadata.name.unwrap_or_default(), Instant::now())).is_err()
            {
                break;
            }
        }
    });
    let mut samples = Samples::default();
    let routes = || (0..CHANGES).map(|index| objects::route(gateways, "default", index, Shape::Simple));
    for route in routes() {
        let name = route["metadata"]["name"].as_str().unwrap().to_owned();
        let created = objects::create(client, route).await;
        loop {
            let (arrived, at) = arrivals.recv().await.expect("the watch goes on");
            if arrived == name {
                // The event may come before the answer.
                samples.push(at.saturating_duration_since(created));
                break;
            }
        }
    }
    objects::delete_all(client, routes()).await;
    samples
}

/// The time in which a PingSIX that reads the same documents from a real etcd publishes a change of one of them.
pub(crate) async fn apply_from_etcd(ours: Ours, cluster: &TestCluster) -> Samples {
    let mut samples = Samples::default();
    let (Some(etcd), Some(pingsix)) = (Etcd::start().await, pingsix_test_programs::pingsix()) else {
        return samples;
    };
    let connect = async |address| {
        let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
        KvClient::new(channel).max_decoding_message_size(64 << 20)
    };
    let all = RangeRequest {
        key: Bytes::from(format!("{PREFIX}/")),
        range_end: Bytes::from(format!("{PREFIX}0")),
        ..RangeRequest::default()
    };
    let documents = connect(ours.feed).await.range(all).await.unwrap().into_inner().kvs;
    let mut store = connect(etcd.address()).await;
    for document in &documents {
        store.put(put(document)).await.unwrap();
    }
    let [address, status] = [free_address(), free_address()];
    let folder = tempfile::tempdir().unwrap();
    let config = pingsix_config(folder.path(), address, (&etcd.url(), PREFIX), status);
    let core = CORE.to_string();
    let command = ["/usr/bin/env".as_ref(), "RUST_LOG=warn".as_ref(), "taskset".as_ref(), "-c".as_ref()]
        .into_iter()
        .chain([core.as_ref(), pingsix.as_os_str(), "-c".as_ref(), config.as_os_str()]);
    let process = cluster.run("pingsix-of-etcd", command.map(ToOwned::to_owned).collect()).await.unwrap();
    let routes = documents.iter().filter(|document| document.key.windows(8).any(|part| part == b"/routes/"));
    for document in routes.take(CHANGES + 1) {
        let revision = store.put(put(document)).await.unwrap().into_inner().header.unwrap().revision;
        let answered = Instant::now();
        samples.push(wait_for_publication(status, revision).await - answered);
    }
    process.kill().await.unwrap();
    samples
}

/// The request that stores a document as it is.
fn put(document: &KeyValue) -> PutRequest {
    PutRequest { key: document.key.clone(), value: document.value.clone(), ..PutRequest::default() }
}
