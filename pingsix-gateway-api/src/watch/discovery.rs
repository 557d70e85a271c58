//! The discovery of kinds.
//!
//! A 404 for a list proves nothing: proxies and starting API servers return it, too. A kind is absent when discovery
//! succeeds without the kind.

use std::time::Duration;

use kube::{Client, Resource as _};

use super::error::{Step, WatchError};
use super::object::WatchedKind;
use crate::api_error::{ApiErrorCategory, within};

/// The availability of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The kind is watched.
    Watching,
    /// The API server does not serve the kind in the required version, so the kind has no objects. Discovery is
    /// repeated periodically.
    Absent {
        /// The missing definition.
        message: String,
    },
    /// The controller lacks the permission to read the kind. The known objects stay.
    Forbidden {
        /// The message of the API server.
        message: String,
    },
    /// The API server does not answer, or the answer is invalid. The known objects stay.
    Unreachable {
        /// The error.
        message: String,
    },
}

impl Availability {
    /// The availability after a failure; `None` if the next attempt is expected to succeed.
    pub(super) fn after(error: &WatchError) -> Option<Self> {
        let message = error.to_string();
        let category = error.category();
        if error.step == Step::Read || category == ApiErrorCategory::Expired {
            None
        } else if category == ApiErrorCategory::Forbidden {
            Some(Self::Forbidden { message })
        } else {
            Some(Self::Unreachable { message })
        }
    }
}

/// The result of discovery for a kind.
pub(super) enum Discovery {
    Served,
    Missing { message: String },
}

/// Discovers whether the API server serves a kind in the required version.
pub(super) async fn discover<K: WatchedKind>(
    client: &Client,
    limit: Duration,
) -> Result<Discovery, WatchError> {
    within(limit, request::<K>(client)).await.map_err(|error| WatchError::at(Step::Discovery, error))
}

async fn request<K: WatchedKind>(client: &Client) -> Result<Discovery, kube::Error> {
    let (kind, group, version, plural) =
        (K::KIND, K::Wire::group(&()), K::Wire::version(&()), K::Wire::plural(&()));
    if group.is_empty() {
        let resources = client.list_core_api_resources(&version).await?;
        return Ok(if resources.resources.iter().any(|resource| resource.name == plural) {
            Discovery::Served
        } else {
            Discovery::Missing { message: format!("The API server does not serve {kind}.") }
        });
    }
    let groups = client.list_api_groups().await?.groups;
    let Some(served) = groups.into_iter().find(|served| served.name == group) else {
        let message = format!("The API server does not serve {kind}: it knows nothing of {group}.");
        return Ok(Discovery::Missing { message });
    };
    let mut others = Vec::new();
    for served in served.versions {
        let resources = client.list_api_group_resources(&served.group_version).await?;
        if resources.resources.iter().any(|resource| resource.name == plural) {
            if served.version == version {
                return Ok(Discovery::Served);
            }
            others.push(served.version);
        }
    }
    let message = if others.is_empty() {
        format!("The API server does not serve {kind} of {group}.")
    } else {
        let others = others.join(" and ");
        format!("The API server serves {kind} only as {others}, and {version} is needed: install newer CRDs.")
    };
    Ok(Discovery::Missing { message })
}
