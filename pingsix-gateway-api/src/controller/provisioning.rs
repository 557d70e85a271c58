//! The tasks that run managed data planes.

use std::sync::Arc;

use kube::Client;
use pingsix_translate::ObjectName;
use tokio::sync::watch;

use super::ControllerOptions;
use super::engine::Provisioning;
use super::tasks::Tasks;
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::pki::FeedAuthority;
use crate::provision::{
    DesiredInfrastructure, Installation, Parts, ProvisionedOwners, Provisioner, shared_key,
};
use crate::status::EventBoard;

/// The options of managed data planes. With TLS at the feed, the [authority](ControllerOptions::feed_authority) of the
/// controller issues their certificates.
#[derive(Clone, Debug)]
pub struct ProvisioningOptions {
    /// The settings of all managed data planes. Controller name and root have to be those of the translation.
    pub installation: Installation,
    /// The Secret with the key of status pages, in the namespace of the controller. A missing Secret is created.
    pub key: ObjectName,
}

/// The dependencies of the tasks.
pub(super) struct TaskContext<'c> {
    pub(super) client: &'c Client,
    pub(super) provisioning: &'c ProvisioningOptions,
    /// The options of the controller.
    pub(super) options: &'c ControllerOptions,
    /// The authority of the feed; `None` without TLS.
    pub(super) authority: Option<FeedAuthority>,
    pub(super) events: EventBoard,
    pub(super) metrics: Option<Arc<Metrics>>,
    pub(super) leadership: &'c Leadership,
    pub(super) tasks: &'c mut Tasks,
}

/// Starts the tasks.
pub(super) fn start(start: TaskContext<'_>) -> Provisioning {
    let TaskContext { client, provisioning, options, authority, events, metrics, leadership, tasks } = start;
    let ProvisioningOptions { installation, key } = provisioning.clone();
    let installation = Arc::new(installation);
    let managed_by = installation.managed_by();
    let (find_key, key) = shared_key::start(client.clone(), key, managed_by);
    tasks.spawn(find_key);
    // With a selector, another installation may serve the Gateways of this name that it does not select.
    let wanted = DesiredInfrastructure {
        is_partial: options.watch.labels.is_some(),
        ..DesiredInfrastructure::default()
    };
    let (wanted, states) = (watch::Sender::new(wanted), watch::Sender::new(ProvisionedOwners::new()));
    let outcome = states.subscribe();
    let provisioner = Provisioner::new(Parts {
        client: client.clone(),
        installation: installation.clone(),
        namespaces: options.watch.namespaces.clone(),
        field_manager: options.writer.field_manager.clone(),
        authority,
        key: key.clone(),
        wanted: wanted.subscribe(),
        provisioned: states,
        events,
        metrics,
    });
    tasks.spawn(provisioner.run(leadership.clone()));
    Provisioning { installation, wanted, provisioned: outcome, key }
}
