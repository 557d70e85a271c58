//! Functions that several tests share.

use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

/// The time limit of an effect.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// Waits until a condition holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, look: impl Fn() -> F) {
    let started = Instant::now();
    while !look().await {
        assert!(started.elapsed() < WAIT_TIMEOUT, "not within {}s: {what}", WAIT_TIMEOUT.as_secs());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a process of this id exists.
pub(crate) fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

pub(crate) fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

/// Makes an object that is easily recognised.
pub(crate) async fn make(client: &Client, name: &str) -> kube::Result<ConfigMap> {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    config_maps(client).create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await
}

pub(crate) async fn names(client: &Client) -> kube::Result<Vec<String>> {
    let found = config_maps(client).list(&kube::api::ListParams::default()).await?;
    Ok(found.items.into_iter().filter_map(|object| object.metadata.name).collect())
}

/// The code with which the API server refused, if it did.
pub(crate) fn code<T>(answer: &kube::Result<T>) -> Option<u16> {
    match answer {
        Err(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}
