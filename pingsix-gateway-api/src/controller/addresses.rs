//! The addresses of data planes in statuses.

use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use kube_runtime::watcher::DefaultBackoff;
use pingsix_translate::ObjectName;
use pingsix_translate::status::Address;
use tokio::sync::watch;

use super::tasks::Tasks;
use crate::provision::addresses_of_service;
use crate::wait;

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

/// Follows the addresses. `None` while the addresses are unknown.
pub(super) fn start(
    client: &Client,
    addresses: &PublishedAddresses,
    tasks: &mut Tasks,
) -> watch::Receiver<Option<Vec<Address>>> {
    let (fixed, service) = match addresses {
        PublishedAddresses::None => (None, None),
        PublishedAddresses::Fixed(addresses) => (Some(addresses.clone()), None),
        PublishedAddresses::Service(name) => (None, Some(name.clone())),
    };
    let (known, receiver) = watch::channel(fixed);
    let client = client.clone();
    tasks.spawn(async move {
        match service {
            Some(service) => follow(client, service, known).await,
            // The channel stays open, because its end would look like a change.
            None => known.closed().await,
        }
    });
    receiver
}

async fn follow(client: Client, name: ObjectName, known: watch::Sender<Option<Vec<Address>>>) {
    let api: Api<Service> = Api::namespaced(client, &name.namespace);
    let mut was_missing = false;
    let message = "the addresses of the Service cannot be published";
    let see = |service: Option<Service>| {
        let is_missing = service.is_none();
        if is_missing && !std::mem::replace(&mut was_missing, is_missing) {
            tracing::warn!(service = %name, "the addresses of the Service cannot be published: it does not exist");
        }
        was_missing = is_missing;
        wait::set(&known, Some(service.as_ref().map(addresses_of_service).unwrap_or_default()));
    };
    // While it cannot be watched, the last known addresses stay.
    wait::follow((api, &name.name), DefaultBackoff::default(), message, see).await;
}
