//! The Secret with the authorities: every replica follows it, and the leader writes it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use kube_runtime::watcher::DefaultBackoff;
use pingsix_translate::ObjectKey;
use tokio::sync::watch;
use tokio::time::sleep;

use super::clients::ClientSecrets;
use super::identity::{ClientIdentity, FeedIdentity};
use super::options::AuthorityOptions;
use super::record::{ROTATE, WAITS_FOR};
use super::rotation::{Authorities, Edition};
use super::{IssueError, LoggedError, RecordError, write_secret};
use crate::api_error::ApiErrorCategory;
use crate::leader::Leadership;
use crate::wait;

/// The number of checks per overlap. The longest pause bounds the interval.
const CHECKS_PER_OVERLAP: u32 = 4;
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// The number of owners in the Secret for which a rotation waits.
const MAX_NAMED_OWNERS: usize = 8;

/// The delay after a write that failed or was not observed yet.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The known authorities. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct FeedAuthority {
    options: Arc<AuthorityOptions>,
    known: watch::Receiver<Option<Arc<Authorities>>>,
    reported_edition: Arc<watch::Sender<Option<Edition>>>,
    waits_for: Arc<watch::Sender<BTreeSet<ObjectKey>>>,
}

/// The identity for a data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IssuedIdentity {
    /// The present identity, or another one.
    pub(crate) identity: FeedIdentity,
    /// The time of the next check, even if the authorities stay.
    pub(crate) renewal: Option<Timestamp>,
    /// The edition of the identity, for [`report_edition`](FeedAuthority::report_edition) after every data plane has its identity.
    pub(crate) edition: Edition,
}

/// No identity can be issued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum IdentityError {
    /// The Secret is not read yet, or unusable.
    #[error("the authority of the feed is still unknown")]
    Unknown,
    /// No certificate can be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
}

impl FeedAuthority {
    /// The last read authorities; `None` before.
    pub(crate) fn authorities(&self) -> Option<Arc<Authorities>> {
        self.known.borrow().clone()
    }

    /// Changes with the authorities; then every identity has to be checked again.
    pub(crate) fn changes(&self) -> watch::Receiver<Option<Arc<Authorities>>> {
        self.known.clone()
    }

    /// The identity of `owner`, a readable name, with access to exactly the prefixes of these URIs. A valid identity
    /// is kept; otherwise [`client_identity`](Authorities::client_identity) issues one.
    ///
    /// # Errors
    /// [`IdentityError`] without an authority; the former identity stays.
    pub(crate) fn issue(
        &self,
        owner: &str,
        uris: &BTreeSet<String>,
        held: Option<&FeedIdentity>,
    ) -> Result<IssuedIdentity, IdentityError> {
        let authorities = self.authorities().ok_or(IdentityError::Unknown)?;
        let (now, lifetimes) = (self.options.clock.now(), &self.options.lifetimes);
        let identity = match (authorities.client_identity(owner, uris, held, now, lifetimes)?, held) {
            (ClientIdentity::Write { identity, because }, _) => {
                tracing::info!(
                    owner,
                    reason = because.as_str(),
                    "issuing a new client certificate for a data plane"
                );
                identity
            }
            (ClientIdentity::Keep, Some(held)) => held.clone(),
            // There is no former identity.
            (ClientIdentity::Keep, None) => return Err(IdentityError::Unknown),
        };
        Ok(IssuedIdentity { renewal: identity.renewal(), edition: authorities.edition(), identity })
    }

    /// Records that the Secrets of all data planes hold an edition ([`client_identity`](Authorities::client_identity)
    /// is `Keep` for each of them). The leader calls this each time; a rotation waits for it.
    pub(crate) fn report_edition(&self, edition: Edition) {
        wait::set(&self.reported_edition, Some(edition));
    }

    /// Records the owners whose Secrets cannot be written and for whom a rotation waits. The leader calls this; the
    /// Secret of the authority names them.
    pub(crate) fn waits_for(&self, owners: BTreeSet<ObjectKey>) {
        wait::set(&self.waits_for, owners);
    }

