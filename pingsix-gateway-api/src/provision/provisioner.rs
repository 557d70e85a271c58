//! Applies the desired objects to the API server, and reports the outcome.

mod rotation;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use kube::Client;
use pingsix_sink::embedded::{feed_uri, feed_uri_of_owner};
use pingsix_sink::{Scope, SinkError};
use pingsix_translate::ObjectKey;
use pingsix_translate::infrastructure::Infrastructure;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument as _, info_span};

use super::apply::{ApiWriter, Applied, Outcome, PassError, PassInput};
use super::children::{ChildKey, Children};
use super::keys::{MissingKeysError, Rollout};
use super::{
    ChildKind, DeployedKeys, DesiredInfrastructure, InfrastructureNeed, Installation, InstallationKey,
    KeyRecord, Keyring, PlaneSecrets, Provisioned, ProvisionedOwners, names, objects, service_name,
};
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::pki::{Edition, FeedAuthority, IdentityError, IssueError, IssuedIdentity};
use crate::status::{EventBoard, Pace, Pacing};
use crate::wait::{self, changed};
use crate::watch::Namespaces;

/// The number of concurrent passes.
const MAX_CONCURRENT_PASSES: usize = 8;

/// The timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval of passes without a change, in case of a missed event.
const RECONCILE_INTERVAL: Duration = Duration::from_hours(1);

/// The dependencies of a [`Provisioner`].
pub(crate) struct Parts {
    pub(crate) client: Client,
    pub(crate) installation: Arc<Installation>,
    /// The namespaces of owners.
    pub(crate) namespaces: Namespaces,
    pub(crate) field_manager: String,
    /// The authority of the feed, with TLS.
    pub(crate) authority: Option<FeedAuthority>,
    pub(crate) key: watch::Receiver<Option<InstallationKey>>,
    pub(crate) wanted: watch::Receiver<DesiredInfrastructure>,
    pub(crate) provisioned: watch::Sender<ProvisionedOwners>,
    pub(crate) events: EventBoard,
    pub(crate) metrics: Option<Arc<Metrics>>,
}

/// Applies the desired objects while this replica leads, and reports the outcome in every replica.
pub(crate) struct Provisioner {
    parts: Parts,
    children: Children,
    owners: BTreeMap<ObjectKey, OwnerState>,
    leads: bool,
    /// Owners that a rotation of the feed's authority waits for, because their Secrets cannot be written.
    waited_for: BTreeSet<ObjectKey>,
}

/// The state of an owner.
#[derive(Default)]
struct OwnerState {
    /// The need at the last pass.
    need: Option<InfrastructureNeed>,
    is_due: bool,
    is_running: bool,
    pace: Pace,
    applied: BTreeMap<ChildKey, Applied>,
    error: Option<String>,
    /// The time of the next check, for another identity or the end of Pods.
    renewal: Option<Instant>,
    /// The time since which all Pods have the template, and the generation of the Deployment.
    settled: Option<(i64, Instant)>,
    /// The edition of the running pass, and the edition of the last successful one.
    running_edition: Option<Edition>,
    edition: Option<Edition>,
}

/// The running passes.
type Passes = FuturesUnordered<BoxFuture<'static, (ObjectKey, Outcome)>>;

impl Provisioner {
    pub(crate) fn new(parts: Parts) -> Self {
        let managed_by = parts.installation.managed_by();
        let children = Children::watch(&parts.client, &parts.namespaces, &managed_by);
        Self { parts, children, owners: BTreeMap::new(), leads: false, waited_for: BTreeSet::new() }
    }

