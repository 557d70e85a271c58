//! The client certificates of data planes that others run, in Secrets.
//!
//! The leader reads each Secret at intervals and after each change of the authorities, and writes it as soon as its
//! identity is missing, due for renewal, or of an outdated edition ([`Authorities::client_identity`]). Somebody else
//! brings the Secret to PingSIX. A Secret that the controller has not made is left as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use pingsix_sink::Scope;
use pingsix_sink::embedded::feed_uri;
use pingsix_translate::{Kind, ObjectKey, ObjectName};

use super::identity::{ClientIdentity, FeedIdentity};
use super::options::AuthorityOptions;
use super::rotation::Authorities;
use super::{LoggedError, MANAGED_BY, REQUEST_TIMEOUT, write_secret};
use crate::api_error::within;

/// The type of a Secret with a certificate.
const TYPE: &str = "kubernetes.io/tls";

/// Writes the Secrets.
pub(super) struct ClientSecrets {
    client: Client,
    options: Arc<AuthorityOptions>,
    /// The last logged error of each Secret.
    complaints: BTreeMap<ObjectName, String>,
}

impl ClientSecrets {
    pub(super) const fn new(client: Client, options: Arc<AuthorityOptions>) -> Self {
        Self { client, options, complaints: BTreeMap::new() }
    }

    /// Brings all Secrets to the edition of these authorities. Returns the Secrets for which a rotation waits: they lack
    /// the edition, and may hold a certificate that still opens the feed.
    pub(super) async fn write(&mut self, authorities: &Authorities) -> BTreeSet<ObjectKey> {
        let mut behind = BTreeSet::new();
        let options = Arc::clone(&self.options);
        for (name, scopes) in &options.clients {
            let api = Api::namespaced(self.client.clone(), &name.namespace);
            let (outcome, waits) = match within(REQUEST_TIMEOUT, api.get_opt(&name.name)).await {
                Ok(present) => {
                    let held = present.as_ref().filter(|secret| is_ours(secret)).and_then(identity);
                    let waits =
                        held.as_ref().is_some_and(|held| authorities.waits_for(held, options.clock.now()));
                    (self.write_one(&api, name, scopes, authorities, (present, held)).await, waits)
                }
                Err(error) => (Err(error.into()), true),
            };
            let Err(error) = outcome else {
                self.complaints.remove(name);
                continue;
            };
            if waits {
                behind.insert(ObjectKey { kind: Kind::Secret, name: name.clone() });
            }
            let error = error.to_string();
            if self.complaints.get(name) != Some(&error) {
                tracing::warn!(
                    secret = %name,
                    error,
                    "the Secret with a client certificate of the feed cannot be written; retrying"
                );
                self.complaints.insert(name.clone(), error);
            }
        }
        behind
    }

    async fn write_one(
        &self,
        api: &Api<Secret>,
        name: &ObjectName,
        scopes: &BTreeSet<Scope>,
        authorities: &Authorities,
        (present, held): (Option<Secret>, Option<FeedIdentity>),
    ) -> Result<(), LoggedError> {
        if present.as_ref().is_some_and(|secret| !is_ours(secret)) {
            return Err("the Secret exists, and the controller has not made it".into());
        }
        let uris = scopes.iter().map(feed_uri).collect();
        let (now, lifetimes) = (self.options.clock.now(), &self.options.lifetimes);
        let ClientIdentity::Write { identity, because } =
            authorities.client_identity(&name.to_string(), &uris, held.as_ref(), now, lifetimes)?
        else {
            return Ok(());
        };
        let new = || Secret { type_: Some(TYPE.to_owned()), ..Secret::default() };
        let secret = Secret { data: Some(identity.to_data()), ..present.unwrap_or_else(new) };
        write_secret(api, &name.name, secret).await?;
        tracing::info!(secret = %name, reason = because.as_str(), "issued a client certificate of the feed");
        Ok(())
    }
}

/// Whether the controller has made a Secret.
fn is_ours(secret: &Secret) -> bool {
    let (label, value) = MANAGED_BY;
    secret.metadata.labels.as_ref().and_then(|labels| labels.get(label)).is_some_and(|of| of == value)
}

fn identity(secret: &Secret) -> Option<FeedIdentity> {
    FeedIdentity::from_data(secret.data.as_ref()?)
}
