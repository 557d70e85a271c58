//! The addresses of data planes in statuses.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use kube_runtime::{WatchStreamExt as _, watcher};
use pingsix_translate::ObjectName;
use pingsix_translate::status::Address;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;
use crate::provision::addresses_of_service;

/// The addresses at which clients reach data planes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishedAddresses {
    /// The controller writes no addresses into statuses.
    #[default]
    None,
    /// Fixed addresses.
    Fixed(Vec<Address>),
    /// The addresses of a Service.
    Service(ObjectName),
}

/// Follows the addresses until it is stopped. `None` while the addresses are unknown.
pub(super) fn start(
    client: &Client,
    addresses: &PublishedAddresses,
    stop: &CancellationToken,
) -> (impl Future<Output = ()> + Send + use<>, watch::Receiver<Option<Vec<Address>>>) {
    let (known, receiver) = watch::channel(match addresses {
        PublishedAddresses::Fixed(addresses) => Some(addresses.clone()),
        PublishedAddresses::None | PublishedAddresses::Service(_) => None,
    });
    let service = match addresses {
        PublishedAddresses::Service(name) => Some(name.clone()),
        PublishedAddresses::None | PublishedAddresses::Fixed(_) => None,
    };
    let (client, stop) = (client.clone(), stop.clone());
    let follow = async move {
        match service {
            Some(service) => {
                stop.run_until_cancelled(follow(client, service, known)).await;
            }
            // The channel stays open, because its end would look like a change.
            None => stop.cancelled().await,
        }
    };
    (follow, receiver)
}

async fn follow(client: Client, name: ObjectName, known: watch::Sender<Option<Vec<Address>>>) {
    let api: Api<Service> = Api::namespaced(client, &name.namespace);
    let mut versions = std::pin::pin!(watcher::watch_object(api, &name.name).default_backoff());
    // The last complaint: a lasting error is logged once.
    let mut complaint = None;
    while let Some(version) = versions.next().await {
        let error = match &version {
            Ok(Some(_)) => None,
            Ok(None) => Some("it does not exist".to_owned()),
            Err(error) => Some(ApiError::from(error).to_string()),
        };
        if complaint != error
            && let Some(error) = &error
        {
            tracing::warn!(service = %name, error, "the addresses of the Service cannot be published");
        }
        complaint = error;
        // While it cannot be watched, the last known addresses stay.
        if let Ok(service) = version {
            let addresses = service.as_ref().map(addresses_of_service).unwrap_or_default();
            known.send_if_modified(|known| {
                let is_other = known.as_ref() != Some(&addresses);
                *known = Some(addresses);
                is_other
            });
        }
    }
}
