//! The composition root: watches, world, reconciliation, delivery and statuses as one value that runs.
//!
//! ```text
//! Watches ──► inputs ─┐                                   ┌──► SinkRouter ──► sinks              
//! addresses ──────────┤                                   │
//! status pages ───────┼──► Engine, one task: World, queue ┼──► StatusBoard ──► StatusWriter ┐
//! readers of the feed ┤                                   ├──► EventBoard  ──► EventWriter  ├──► API server
//! debug requests ─────┘                                   └──► DesiredInfrastructure ► Provisioner ───────┤
//!                                       AuthorityReconciler (pki): of the feed ─────────────┤
//!                                                              Elector ──► Leadership ──────┘
//! ```
//!
//! One task owns the world, without locks. Every replica watches, reconciles and serves. The leader alone writes to the API
//! server.
//!
//! Before the end of the initial lists, the feed answers no reads. Then the feed answers for each data plane after its first
//! publication, so a PingSIX that starts at the same moment waits instead of reading an incomplete configuration. No data
//! plane waits for another. Later, published documents stay as they are while the API server is away.
//!
//! The replica is ready after the initial publications to its feed. Readiness waits half a minute for Gateways and
//! IngressClasses with unknown references, such as a Secret without an answer of the API server. Then the log names them.

mod addresses;
mod attached_sinks;
mod bundles;
mod drift;
mod engine;
mod feed;
mod instances;
mod observers;
mod orphans;
mod poll_targets;
mod provisioning;
mod publisher;
mod request_limits;
mod router;
mod sink_handle;
mod sink_opener;
mod sinks_failed;
#[cfg(test)]
mod slow_feed;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use pingsix_sink::EmbeddedEtcd;
use pingsix_translate::DataPlaneKey;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

pub use addresses::PublishedAddresses;
pub use feed::Feed;
pub use observers::Observers;
pub use provisioning::ProvisioningOptions;
pub use router::SinkRouter;
pub use sink_handle::SinkHandle;
pub use sink_opener::{SinkOpenError, SinkOpener};

use crate::delivery::Deliveries;
use crate::delivery::status_page::{StatusClient, StatusUrl};
use crate::health::Gate;
use crate::leader::{Elector, Leadership, LeaseOptions, LeaseOptionsError};
use crate::pki::{self, AuthorityOptions, FeedAuthority};
use crate::reconcile::{Pace, Reconciler};
use crate::replicas::Replicas;
use crate::status::{
    EventBoard, EventOptions, EventWriter, Readers, StatusBoard, StatusWriter, WriterOptions,
};
use crate::watch::{SecretWatch, WatchOptions, Watches};
use attached_sinks::AttachedSinks;
use engine::Engine;
use observers::Gates;
use orphans::OrphanCollector;
use poll_targets::PollTargets;
use tasks::Tasks;

/// The options of a controller. [`new`](Self::new) has the defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControllerOptions {
    /// The options of translation. The controller serves the classes of `controller_name`. Parameters may name sinks if the
    /// controller has a [`SinkOpener`](Controller::with_attached_sinks).
    pub translation: pingsix_translate::Options,
    /// The options of watches.
    pub watch: WatchOptions,
    /// The pace of reconciliations of one Gateway or IngressClass.
    pub pace: Pace,
    /// The addresses of data planes in statuses.
    pub addresses: PublishedAddresses,
    /// The status pages of PingSIX instances, by data plane. Without status pages, connections are the only sign of
    /// delivery.
    pub status_pages: BTreeMap<DataPlaneKey, BTreeSet<StatusUrl>>,
    /// The client of status pages.
    pub status_client: StatusClient,
    /// The certificate authority of the embedded server; `None` for certificates from elsewhere. The server has to start
    /// with [`ServerTls::deferred`](pingsix_sink::embedded::ServerTls::deferred).
    pub feed_authority: Option<AuthorityOptions>,
    /// The leader election; `None` for a single replica.
    pub lease: Option<LeaseOptions>,
    /// The options of managed data planes; `None` if the controller runs none.
    pub provisioning: Option<ProvisioningOptions>,
    /// The options of status writes.
    pub writer: WriterOptions,
    /// The options of Events.
    pub events: EventOptions,
    /// The time for pending publications at a shutdown.
    pub drain: Duration,
}