    /// The options of the keeper.
    pub(crate) fn options(&self) -> &AuthorityOptions {
        &self.options
    }
}

/// Maintains the Secret.
#[derive(Debug)]
pub(crate) struct AuthorityReconciler {
    api: Api<Secret>,
    options: Arc<AuthorityOptions>,
    known: watch::Sender<Option<Arc<Authorities>>>,
    reported_edition: watch::Receiver<Option<Edition>>,
    waits_for: watch::Receiver<BTreeSet<ObjectKey>>,
}

/// The last observed Secret.
#[derive(Clone, Debug)]
enum SecretState {
    /// The Secret was not observed yet.
    Unknown,
    Absent,
    There(Box<ObservedSecret>),
    /// The Secret is unusable.
    Wrong,
}

#[derive(Clone, Debug)]
struct ObservedSecret {
    /// The Secret lacks its data.
    secret: Secret,
    authorities: Arc<Authorities>,
}

impl ObservedSecret {
    fn request(&self) -> Option<&str> {
        self.annotation(ROTATE)
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.secret.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }
}

/// The task that maintains the Secret, and its handle. No request to the API server comes before the start of the task.
pub(crate) fn start(client: Client, options: AuthorityOptions) -> (AuthorityReconciler, FeedAuthority) {
    let options = Arc::new(options);
    let (known, knowing) = watch::channel(None);
    let (reported, reports) = watch::channel(None);
    let (waits_for, waiting) = watch::channel(BTreeSet::new());
    let api = Api::namespaced(client, &options.secret.namespace);
    let authority = FeedAuthority {
        options: Arc::clone(&options),
        known: knowing,
        reported_edition: Arc::new(reported),
        waits_for: Arc::new(waits_for),
    };
    (AuthorityReconciler { api, options, known, reported_edition: reports, waits_for: waiting }, authority)
}

impl AuthorityReconciler {
    /// Follows the Secret, and writes it while this replica leads, until it is dropped.
    pub(crate) async fn run(self, leadership: Leadership) {
        let (sender, mut states) = watch::channel(SecretState::Unknown);
        tokio::join!(self.follow(&sender), self.lead(leadership, &mut states));
    }

    async fn follow(&self, states: &watch::Sender<SecretState>) {
        let secret = (self.api.clone(), &*self.options.secret.name);
        let message = "the Secret with the feed's authority cannot be watched";
        let see = |secret| {
            let state = self.observe(secret, &states.borrow());
            states.send_replace(state);
        };
        wait::follow(secret, DefaultBackoff::default(), message, see).await;
    }

    /// A missing or invalid Secret leaves the known authorities in force.
    fn observe(&self, secret: Option<Secret>, before: &SecretState) -> SecretState {
        let Some(mut secret) = secret else { return SecretState::Absent };
        match Authorities::from_data(&secret.data.take().unwrap_or_default()) {
            Ok(authorities) => {
                let authorities = Arc::new(authorities);
                wait::set(&self.known, Some(Arc::clone(&authorities)));
                SecretState::There(Box::new(ObservedSecret { secret, authorities }))
            }
            Err(error) => {
                self.log_error(error, before);
                SecretState::Wrong
            }
        }
    }

    fn log_error(&self, error: RecordError, before: &SecretState) {
        if !matches!(before, SecretState::Wrong) {
            tracing::error!(
                secret = %self.options.secret, error = %error,
                "the Secret with the feed's authority cannot be used; the feed goes on with the one before. To delete the \
                 Secret is to get another authority"
            );
        }
    }