    /// Runs until it is dropped. The loss of leadership cancels running passes.
    pub(crate) async fn run(mut self, leadership: Leadership) {
        let mut passes = Passes::new();
        let (mut gained, mut lost) = (leadership.clone(), leadership.clone());
        let mut issued = self.parts.authority.as_ref().map(FeedAuthority::changes);
        let (mut key, mut wanted) = (self.parts.key.clone(), self.parts.wanted.clone());
        let mut reconsider = Instant::now() + RECONCILE_INTERVAL;
        loop {
            let due = self.due();
            tokio::select! {
                () = gained.gained(), if !self.leads => {
                    self.leads = true;
                    self.mark_all_due();
                }
                () = lost.lost(), if self.leads => {
                    self.leads = false;
                    passes.clear();
                    // The outcome of requests in progress is unknown.
                    self.owners.clear();
                    self.report();
                }
                owners = self.children.next() => owners.into_iter().for_each(|owner| self.mark_due(owner)),
                Ok(()) = wanted.changed() => self.compare(),
                Ok(()) = key.changed() => self.mark_all_due(),
                () = changed(issued.as_mut()) => self.mark_all_due(),
                Some((owner, outcome)) = passes.next(), if !passes.is_empty() => self.conclude(&owner, outcome),
                () = sleep_until(due.unwrap_or(reconsider).min(reconsider)) => {
                    if Instant::now() >= reconsider {
                        reconsider = Instant::now() + RECONCILE_INTERVAL;
                        self.mark_all_due();
                    }
                }
            }
            self.begin(&mut passes, &leadership);
            self.report();
            self.acknowledge();
        }
    }

    /// The time at which the next owner is due.
    fn due(&self) -> Option<Instant> {
        if !self.leads || !self.children.is_listed() {
            return None;
        }
        let waiting = self.owners.values().filter(|state| !state.is_running);
        let due = waiting.filter_map(|state| match (state.is_due, state.pace.next()) {
            (true, next) => next,
            (false, _) => state.renewal,
        });
        due.min()
    }

    fn mark_due(&mut self, owner: ObjectKey) {
        if self.leads {
            self.owners.entry(owner).or_default().is_due = true;
        }
    }

    fn mark_all_due(&mut self) {
        let wanted: BTreeSet<ObjectKey> = self.parts.wanted.borrow().needs.keys().cloned().collect();
        let present = self.children.iter().filter_map(|(_, child)| Some(child.owner.as_ref()?.0.clone()));
        let owners: BTreeSet<ObjectKey> = present.chain(wanted).chain(self.owners.keys().cloned()).collect();
        for owner in owners {
            self.mark_due(owner);
        }
    }

    /// Queues the owners whose desired objects changed.
    fn compare(&mut self) {
        let wanted = self.parts.wanted.clone();
        let wanted = wanted.borrow();
        let mut others: Vec<ObjectKey> = Vec::new();
        for (owner, need) in &wanted.needs {
            if self.owners.get(owner).and_then(|state| state.need.as_ref()) != Some(need) {
                others.push(owner.clone());
            }
        }
        let present = self.children.iter().filter_map(|(_, child)| Some(&child.owner.as_ref()?.0));
        let unwanted = present.chain(self.owners.keys()).filter(|owner| !wanted.needs.contains_key(owner));
        others.extend(unwanted.cloned());
        drop(wanted);
        for owner in others {
            self.mark_due(owner);
        }
    }