impl ControllerOptions {
    /// The defaults for a single replica. Its Events contain `instance`, the name of its Pod.
    pub fn new(translation: pingsix_translate::Options, instance: impl Into<String>) -> Self {
        let name = translation.controller_name.clone();
        Self {
            translation,
            watch: WatchOptions::default(),
            pace: Pace::default(),
            addresses: PublishedAddresses::default(),
            status_pages: BTreeMap::new(),
            status_client: StatusClient::new(None),
            feed_authority: None,
            lease: None,
            provisioning: None,
            writer: WriterOptions::new(name.clone()),
            events: EventOptions::new(name, instance),
            drain: Duration::from_secs(5),
        }
    }
}

/// An error that ends a controller. The process should end, too, because an immediate retry does not help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// The times of the election contradict each other.
    #[error("the election cannot be held")]
    Lease(#[from] LeaseOptionsError),
    /// Part of the controller panicked.
    #[error("part of the controller has failed")]
    Task(#[source] JoinError),
    /// The watches ended without a stop.
    #[error("the watches have ended")]
    Watches,
}

/// The progress of a controller towards readiness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Kinds without a complete list, and the reason.
    pub unknown: BTreeMap<pingsix_translate::Kind, String>,
    /// Referenced Secrets and ConfigMaps without an answer of the API server. Empty once it is ready.
    pub awaited: BTreeSet<pingsix_translate::ObjectKey>,
    /// Whether everything was published once to the targets that this replica serves itself. Shared targets do not
    /// count, because PingSIX reads them without this replica. After 30 s, Gateways and IngressClasses with unknown
    /// references are ignored.
    pub is_published: bool,
}

impl Progress {
    /// Whether the replica is ready to serve its readers.
    pub const fn is_ready(&self) -> bool {
        self.is_published
    }
}

