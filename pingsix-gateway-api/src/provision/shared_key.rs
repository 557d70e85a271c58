//! The key of an installation, in a Secret that all replicas share.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::core::ObjectMeta;
use kube_runtime::{WatchStreamExt as _, watcher};
use pingsix_translate::ObjectName;
use rcgen::KeyPair;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::sleep;

use super::{InstallationKey, MANAGED_BY};
use crate::api_error::{ApiError, ApiErrorCategory, within};
use crate::wait;

/// The key of the Secret's data.
const KEY: &str = "diagnostics";

/// The timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Follows the key, and creates one if there is none. The value is `None` until a key is known. An invalid key and
/// the removal of the Secret leave the known key.
///
/// All replicas need the same key, and the Pods follow it. So a key that another client has written replaces the
/// known one, also at its author.
pub(crate) fn start(
    client: Client,
    name: ObjectName,
    managed_by: String,
) -> (impl Future<Output = ()> + Send, watch::Receiver<Option<InstallationKey>>) {
    let (known, receiver) = watch::channel(None);
    let follow = async move {
        let api = Api::namespaced(client, &name.namespace);
        follow(&api, &name, &managed_by, &known).await;
    };
    (follow, receiver)
}

async fn follow(
    api: &Api<Secret>,
    name: &ObjectName,
    managed_by: &str,
    known: &watch::Sender<Option<InstallationKey>>,
) {
    let mut versions = std::pin::pin!(watcher::watch_object(api.clone(), &name.name).default_backoff());
    let (mut complaint, mut is_absent) = (None, false);
    loop {
        let seen = tokio::select! {
            Some(version) = versions.next() => version.map_err(|error| ApiError::from(&error)),
            // Several replicas may try; one succeeds, and the others observe its key.
            () = sleep(RETRY_DELAY), if is_absent => Ok(None),
            // The channel stays open, because its end would look like a change.
            else => return std::future::pending().await,
        };
        is_absent = matches!(seen, Ok(None));
        let error = match seen {
            Ok(Some(secret)) => take(secret, known).err(),
            Ok(None) => make(api, name, managed_by).await.err(),
            Err(error) => Some(error),
        };
        let Some(error) = error else {
            complaint = None;
            continue;
        };
        // Another replica was faster.
        if error.category != ApiErrorCategory::Conflict
            && complaint.replace(error.category) != Some(error.category)
        {
            let category = error.category.as_str();
            tracing::warn!(secret = %name, category, error = %error, "the key of status pages cannot be read or made; trying again");
        }
    }
}

/// Reads the key in a Secret.
fn take(secret: Secret, known: &watch::Sender<Option<InstallationKey>>) -> Result<(), ApiError> {
    let bytes = secret.data.unwrap_or_default().remove(KEY).unwrap_or_default();
    let message = format!("its entry {KEY} has fewer than 32 bytes");
    let key =
        InstallationKey::new(&bytes.0).ok_or_else(|| ApiError::new(ApiErrorCategory::Malformed, &message))?;
    wait::set(known, Some(key));
    Ok(())
}

/// Creates a Secret with a key; its watch delivers it.
async fn make(api: &Api<Secret>, name: &ObjectName, managed_by: &str) -> Result<(), ApiError> {
    let bytes =
        random().ok_or_else(|| ApiError::new(ApiErrorCategory::Malformed, "there is no randomness"))?;
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.name.to_string()),
            labels: Some(BTreeMap::from([(MANAGED_BY.to_owned(), managed_by.to_owned())])),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(KEY.to_owned(), ByteString(bytes))])),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    };
    within(REQUEST_TIMEOUT, api.create(&PostParams::default(), &secret)).await?;
    Ok(())
}

/// Thirty-two random bytes: the digest of a private key that has no other use.
fn random() -> Option<Vec<u8>> {
    Some(Sha256::digest(KeyPair::generate().ok()?.serialized_der()).to_vec())
}