    /// Begins passes for due owners, as far as permits are free.
    fn begin(&mut self, passes: &mut Passes, leadership: &Leadership) {
        if !self.leads || !self.children.is_listed() {
            return;
        }
        let now = Instant::now();
        let is_due = |state: &OwnerState| {
            let may = state.pace.next().is_none_or(|next| next <= now);
            !state.is_running && (state.is_due && may || state.renewal.is_some_and(|renewal| renewal <= now))
        };
        let due: Vec<ObjectKey> =
            self.owners.iter().filter(|(_, state)| is_due(state)).map(|(owner, _)| owner.clone()).collect();
        for owner in due {
            if passes.len() >= MAX_CONCURRENT_PASSES {
                return;
            }
            let work = self.work(&owner);
            let Some(state) = self.owners.get_mut(&owner) else { continue };
            (state.is_due, state.renewal) = (false, state.renewal.filter(|renewal| *renewal > now));
            match work {
                Ok(Some(prepared)) => {
                    (state.is_running, state.renewal) = (true, prepared.renewal);
                    state.running_edition.clone_from(&prepared.edition);
                    let hand = ApiWriter {
                        client: self.parts.client.clone(),
                        field_manager: self.parts.field_manager.clone(),
                        timeout: REQUEST_TIMEOUT,
                        leadership: leadership.clone(),
                    };
                    let (leadership, span) = (leadership.clone(), info_span!("provision", %owner));
                    passes.push(Box::pin(async move {
                        let pass = prepared.work.pass(&hand).instrument(span);
                        match leadership.while_held(pass).await {
                            Some(outcome) => (owner, outcome),
                            // The end of the leadership ends all passes.
                            None => std::future::pending().await,
                        }
                    }));
                }
                Ok(None) => {
                    state.error = None;
                    state.pace.settled();
                    if state.need.is_none() {
                        self.owners.remove(&owner);
                    }
                }
                Err(error) => {
                    // A fact that is unknown at the start, or while a Secret follows its reference, is usually known a
                    // moment later. The status must not change for that moment.
                    if state.pace.has_failed() {
                        state.error = Some(error.to_string());
                    }
                    state.pace.failed(now, None, &Pacing::default());
                    state.is_due = true;
                }
            }
        }
    }

    /// The work for an owner; `None` for an owner in its desired state.
    fn work(&mut self, owner: &ObjectKey) -> Result<Option<Prepared>, PrepareError> {
        let wanted = self.parts.wanted.borrow();
        let (need, is_unwanted) = (wanted.needs.get(owner).cloned(), wanted.is_unwanted(owner));
        drop(wanted);
        let Some(state) = self.owners.get_mut(owner) else { return Ok(None) };
        state.need.clone_from(&need);
        let applied = state.applied.clone();
        let of_owner =
            self.children.iter().filter(|(_, child)| child.owner.as_ref().is_some_and(|(of, _)| of == owner));
        let mut observed: BTreeMap<_, _> =
            of_owner.map(|(key, child)| (key.clone(), child.clone())).collect();
        let Some(need) = need else {
            // The need of an owner before its first pass, or with an error, is unknown.
            let is_unwanted = is_unwanted && !observed.is_empty();
            let work = PassInput { uid: None, objects: None, observed, applied };
            return Ok(is_unwanted.then_some(Prepared { work, renewal: None, edition: None }));
        };
        let infrastructure = &*need.infrastructure;
        let Some(key) = self.parts.key.borrow().clone() else {
            return Err(PrepareError::NoKeyOfPages);
        };
        let issued = self.issue(owner, &need)?;
        let renewal = issued.as_ref().and_then(|issued| issued.renewal);
        let (keys, over_at) = self.record(owner, infrastructure, need.keyring.clone()?);
        let renewal = renewal.map(|at| Instant::now() + until(at)).into_iter().chain(over_at).min();
        let edition = issued.as_ref().map(|issued| issued.edition.clone());
        let material = PlaneSecrets {
            identity: issued.map(|issued| issued.identity),
            diagnostics: key.diagnostics(owner),
            keys,
        };
        // A Gateway that has no port for a while keeps its processes and its address.
        let Some(objects) = objects(infrastructure, &self.parts.installation, &material) else {
            return Ok(None);
        };
        for child in objects.children.iter().chain(&objects.certificate) {
            let key = (child.kind, child.name.clone());
            if let Some(child) = self.children.get(&key) {
                observed.insert(key, child.clone());
            }
        }
        let uid = infrastructure.uid.as_deref().map(str::to_owned);
        let work = PassInput { uid, objects: Some(objects), observed, applied };
        Ok(Some(Prepared { work, renewal, edition }))
    }

