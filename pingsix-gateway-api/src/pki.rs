//! The certificates of the feed: an authority in a Secret of the controller, and the certificates that it signs.
//!
//! ```text
//! Secret (namespace of the controller) ◄── create, replace: the leader alone, with the version it has read
//!    │ watch, every replica
//!    ▼
//! Authorities ──► the server's certificate, each replica's own, made in memory ──► embedded server
//!    │            (renewed in time; trusts every authority of the Secret)
//!    ▼
//! FeedAuthority::issue(owner, prefixes, what its Secret holds) ──► that, or another FeedIdentity ──► Pods of PingSIX
//! AuthorityOptions::clients ──► Secrets ──► PingSIX that others run
//! ```
//!
//! - **The permissions of a client** are in its certificate: a URI for each prefix with the UID of its owner
//!   ([`pingsix_sink::embedded::feed_uri_of_owner`]), which the server reads
//!   ([`Access::certificate_uris`](pingsix_sink::embedded::Access::certificate_uris)).
//! - **Keys** are ECDSA P-256. Those of servers never leave their process; those of clients are in the Secret of their data
//!   plane and nowhere else; that of the authority is in its Secret alone, and in the memory of replicas.
//! - **Renewal.** A certificate is replaced when two thirds of its time are over. A server takes the new one at once. PingSIX
//!   reads its files for each new connection, so a Pod never restarts for them; the server closes a connection when the
//!   certificate it was made with expires, and PingSIX is back a second later with its successor.
//! - **Rotation of the authority** begins when two thirds of its time are over, or when the annotation [`ROTATE`] of
//!   the Secret asks for it. First all processes trust the next authority, then it signs, then the former one is no
//!   longer trusted. [`Authorities`] says when each step may happen, and why processes accept each other meanwhile.
//!   The annotation [`WAITS_FOR`] names owners whose Secrets cannot be written and for whom a step waits.
//! - **Emergency.** Deleting the Secret ends the trust in the authority: the leader creates another one at once,
//!   connections are closed, and PingSIX serves its last configuration until it gets a certificate of the new one.
//! - **An unusable Secret** changes nothing: an error names the wrong key, all processes keep their certificates, and
//!   the Secret is not overwritten.
//!
//! All modules apart from `reconciler` and `server` are pure: they get the time, and need only randomness for keys.

mod authority;
mod certificate;
mod clients;
mod identity;
mod options;
mod reconciler;
mod record;
mod rotation;
mod server;
#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;

use crate::api_error::{ApiError, within};

#[doc(hidden)]
pub use authority::Authority;
#[doc(hidden)]
pub use certificate::Certificate;
#[doc(hidden)]
pub use identity::{ClientIdentity, FeedIdentity, ReissueReason};
pub use options::AuthorityOptions;
pub(crate) use reconciler::{FeedAuthority, IdentityError, IssuedIdentity, start};
pub use record::{ROTATE, WAITS_FOR};
#[doc(hidden)]
pub use rotation::{Authorities, Edition};
pub use rotation::{Lifetimes, LifetimesError};
#[doc(hidden)]
pub use server::ServerIdentity;
pub(crate) use server::serve;

/// An error for the log.
type LoggedError = Box<dyn std::error::Error + Send + Sync>;

/// The timeout of a request to the API server.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The label of the controller's own Secrets.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "pingsix-gateway-controller");

/// Creates a Secret of the controller, or replaces the version that was read.
async fn write_secret(api: &Api<Secret>, name: &str, mut secret: Secret) -> Result<Secret, ApiError> {
    let params = PostParams::default();
    if secret.metadata.name.is_some() {
        return within(REQUEST_TIMEOUT, api.replace(name, &params, &secret)).await;
    }
    let (label, value) = MANAGED_BY;
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.labels = Some([(label.to_owned(), value.to_owned())].into());
    within(REQUEST_TIMEOUT, api.create(&params, &secret)).await
}

/// The Secret has content of another author. The error never shows the content.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its key {key} {problem}")]
pub struct RecordError {
    /// The key of the Secret's data.
    pub key: &'static str,
    /// The error.
    pub problem: &'static str,
}

/// A certificate could not be made.
#[doc(hidden)]
#[derive(Debug, thiserror::Error)]
#[error("a certificate cannot be made: {0}")]
pub struct IssueError(#[from] rcgen::Error);
