//! The key of an installation, in a Secret that all replicas share.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::core::ObjectMeta;
use pingsix_translate::ObjectName;
use rcgen::KeyPair;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{InstallationKey, MANAGED_BY};
use crate::fault::{Fault, FaultCategory, within};

/// The key of the Secret's data.
const KEY: &str = "diagnostics";

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long after a failure it is tried again.
const PAUSE: Duration = Duration::from_secs(2);

/// Reads the key, or makes one if there is none. It stays `None` until that has succeeded.
pub(crate) fn start(
    client: Client,
    name: ObjectName,
    managed_by: String,
    stop: CancellationToken,
) -> (impl Future<Output = ()> + Send, watch::Receiver<Option<InstallationKey>>) {
    let (known, receiver) = watch::channel(None);
    let find = async move {
        let mut complaint = None;
        loop {
            match find(&client, &name, &managed_by).await {
                Ok(key) => {
                    known.send_replace(Some(key));
                    // The channel stays open, so that nobody takes its end for a change.
                    std::future::pending::<()>().await;
                }
                Err(fault) => {
                    if complaint.replace(fault.category) != Some(fault.category) {
                        let category = fault.category.as_str();
                        tracing::warn!(secret = %name, category, error = %fault, "the key of status pages cannot be read or made; trying again");
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    };
    let find = async move {
        stop.run_until_cancelled(find).await;
    };
    (find, receiver)
}

async fn find(client: &Client, name: &ObjectName, managed_by: &str) -> Result<InstallationKey, Fault> {
    let api: Api<Secret> = Api::namespaced(client.clone(), &name.namespace);
    if let Some(secret) = within(TIMEOUT, api.get_opt(&name.name)).await? {
        let bytes = secret.data.unwrap_or_default().remove(KEY).unwrap_or_default();
        let message = format!("its entry {KEY} has fewer than 32 bytes");
        return InstallationKey::new(&bytes.0).ok_or_else(|| Fault::new(FaultCategory::Malformed, &message));
    }
    let bytes = random().ok_or_else(|| Fault::new(FaultCategory::Malformed, "there is no randomness"))?;
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.name.to_string()),
            labels: Some(BTreeMap::from([(MANAGED_BY.to_owned(), managed_by.to_owned())])),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(KEY.to_owned(), ByteString(bytes.clone()))])),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    };
    // Of two replicas that do this at the same time, one gets a conflict, and reads what the other has made.
    within(TIMEOUT, api.create(&PostParams::default(), &secret)).await?;
    InstallationKey::new(&bytes).ok_or_else(Fault::conflict)
}

/// Thirty-two bytes that nobody can guess: a digest of a key that was made for nothing else.
fn random() -> Option<Vec<u8>> {
    Some(Sha256::digest(KeyPair::generate().ok()?.serialized_der()).to_vec())
}