    /// The next record of keys, and the time of the next check without an event.
    fn record(
        &mut self,
        owner: &ObjectKey,
        infrastructure: &Infrastructure,
        keyring: Keyring,
    ) -> (KeyRecord, Option<Instant>) {
        let (record, rollout) = self.keys(infrastructure);
        let (record, rollout) = (record.clone(), rollout.cloned());
        let mut look_again = None;
        let deployed = match &rollout {
            None => self.deployed_keys(infrastructure),
            Some(rollout) => {
                let over_at = self.termination_deadline(owner, rollout);
                let is_over = over_at.is_some_and(|at| at <= Instant::now());
                look_again = over_at.filter(|_| !is_over && rollout.may_add_to(&record));
                DeployedKeys::All(record.deployed(rollout, is_over).clone())
            }
        };
        (record.next(rollout.as_ref(), keyring, &deployed), look_again)
    }

    /// The time at which all Pods of former templates have ended, if no event comes. Terminating Pods are not counted
    /// by a Deployment, and still read.
    fn termination_deadline(&mut self, owner: &ObjectKey, rollout: &Rollout) -> Option<Instant> {
        let state = self.owners.get_mut(owner)?;
        let before = state.settled.filter(|(generation, _)| *generation == rollout.generation);
        state.settled =
            rollout.is_complete.then(|| before.unwrap_or_else(|| (rollout.generation, Instant::now())));
        state.settled.map(|(_, since)| since + rollout.grace)
    }

    /// The record of an owner's keys, and the rollout of its Deployment, if it exists.
    fn keys(&self, infrastructure: &Infrastructure) -> (&KeyRecord, Option<&Rollout>) {
        static NONE: KeyRecord =
            KeyRecord { edition: 0, keyring: Keyring(Vec::new()), deployed: Keyring(Vec::new()) };
        let uid = infrastructure.uid.as_deref().unwrap_or_default();
        let config = (ChildKind::Secret, names::config_secret(infrastructure));
        let deployment = (ChildKind::Deployment, service_name(infrastructure));
        let record = self.children.of_owner(&config, uid).map_or(&NONE, |config| &config.keys);
        let deployment = self.children.of_owner(&deployment, uid);
        (record, deployment.and_then(|deployment| deployment.rollout.as_ref()))
    }

    /// The recorded keys that all processes of an owner have. Only the record has them.
    fn deployed_keys(&self, infrastructure: &Infrastructure) -> DeployedKeys {
        let deployment = (ChildKind::Deployment, service_name(infrastructure));
        match self.keys(infrastructure) {
            (record, Some(_)) => DeployedKeys::All(record.deployed.clone()),
            (_, None) if self.children.is_watched(&deployment) => DeployedKeys::NoProcess,
            // Unobserved processes may exist, with any keys.
            (_, None) => DeployedKeys::All(Keyring::default()),
        }
    }

    /// The identity of an owner at the feed; `None` for a feed without TLS.
    fn issue(
        &self,
        owner: &ObjectKey,
        need: &InfrastructureNeed,
    ) -> Result<Option<IssuedIdentity>, PrepareError> {
        let installation = &*self.parts.installation;
        if !installation.has_tls() {
            return Ok(None);
        }
        let authority = self.parts.authority.as_ref();
        let authority = authority.ok_or(PrepareError::NoAuthority)?;
        let of_processes = need.infrastructure.ports.values().map(|port| &port.data_plane);
        let of_sidecar = need.infrastructure.streams.iter().map(|streams| &streams.data_plane);
        let planes = of_processes.chain(of_sidecar).map(|plane| plane.prefix(&installation.root));
        // As in publications: a copy of the certificate does not open the feed of the next owner with this name.
        let uid = need.infrastructure.uid.as_deref();
        let uri = |scope: &Scope| uid.map_or_else(|| feed_uri(scope), |uid| feed_uri_of_owner(scope, uid));
        let uris = planes.map(|prefix| Scope::new(prefix).map(|scope| uri(&scope)));
        let uris = uris.collect::<Result<BTreeSet<_>, _>>()?;
        let feed = (ChildKind::Secret, names::feed_secret(&need.infrastructure));
        let uid = uid.unwrap_or_default();
        let identity = self.children.get(&feed).filter(|child| child.is_owned_by(uid));
        let identity = identity.and_then(|child| child.identity.as_ref());
        match authority.issue(&owner.name.to_string(), &uris, identity) {
            Ok(identity) => Ok(Some(identity)),
            Err(IdentityError::Unknown) => Err(PrepareError::UnknownAuthority),
            Err(IdentityError::Issue(error)) => Err(error.into()),
        }
    }

