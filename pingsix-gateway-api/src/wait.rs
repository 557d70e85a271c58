//! Values and objects that change.

use std::fmt;

use futures::StreamExt as _;
use kube::{Api, Resource};
use kube_runtime::utils::Backoff;
use kube_runtime::{WatchStreamExt as _, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::api_error::ApiError;

/// Waits for a change; forever without a receiver.
pub(crate) async fn changed<T>(receiver: Option<&mut watch::Receiver<T>>) {
    if let Some(receiver) = receiver
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Sets a value. Receivers see no change if the value is the same.
pub(crate) fn set<T: PartialEq>(sender: &watch::Sender<T>, value: T) {
    sender.send_if_modified(|held| {
        let is_other = *held != value;
        *held = value;
        is_other
    });
}

/// Follows one object until the future is dropped; `None` while it does not exist. A lasting error is logged once, with
/// this message.
pub(crate) async fn follow<K>(
    (api, name): (Api<K>, &str),
    backoff: impl Backoff,
    message: &str,
    mut see: impl FnMut(Option<K>),
) where
    K: Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    let object = format!("{}/{name}", api.resource_url());
    let mut versions = std::pin::pin!(watcher::watch_object(api, name).backoff(backoff));
    let mut complaint = None;
    while let Some(version) = versions.next().await {
        match version {
            Ok(object) => {
                complaint = None;
                see(object);
            }
            Err(error) => {
                let error = ApiError::from(&error);
                if complaint.replace(error.category) != Some(error.category) {
                    tracing::warn!(object, category = error.category.as_str(), error = %error, "{message}");
                }
            }
        }
    }
}
