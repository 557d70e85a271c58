//! The discovery of kinds.
//!
//! A list that is answered 404 proves nothing: a proxy, or an API server that starts, answers the same. A kind counts
//! as absent only if the API server answers the question what it serves, and the kind is not in the answer.

use std::time::Duration;

use kube::{Client, Resource as _};

use super::fault::{Step, WatchFault};
use super::object::WatchedKind;
use crate::fault::{FaultCategory, within};

/// The availability of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The kind is watched.
    Watching,
    /// The API server does not serve it, or not in the version that is needed: it has no objects. Looked for again from
    /// time to time.
    Absent {
        /// The missing definition.
        message: String,
    },
    /// We may not read it. What is known of its objects stays.
    Forbidden {
        /// The message of the API server.
        message: String,
    },
    /// The API server does not answer, or not sensibly. What is known of its objects stays.
    Unreachable {
        /// The fault.
        message: String,
    },
}

impl Availability {
    /// The availability after a failure; `None` if the next attempt is expected to succeed.
    pub(super) fn after(fault: &WatchFault) -> Option<Self> {
        let message = fault.to_string();
        match (fault.step, fault.category()) {
            (Step::Read, _) | (_, FaultCategory::Expired) => None,
            (Step::Discovery | Step::List | Step::Open, FaultCategory::Forbidden) => {
                Some(Self::Forbidden { message })
            }
            (
                Step::Discovery | Step::List | Step::Open,
                FaultCategory::Unauthorized
                | FaultCategory::NotFound
                | FaultCategory::Conflict
                | FaultCategory::Throttled
                | FaultCategory::Refused
                | FaultCategory::Server
                | FaultCategory::Timeout
                | FaultCategory::Transport
                | FaultCategory::Malformed,
            ) => Some(Self::Unreachable { message }),
        }
    }
}

/// The answer of the API server about a kind.
pub(super) enum Served {
    Yes,
    No { message: String },
}

/// Asks the API server whether it serves a kind in the version that is needed.
pub(super) async fn served<K: WatchedKind>(client: &Client, limit: Duration) -> Result<Served, WatchFault> {
    within(limit, ask::<K>(client)).await.map_err(|fault| WatchFault::at(Step::Discovery, fault))
}

async fn ask<K: WatchedKind>(client: &Client) -> Result<Served, kube::Error> {
    let (kind, group, version, plural) =
        (K::KIND, K::Wire::group(&()), K::Wire::version(&()), K::Wire::plural(&()));
    if group.is_empty() {
        let resources = client.list_core_api_resources(&version).await?;
        return Ok(if resources.resources.iter().any(|resource| resource.name == plural) {
            Served::Yes
        } else {
            Served::No { message: format!("The API server does not serve {kind}.") }
        });
    }
    let groups = client.list_api_groups().await?.groups;
    let Some(served) = groups.into_iter().find(|served| served.name == group) else {
        let message = format!("The API server does not serve {kind}: it knows nothing of {group}.");
        return Ok(Served::No { message });
    };
    let mut others = Vec::new();
    for served in served.versions {
        let resources = client.list_api_group_resources(&served.group_version).await?;
        if resources.resources.iter().any(|resource| resource.name == plural) {
            if served.version == version {
                return Ok(Served::Yes);
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
    Ok(Served::No { message })
}
