//! Data planes that the controller runs: the parts that do so.

use std::sync::Arc;

use kube::Client;
use pingsix_translate::ObjectName;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ControllerOptions;
use super::engine::Provisioning;
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::pki::FeedAuthority;
use crate::provision::{Installation, Parts, Provisioner, Standings, Wanted, shared_key};
use crate::status::EventBoard;

/// How data planes are run that are to be managed. Where the feed has TLS, they get their certificates from the
/// [authority](ControllerOptions::feed_authority) that the controller keeps.
#[derive(Clone, Debug)]
pub struct ProvisioningOptions {
    /// What is the same for all of them. Its controller name and its root have to be those of the translation.
    pub installation: Installation,
    /// The Secret with the key of status pages, which is made when it is not there: in the namespace of the controller.
    pub key: ObjectName,
}

/// What it takes to run data planes.
pub(super) struct Start<'c> {
    pub(super) client: &'c Client,
    pub(super) provisioning: &'c ProvisioningOptions,
    /// Of the controller.
    pub(super) options: &'c ControllerOptions,
    /// Where the feed has TLS.
    pub(super) authority: Option<FeedAuthority>,
    pub(super) events: EventBoard,
    pub(super) metrics: Option<Arc<Metrics>>,
    pub(super) leadership: &'c Leadership,
    pub(super) stop: &'c CancellationToken,
    pub(super) tasks: &'c mut JoinSet<()>,
}

/// Starts what runs data planes.
pub(super) fn start(start: Start<'_>) -> Provisioning {
    let Start { client, provisioning, options, authority, events, metrics, leadership, stop, tasks } = start;
    let ProvisioningOptions { installation, key } = provisioning.clone();
    let installation = Arc::new(installation);
    let managed_by = installation.managed_by();
    let (find_key, key) = shared_key::start(client.clone(), key, managed_by, stop.clone());
    tasks.spawn(find_key);
    // With a selector, another installation may serve the Gateways of this name that it does not select.
    let wanted = Wanted { is_partial: options.watch.labels.is_some(), ..Wanted::default() };
    let (wanted, standings) = (watch::Sender::new(wanted), watch::Sender::new(Standings::new()));
    let told = standings.subscribe();
    let provisioner = Provisioner::new(Parts {
        client: client.clone(),
        installation: installation.clone(),
        namespaces: options.watch.namespaces.clone(),
        field_manager: options.writer.field_manager.clone(),
        authority,
        key: key.clone(),
        wanted: wanted.subscribe(),
        standings,
        events,
        metrics,
    });
    tasks.spawn(provisioner.run(leadership.clone(), stop.clone()));
    Provisioning { installation, wanted, standings: told, key }
}
