//! The Secret with the authorities: every replica follows it, and the one that leads writes it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Client};
use kube_runtime::{WatchStreamExt as _, watcher};
use pingsix_translate::{ObjectKey, ObjectName};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::IssueError;
use super::identity::{ClientIdentity, FeedIdentity};
use super::record::{ROTATE, RecordFault, WAITS_FOR};
use super::rotation::{Authorities, Edition, Lifetimes};
use crate::clock::Clock;
use crate::fault::{Fault, FaultCategory, within};
use crate::leader::Leadership;

/// How long a write may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How often it is looked whether there is something to do, in parts of the overlap, and at most.
const LOOKS: u32 = 4;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How many owners the Secret names that a rotation waits for.
const NAMED: usize = 8;

/// How long to wait after a write that failed, or was not seen yet.
const RETRY: Duration = Duration::from_secs(1);

/// Which Secret holds the authorities, and what they are for. [`new`](Self::new) has the defaults, and fields are set on it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuthorityOptions {
    /// The Secret. Nobody but the controller should be able to read it: whoever does can read the feed.
    pub secret: ObjectName,
    /// The DNS names that the server is reached by. A client that reaches it otherwise has to verify one of them:
    /// `pingsix.etcd.tls.domain`.
    pub server_names: Vec<String>,
    /// How long certificates are good.
    pub lifetimes: Lifetimes,
    /// The time of day.
    pub clock: Clock,
}

impl AuthorityOptions {
    /// For the feed that a Service of the same namespace leads to.
    pub fn new(secret: ObjectName, service: &str) -> Self {
        let host = format!("{service}.{}", secret.namespace);
        let server_names = vec![format!("{host}.svc"), format!("{host}.svc.cluster.local"), host];
        Self { secret, server_names, lifetimes: Lifetimes::default(), clock: Clock::default() }
    }
}

/// What is known of the authorities. Clones are the same.
#[derive(Clone, Debug)]
pub struct FeedAuthority {
    options: Arc<AuthorityOptions>,
    known: watch::Receiver<Option<Arc<Authorities>>>,
    told: Arc<watch::Sender<Option<Edition>>>,
    waits_for: Arc<watch::Sender<BTreeSet<ObjectKey>>>,
}

/// What a data plane is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedIdentity {
    /// That which it held, or another one.
    pub identity: FeedIdentity,
    /// When to ask again, even if the authorities stay.
    pub renewal: Option<Timestamp>,
    /// What it was asked of: to be [told](FeedAuthority::told) when every data plane holds what it is to hold.
    pub edition: Edition,
}

/// The Secret of the authority is not written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Issue(#[from] IssueError),
    #[error(transparent)]
    Api(#[from] Fault),
}

/// There is nothing to hold for a data plane.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The Secret has not been read yet, or cannot be used.
    #[error("the authority of the feed is not known yet")]
    Unknown,
    /// No certificate can be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
}

impl FeedAuthority {
    /// The authorities as they were last read; `None` before that.
    pub fn authorities(&self) -> Option<Arc<Authorities>> {
        self.known.borrow().clone()
    }

    /// Changes whenever the authorities do: then every identity has to be looked at again.
    pub fn changes(&self) -> watch::Receiver<Option<Arc<Authorities>>> {
        self.known.clone()
    }

    /// What `owner`, a name for people, is to hold, which may read what these URIs name and nothing else: what it holds, as long as
    /// that is good, else what [`client_identity`](Authorities::client_identity) makes now.
    ///
    /// # Errors
    /// [`IdentityError`] when there is nothing; then what it holds stays.
    pub fn issue(
        &self,
        owner: &str,
        uris: &BTreeSet<String>,
        held: Option<&FeedIdentity>,
    ) -> Result<IssuedIdentity, IdentityError> {
        let authorities = self.authorities().ok_or(IdentityError::Unknown)?;
        let (now, lifetimes) = (self.options.clock.now(), &self.options.lifetimes);
        let identity = match (authorities.client_identity(owner, uris, held, now, lifetimes)?, held) {
            (ClientIdentity::Write { identity, because }, _) => {
                tracing::info!(owner, reason = because.as_str(), "a data plane is to prove itself otherwise");
                identity
            }
            (ClientIdentity::Keep, Some(held)) => held.clone(),
            // There is nothing to keep.
            (ClientIdentity::Keep, None) => return Err(IdentityError::Unknown),
        };
        Ok(IssuedIdentity { renewal: identity.renewal(), edition: authorities.edition(), identity })
    }