/// A controller for one cluster.
pub struct Controller {
    client: Client,
    sinks: SinkRouter,
    options: ControllerOptions,
    progress: watch::Sender<Progress>,
    observers: Observers,
    status: StatusBoard,
    events: EventBoard,
    replicas: Option<Replicas>,
    opener: Option<SinkOpener>,
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Controller {
    /// A controller that has not started, and publishes to these sinks. An [`Arc`] of a [`Feed`] is a router to it alone.
    pub fn new(client: Client, sinks: impl Into<SinkRouter>, options: ControllerOptions) -> Self {
        Self {
            client,
            sinks: sinks.into(),
            options,
            progress: watch::Sender::new(Progress::default()),
            observers: Observers::default(),
            status: StatusBoard::default(),
            events: EventBoard::default(),
            replicas: None,
            opener: None,
        }
    }

    /// Publishes to the sinks that parameters name, too. Without an opener, statuses report such parameters as unusable.
    #[must_use]
    pub fn with_attached_sinks(mut self, opener: SinkOpener) -> Self {
        self.opener = Some(opener);
        self
    }

    /// Adds the other replicas of the [election](ControllerOptions::lease): their readers count, too. An embedded server needs
    /// revisions from the [store of the replicas](Replicas::reservations).
    #[must_use]
    pub fn with_replicas(mut self, replicas: Replicas) -> Self {
        self.replicas = Some(replicas);
        self
    }

    /// The progress, now and after each change.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Connects observers.
    #[must_use]
    pub fn observed_by(mut self, observers: Observers) -> Self {
        self.observers = observers;
        self
    }

    /// Runs until it is stopped, waits for pending publications, then releases the lease.
    ///
    /// # Errors
    ///
    /// [`ControllerError`]: the world is not updated any more, and the process should end.
    pub async fn run(self, stop: CancellationToken) -> Result<(), ControllerError> {
        let Self { client, sinks, mut options, progress, observers, status, events, replicas, opener } = self;
        options.translation.attached_sinks = opener.is_some();
        let Observers { health, metrics, debug } = observers;
        // However this ends, also by being dropped, its parts end too.
        let parts = stop.child_token();
        let _end_parts = parts.clone().drop_guard();
        let mut tasks = Tasks::new(&parts);

        // Another replica must not lead while this one still publishes.
        let election = CancellationToken::new();
        let _end_election = election.clone().drop_guard();
        let leadership = elect(&client, options.lease.clone(), &election, &mut tasks)?;
        let authority = options.feed_authority.clone().map(|authority| {
            let ready = health.as_ref().map(|health| health.gate("certificate", "the feed has none yet"));
            let served = sinks.embedded().map(|etcd| (etcd.clone(), ready));
            keep_authority(&client, authority, served, &leadership, &mut tasks)
        });
        if let (Some(metrics), Some(replicas)) = (&metrics, &replicas) {
            metrics.observe_replicas(replicas.clone());
        }
        let sinks = sinks.with_leadership(&leadership).with_metrics(metrics.clone()).with_replicas(replicas);
        let sinks = Arc::new(sinks.with_attached(AttachedSinks::new(opener)));
        tasks.spawn_to_end(Arc::clone(&sinks).exchange_readers(parts.clone()));
        let reconciler =
            Reconciler::new(options.translation.clone()).hiding_objects(options.watch.labels.is_some());
        let readers = Readers::of(reconciler.world());
        let writer =
            StatusWriter::new(client.clone(), readers.clone(), status.clone(), options.writer.clone());
        tasks.spawn(writer.clone().run(leadership.clone()));
        let teller =
            EventWriter::new(client.clone(), readers.clone(), events.clone(), options.events.clone());
        tasks.spawn(teller.run(leadership.clone()));
        let addresses = addresses::start(&client, &options.addresses, &mut tasks);
        if let Some(metrics) = &metrics {
            tasks.spawn_to_end(observers::follow_leadership(
                metrics.clone(),
                leadership.clone(),
                parts.clone(),
            ));
        }
        let bundles = bundles::start(client.clone(), &mut tasks);
        let targets = PollTargets::default();
        let pages = instances::start(targets.subscribe(), &options.status_client, &mut tasks);
        let provisioning = options.provisioning.as_ref().map(|provisioning| {
            provisioning::start(provisioning::TaskContext {
                client: &client,
                provisioning,
                options: &options,
                authority,
                events: events.clone(),
                metrics: metrics.clone(),
                leadership: &leadership,
                tasks: &mut tasks,
            })
        });
        let collector = OrphanCollector::new(&options, &client, &sinks, &leadership, &progress);
        let collector = collector.start(&mut tasks);
        let drifted = drift::start(sinks.drifts(), sinks.attached().watch(), &mut tasks);
        let (mut watches, inputs) = Watches::start(client, options.watch.clone(), &parts);
        if let Some(metrics) = &metrics {
            observers::observe(metrics, watches.stats(), &writer, reconciler.world());
        }

        let boards = (status, events, readers);
        let report = engine::Report::new(boards, bundles, progress, health.as_ref().map(Gates::of));
        let shared = engine::Shared {
            reconciler,
            deliveries: Deliveries::default(),
            managed: engine::Managed::new(provisioning),
            sinks,
            leadership: leadership.clone(),
            addresses,
            health,
            metrics,
            fixed_pages: options.status_pages,
            targets,
            drain: options.drain,
        };
        let lists_secrets = matches!(options.watch.secrets, SecretWatch::All { .. });
        let engine = Engine::new(shared, report, options.pace, lists_secrets);
        let sources = engine::Sources { inputs, pages, drifted, collector, debug, stop };
        // The engine is on the heap, so that the future of an embedding program stays small.
        let run = tokio::select! {
            ran = Box::pin(engine.run(sources, &watches)) => ran,
            error = tasks.first_error() => Err(ControllerError::Task(error)),
        };
        parts.cancel();
        election.cancel();
        watches.ended().await.map_err(ControllerError::Task)?;
        tasks.all_ended().await.map_err(ControllerError::Task)?;
        run
    }
}

/// Takes part in the election, if there is one.
fn elect(
    client: &Client,
    lease: Option<LeaseOptions>,
    election: &CancellationToken,
    tasks: &mut Tasks,
) -> Result<Leadership, ControllerError> {
    let Some(lease) = lease else { return Ok(Leadership::always()) };
    let (elector, leadership) = Elector::new(client.clone(), lease)?;
    tasks.spawn_to_end(elector.run(election.clone()));
    Ok(leadership)
}

/// Keeps the authority of the feed, and has the server of the feed, if it is one of ours, prove itself with it.
fn keep_authority(
    client: &Client,
    options: AuthorityOptions,
    served: Option<(EmbeddedEtcd, Option<Gate>)>,
    leadership: &Leadership,
    tasks: &mut Tasks,
) -> FeedAuthority {
    let (reconciler, authority) = pki::start(client.clone(), options);
    tasks.spawn(reconciler.run(leadership.clone()));
    if let Some((etcd, ready)) = served {
        tasks.spawn(pki::serve(authority.clone(), etcd, ready));
    }
    authority
}
