//! The versions of the installed Gateway API CRDs.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, ResourceExt as _};
use kube_runtime::{WatchStreamExt as _, watcher};
use pingsix_translate::GATEWAY_GROUP;
use tokio::sync::watch;

use super::tasks::Tasks;
use crate::api_error::ApiError;

/// The annotation of a Gateway API CRD with its release.
const VERSION_ANNOTATION: &str = "gateway.networking.k8s.io/bundle-version";

/// The name of every Gateway API CRD, with its version; `None` without permission to read them.
pub(super) type Bundles = Option<BTreeMap<String, Option<String>>>;

/// Follows the metadata of the CRDs. Schemas are large and unused.
pub(super) fn start(client: Client, tasks: &mut Tasks) -> watch::Receiver<Bundles> {
    let (known, receiver) = watch::channel(None);
    tasks.spawn(follow(client, known));
    receiver
}

async fn follow(client: Client, known: watch::Sender<Bundles>) {
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
    let mut listing = BTreeMap::new();
    // The last complaint: a lasting error is logged once.
    let mut complaint = None;
    while let Some(event) = events.next().await {
        let error = event.as_ref().err().map(|error| ApiError::from(error).to_string());
        if complaint != error
            && let Some(error) = &error
        {
            tracing::warn!(error, "the CRDs cannot be watched; the versions of Gateway API are not known");
        }
        complaint = error;
        match event {
            Ok(watcher::Event::Init) => listing = BTreeMap::new(),
            Ok(watcher::Event::InitApply(crd)) => {
                listing.extend(version(&crd));
            }
            Ok(watcher::Event::InitDone) => {
                let listed = std::mem::take(&mut listing);
                update(&known, |bundles| *bundles = listed);
            }
            Ok(watcher::Event::Apply(crd)) => update(&known, |bundles| bundles.extend(version(&crd))),
            Ok(watcher::Event::Delete(crd)) => update(&known, |bundles| {
                bundles.remove(&crd.name_any());
            }),
            Err(_) => {}
        }
    }
}

fn update(known: &watch::Sender<Bundles>, change: impl FnOnce(&mut BTreeMap<String, Option<String>>)) {
    known.send_if_modified(|bundles| {
        let before = bundles.clone();
        change(bundles.get_or_insert_default());
        *bundles != before
    });
}

/// The name and version of a CRD of Gateway API.
fn version(crd: &PartialObjectMeta<CustomResourceDefinition>) -> Option<(String, Option<String>)> {
    let name = crd.name_any();
    name.split_once('.').is_some_and(|(_, group)| group == GATEWAY_GROUP).then(|| {
        let version = crd.annotations().get(VERSION_ANNOTATION).cloned();
        (name, version)
    })
}