    /// Says that the Secrets of all data planes hold what an edition asks for
    /// ([`client_identity`](Authorities::client_identity) is `Keep` for each of them). To be said by the leader, each time
    /// that it is found to be so; a rotation waits for it.
    pub fn told(&self, edition: Edition) {
        self.told.send_if_modified(|last| {
            let is_new = last.as_ref() != Some(&edition);
            *last = Some(edition);
            is_new
        });
    }

    /// Says for which owners a rotation waits because their Secrets cannot be written. To be said by the leader; the Secret
    /// of the authority names them.
    pub fn waits_for(&self, owners: BTreeSet<ObjectKey>) {
        self.waits_for.send_if_modified(|last| {
            let is_new = *last != owners;
            *last = owners;
            is_new
        });
    }

    /// The options that it was started with.
    pub fn options(&self) -> &AuthorityOptions {
        &self.options
    }
}

/// Keeps the Secret.
#[derive(Debug)]
pub struct Keeper {
    api: Api<Secret>,
    options: Arc<AuthorityOptions>,
    known: watch::Sender<Option<Arc<Authorities>>>,
    told: watch::Receiver<Option<Edition>>,
    waits_for: watch::Receiver<BTreeSet<ObjectKey>>,
}

/// The Secret as it was last seen.
#[derive(Clone, Debug)]
enum Sight {
    /// Nothing was seen yet.
    Unknown,
    Absent,
    There(Box<ObservedSecret>),
    /// There is one that cannot be used.
    Wrong,
}

#[derive(Clone, Debug)]
struct ObservedSecret {
    /// Without its data.
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

/// What keeps the Secret, and what tells of it. Nothing is asked of the API server before the keeper runs.
pub fn start(client: Client, options: AuthorityOptions) -> (Keeper, FeedAuthority) {
    let options = Arc::new(options);
    let (known, knowing) = watch::channel(None);
    let (told, hearing) = watch::channel(None);
    let (waits_for, waiting) = watch::channel(BTreeSet::new());
    let api = Api::namespaced(client, &options.secret.namespace);
    let authority = FeedAuthority {
        options: Arc::clone(&options),
        known: knowing,
        told: Arc::new(told),
        waits_for: Arc::new(waits_for),
    };
    (Keeper { api, options, known, told: hearing, waits_for: waiting }, authority)
}

impl Keeper {
    /// Follows the Secret, and writes it while it leads, until it is stopped.
    pub async fn run(self, leadership: Leadership, stop: CancellationToken) {
        let (sights, mut sight) = watch::channel(Sight::Unknown);
        let live = async { tokio::join!(self.follow(&sights), self.lead(leadership, &mut sight)) };
        stop.run_until_cancelled(Box::pin(live)).await;
    }

    async fn follow(&self, sights: &watch::Sender<Sight>) {
        let name = &*self.options.secret.name;
        let mut versions = std::pin::pin!(watcher::watch_object(self.api.clone(), name).default_backoff());
        let mut complaint = None;
        while let Some(version) = versions.next().await {
            match version {
                Ok(secret) => {
                    complaint = None;
                    let sight = self.see(secret, &sights.borrow());
                    sights.send_replace(sight);
                }
                Err(error) => {
                    let fault = Fault::from(&error);
                    if complaint.replace(fault.category) != Some(fault.category) {
                        let category = fault.category.as_str();
                        tracing::warn!(secret = %self.options.secret, category, error = %fault, "the Secret with the feed's authority cannot be watched");
                    }
                }
            }
        }
    }

    /// What is not there, or cannot be used, leaves everybody with what was known.
    fn see(&self, secret: Option<Secret>, before: &Sight) -> Sight {
        let Some(mut secret) = secret else { return Sight::Absent };
        match Authorities::from_data(&secret.data.take().unwrap_or_default()) {
            Ok(authorities) => {
                let authorities = Arc::new(authorities);
                self.known.send_if_modified(|known| {
                    let is_new = known.as_ref() != Some(&authorities);
                    *known = Some(Arc::clone(&authorities));
                    is_new
                });
                Sight::There(Box::new(ObservedSecret { secret, authorities }))
            }
            Err(fault) => {
                self.complain(fault, before);
                Sight::Wrong
            }
        }
    }