    async fn lead(&self, mut leadership: Leadership, states: &mut watch::Receiver<SecretState>) {
        let mut reported = self.reported_edition.clone();
        let look = (self.options.lifetimes.overlap() / CHECKS_PER_OVERLAP)
            .clamp(Duration::from_millis(100), MAX_CHECK_INTERVAL);
        let mut complaint = None;
        let mut clients = ClientSecrets::new(self.api.clone().into_client(), Arc::clone(&self.options));
        loop {
            leadership.gained().await;
            let state = states.borrow_and_update().clone();
            let edition = reported.borrow_and_update().clone();
            let pause = match leadership.while_held(self.act(&state, edition.as_ref(), &mut clients)).await {
                None => continue,
                Some(Ok(false)) => look,
                Some(Ok(true)) => {
                    complaint = None;
                    RETRY_DELAY
                }
                Some(Err(error)) => {
                    let error = error.to_string();
                    if complaint.as_ref() != Some(&error) {
                        tracing::warn!(secret = %self.options.secret, error, "the Secret with the feed's authority cannot be written; retrying");
                    }
                    complaint = Some(error);
                    RETRY_DELAY
                }
            };
            tokio::select! {
                changed = states.changed() => if changed.is_err() {
                    return;
                },
                Ok(()) = reported.changed() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Writes the Secrets of clients and the Secret of the authority if needed. Returns whether the latter was written,
    /// which the watch will observe.
    async fn act(
        &self,
        state: &SecretState,
        reported: Option<&Edition>,
        clients: &mut ClientSecrets,
    ) -> Result<bool, LoggedError> {
        let (now, lifetimes) = (self.options.clock.now(), &self.options.lifetimes);
        let (present, next) = match state {
            SecretState::Unknown | SecretState::Wrong => return Ok(false),
            SecretState::Absent => {
                let made = Authorities::new(now, None, lifetimes)?;
                (None, made)
            }
            SecretState::There(observed) => {
                let mut behind = clients.write(&observed.authorities).await;
                let edition = observed.authorities.edition();
                let is_everybody_told = behind.is_empty()
                    && if self.options.has_reports {
                        reported == Some(&edition)
                    } else {
                        !self.options.clients.is_empty()
                    };
                let next = match observed.authorities.step(now, observed.request(), lifetimes)? {
                    None if is_everybody_told => observed.authorities.confirm_edition(&edition, now),
                    next => next,
                };
                // Read at intervals and not at each change, so that owners do not determine the rate of these writes.
                behind.extend(self.waits_for.borrow().iter().cloned());
                let is_rotating = observed.authorities.latest_step(lifetimes).is_some();
                let waits_for = waits_for(&behind).filter(|_| is_rotating);
                let is_named = observed.annotation(WAITS_FOR) == waits_for.as_deref();
                let next = match next {
                    None if is_named => return Ok(false),
                    None => (*observed.authorities).clone(),
                    Some(next) => next,
                };
                let mut secret = observed.secret.clone();
                let annotations = secret.metadata.annotations.get_or_insert_default();
                match waits_for {
                    Some(owners) => annotations.insert(WAITS_FOR.to_owned(), owners),
                    None => annotations.remove(WAITS_FOR),
                };
                (Some(secret), next)
            }
        };
        self.write(present, &next).await
    }

    async fn write(&self, present: Option<Secret>, authorities: &Authorities) -> Result<bool, LoggedError> {
        let is_new = present.is_none();
        let secret = present.unwrap_or_default();
        let name = &self.options.secret.name;
        let written =
            write_secret(&self.api, name, Secret { data: Some(authorities.to_data()), ..secret }).await;
        match written {
            Ok(_) => {
                tracing::info!(
                    secret = %self.options.secret, edition = ?authorities.edition(), phase = authorities.phase_name(),
                    "the feed's authority was written"
                );
                Ok(true)
            }
            // Another client was faster, which the watch will observe.
            Err(error) if error.category == ApiErrorCategory::Conflict => Ok(true),
            Err(error) if error.category == ApiErrorCategory::NotFound && !is_new => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

/// The value of [`WAITS_FOR`]; `None` if the rotation waits for no owner.
fn waits_for(owners: &BTreeSet<ObjectKey>) -> Option<String> {
    let names: Vec<String> = owners.iter().take(MAX_NAMED_OWNERS).map(ToString::to_string).collect();
    match owners.len().saturating_sub(MAX_NAMED_OWNERS) {
        _ if names.is_empty() => None,
        0 => Some(names.join(", ")),
        more => Some(format!("{} and {more} more", names.join(", "))),
    }
}