    fn conclude(&mut self, owner: &ObjectKey, outcome: Outcome) {
        let Outcome { seen, applied, error } = outcome;
        for (key, observed) in seen {
            self.children.note(key, observed);
        }
        let now = Instant::now();
        let Some(state) = self.owners.get_mut(owner) else { return };
        state.is_running = false;
        state.applied = applied;
        match &error {
            None => {
                if state.error.take().is_some() {
                    tracing::info!(%owner, "data planes are provisioned now");
                }
                state.edition = state.running_edition.take();
                state.pace.wrote(now, &Pacing::default());
                if state.need.is_none() && !state.is_due {
                    self.owners.remove(owner);
                }
            }
            Some(error) => {
                let (message, category) = (error.to_string(), error.category());
                if state.error.as_ref() != Some(&message) {
                    tracing::warn!(%owner, category, error = message, "data planes cannot be provisioned; retrying");
                }
                state.pace.failed(now, error.retry_after(), &Pacing::default());
                (state.is_due, state.error) = (true, Some(message));
            }
        }
        if let Some(PassError::Foreign { uid, .. }) = error {
            tracing::debug!(%owner, uid, "name taken by a foreign object; retrying");
        }
    }

    /// Reports the outcome of all owners.
    fn report(&self) {
        if !self.children.is_listed() {
            return;
        }
        let wanted = self.parts.wanted.borrow();
        let provisioned = |(owner, need): (&ObjectKey, &InfrastructureNeed)| {
            let service = (ChildKind::Service, service_name(&need.infrastructure));
            let uid = need.infrastructure.uid.as_deref().unwrap_or_default();
            let child = self.children.get(&service).filter(|child| child.is_owned_by(uid));
            let addresses = child.map(|child| child.addresses.clone()).unwrap_or_default();
            let error = self.owners.get(owner).and_then(|state| state.error.clone());
            let keys = self.deployed_keys(&need.infrastructure);
            (owner.clone(), Provisioned { addresses, error, keys })
        };
        wait::set(&self.parts.provisioned, wanted.needs.iter().map(provisioned).collect());
    }
}

/// The need of an owner cannot be determined. A condition contains the message for its author.
#[derive(Debug, Error)]
enum PrepareError {
    #[error("The key of status pages is still unknown.")]
    NoKeyOfPages,
    #[error("The feed has TLS, and the controller has no authority for certificates.")]
    NoAuthority,
    #[error("The authority for certificates is still unknown.")]
    UnknownAuthority,
    #[error(transparent)]
    Keyring(#[from] MissingKeysError),
    /// The prefix of a data plane is invalid.
    #[error("{0}.")]
    Scope(#[from] SinkError),
    #[error("{0}.")]
    Issue(#[from] IssueError),
}

/// A pass that is ready to run.
struct Prepared {
    work: PassInput,
    renewal: Option<Instant>,
    edition: Option<Edition>,
}

/// The remaining time, at least a second.
fn until(at: Timestamp) -> Duration {
    let left = at.duration_since(Timestamp::now());
    Duration::try_from(left).unwrap_or_default().max(Duration::from_secs(1))
}