    fn complain(&self, fault: RecordFault, before: &Sight) {
        if !matches!(before, Sight::Wrong) {
            tracing::error!(
                secret = %self.options.secret, error = %fault,
                "the Secret with the feed's authority cannot be used; the feed goes on with the one before. To delete the \
                 Secret is to get another authority"
            );
        }
    }

    async fn lead(&self, mut leadership: Leadership, sight: &mut watch::Receiver<Sight>) {
        let mut told = self.told.clone();
        let look =
            (self.options.lifetimes.overlap() / LOOKS).clamp(Duration::from_millis(100), LONGEST_PAUSE);
        let mut complaint = None;
        loop {
            leadership.gained().await;
            let seen = sight.borrow_and_update().clone();
            let edition = told.borrow_and_update().clone();
            let pause = match leadership.while_held(self.act(&seen, edition.as_ref())).await {
                None => continue,
                Some(Ok(false)) => look,
                Some(Ok(true)) => {
                    complaint = None;
                    RETRY
                }
                Some(Err(error)) => {
                    let error = error.to_string();
                    if complaint.as_ref() != Some(&error) {
                        tracing::warn!(secret = %self.options.secret, error, "the Secret with the feed's authority cannot be written; retrying");
                    }
                    complaint = Some(error);
                    RETRY
                }
            };
            tokio::select! {
                changed = sight.changed() => if changed.is_err() {
                    return;
                },
                Ok(()) = told.changed() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Does what there is to do; whether something was written, which will be seen.
    async fn act(&self, sight: &Sight, told: Option<&Edition>) -> Result<bool, WriteError> {
        let (now, lifetimes) = (self.options.clock.now(), &self.options.lifetimes);
        let (present, next) = match sight {
            Sight::Unknown | Sight::Wrong => return Ok(false),
            Sight::Absent => {
                let made = Authorities::new(now, None, lifetimes)?;
                (None, made)
            }
            Sight::There(seen) => {
                let next = match seen.authorities.step(now, seen.request(), lifetimes)? {
                    Some(next) => Some(next),
                    None => told.and_then(|edition| seen.authorities.told(edition, now)),
                };
                // Read at a look and not at each change: whoever is waited for does not decide how often this is written.
                let waits_for = waits_for(&self.waits_for.borrow());
                let is_named = seen.annotation(WAITS_FOR) == waits_for.as_deref();
                let next = match next {
                    None if is_named => return Ok(false),
                    None => (*seen.authorities).clone(),
                    Some(next) => next,
                };
                let mut secret = seen.secret.clone();
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

    async fn write(&self, present: Option<Secret>, authorities: &Authorities) -> Result<bool, WriteError> {
        let data = Some(authorities.to_data());
        let params = PostParams::default();
        let written = match present {
            None => {
                let label =
                    ("app.kubernetes.io/managed-by".to_owned(), "pingsix-gateway-controller".to_owned());
                let metadata = ObjectMeta {
                    name: Some(self.options.secret.name.to_string()),
                    labels: Some([label].into()),
                    ..ObjectMeta::default()
                };
                let secret = Secret { metadata, data, ..Secret::default() };
                within(LIMIT, self.api.create(&params, &secret)).await
            }
            Some(secret) => {
                let secret = Secret { data, ..secret };
                within(LIMIT, self.api.replace(&self.options.secret.name, &params, &secret)).await
            }
        };
        match written {
            Ok(_) => {
                tracing::info!(
                    secret = %self.options.secret, edition = ?authorities.edition(), phase = authorities.phase_name(),
                    "the feed's authority was written"
                );
                Ok(true)
            }
            // Somebody else was faster, which will be seen.
            Err(fault)
                if fault.category == FaultCategory::Conflict || fault.category == FaultCategory::NotFound =>
            {
                Ok(true)
            }
            Err(fault) => Err(fault.into()),
        }
    }
}

/// The value of [`WAITS_FOR`]; `None` when nobody is waited for.
fn waits_for(owners: &BTreeSet<ObjectKey>) -> Option<String> {
    let names: Vec<String> = owners.iter().take(NAMED).map(ToString::to_string).collect();
    match owners.len().saturating_sub(NAMED) {
        _ if names.is_empty() => None,
        0 => Some(names.join(", ")),
        more => Some(format!("{} and {more} more", names.join(", "))),
    }
}
