//! What an earlier process has published of objects that went while none ran: a target that outlives the process still has
//! it, and no event will ever tell of it.
//!
//! Targets that can [say who published](pingsix_sink::Sink::publish_as) are asked once by each leader, when it knows
//! everything that there is. The name is that of the controller and of the cluster, so that nothing of another installation is
//! taken for ours. What is found is withdrawn only if the API server itself says that its Gateway or IngressClass is not
//! there, or if what was made of that has no such data plane; and not at all by a controller that does not watch all of the
//! cluster, for which what it does not see may be there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::networking::v1::IngressClass;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt as _};
use pingsix_sink::{Scope, SinkError};
use pingsix_translate::snapshot::Gateway;
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey, ObjectName};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Feed, Progress};
use crate::fault::{Fault, within};
use crate::leader::Leadership;
use crate::watch::about;

/// Its UID is that of the cluster: it is there from the beginning, and cannot be deleted.
const CLUSTER: &str = "kube-system";

/// How long the API server may take to answer.
const LIMIT: Duration = Duration::from_secs(10);

/// How long to wait after something has failed.
const RETRY: Duration = Duration::from_secs(10);

/// A data plane that nobody has asked for since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Orphan {
    pub(super) data_plane: DataPlaneKey,
    /// Whether the API server does not have the object that it belongs to.
    pub(super) is_gone: bool,
}

/// Looks for them.
pub(super) struct Orphanage<F> {
    pub(super) client: Client,
    pub(super) feed: Arc<F>,
    pub(super) root: String,
    pub(super) controller: String,
    /// Whether everything in the cluster is watched.
    pub(super) sees_all: bool,
    pub(super) leadership: Leadership,
    pub(super) progress: watch::Receiver<Progress>,
}

/// Why nothing is known.
#[derive(Debug, thiserror::Error)]
enum SearchError {
    #[error("the API server cannot be asked")]
    ApiServer(#[from] Fault),
    #[error("a target cannot be asked")]
    Target(#[from] SinkError),
}

impl SearchError {
    /// Whether asking again may help.
    fn may_pass(&self) -> bool {
        match self {
            Self::ApiServer(_) => true,
            // Whoever may read its own scopes only may not look for others.
            Self::Target(error) => error.is_retryable() && error.category() != "etcd_permission_denied",
        }
    }
}

impl<F: Feed + 'static> Orphanage<F> {
    /// Starts to look, until it is stopped.
    pub(super) fn start(
        self,
        stop: &CancellationToken,
        tasks: &mut JoinSet<()>,
    ) -> mpsc::Receiver<Vec<Orphan>> {
        let (found, receiver) = mpsc::channel(1);
        let stop = stop.clone();
        tasks.spawn(async move {
            stop.run_until_cancelled(Box::pin(self.run(found))).await;
        });
        receiver
    }

    /// Names the publisher, then looks once for each time that this replica leads.
    async fn run(mut self, orphans: mpsc::Sender<Vec<Orphan>>) {
        let publisher = loop {
            match self.publisher().await {
                Ok(Some(publisher)) => break publisher,
                Ok(None) => tracing::debug!(namespace = CLUSTER, "the cluster has no name"),
                Err(fault) => tracing::debug!(%fault, "the name of the cluster is not known yet"),
            }
            sleep(about(RETRY)).await;
        };
        self.feed.publish_as(&publisher);
        if !self.sees_all {
            return;
        }
        let mut complaint = None;
        loop {
            self.leadership.gained().await;
            if self.progress.wait_for(Progress::is_ready).await.is_err() {
                return;
            }
            match self.search().await {
                Ok(found) => {
                    if !found.is_empty() && orphans.send(found).await.is_err() {
                        return;
                    }
                    self.leadership.lost().await;
                }
                Err(error) => {
                    let fault = std::error::Error::source(&error).map(ToString::to_string);
                    // Said once: what cannot be asked cannot be published to either, and that is told elsewhere.
                    if complaint != fault {
                        tracing::warn!(%error, fault, "it is not known what an earlier process may have left at targets");
                    }
                    complaint = fault;
                    if error.may_pass() {
                        sleep(about(RETRY * 6)).await;
                    } else {
                        self.leadership.lost().await;
                    }
                }
            }
        }
    }

    /// The name of this controller in this cluster.
    async fn publisher(&self) -> Result<Option<String>, Fault> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let only = ListParams::default().fields(&format!("metadata.name={CLUSTER}"));
        let found = within(LIMIT, namespaces.list_metadata(&only)).await?;
        let uid = found.items.into_iter().find_map(|namespace| namespace.metadata.uid);
        Ok(uid.map(|uid| format!("{}@{uid}", self.controller)))
    }

    async fn search(&self) -> Result<Vec<Orphan>, SearchError> {
        let mut found = BTreeSet::new();
        for root in [&*self.root, &format!("{}-ingress", self.root), &format!("{}-stream", self.root)] {
            let own = self.feed.own_scopes(&Scope::new(root)?).await?;
            found.extend(own.iter().filter_map(|scope| data_plane(scope, &self.root)));
        }
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // After the targets: whatever is published is there.
        let mut owners = self.names::<Gateway>(Kind::Gateway).await?;
        owners.extend(self.names::<IngressClass>(Kind::IngressClass).await?);
        let orphan = |data_plane: DataPlaneKey| {
            let is_gone = !owners.contains(&data_plane.owner());
            Orphan { data_plane, is_gone }
        };
        Ok(found.into_iter().map(orphan).collect())
    }

    /// All objects of a kind, as the API server has them now.
    async fn names<K>(&self, kind: Kind) -> Result<BTreeSet<ObjectKey>, Fault>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let listed = within(LIMIT, api.list_metadata(&ListParams::default())).await?;
        let key = |object: kube::core::PartialObjectMeta<K>| {
            ObjectKey::new(kind, object.namespace().unwrap_or_default(), object.name_any())
        };
        Ok(listed.items.into_iter().map(key).collect())
    }
}

/// The data plane that is published there, if it can be one.
fn data_plane(scope: &Scope, root: &str) -> Option<DataPlaneKey> {
    let rest = scope.as_str().strip_prefix(root)?;
    let name = |text: &str| {
        let (namespace, name) = text.split_once('/')?;
        Some(ObjectName::new(namespace, name))
    };
    let data_plane = if let Some(class) = rest.strip_prefix("-ingress/") {
        DataPlaneKey::Ingress { class: class.into() }
    } else if let Some(gateway) = rest.strip_prefix("-stream/") {
        DataPlaneKey::Stream { gateway: name(gateway)? }
    } else {
        let gateway = rest.strip_prefix('/')?;
        let (gateway, port) = match gateway.rsplit_once(':') {
            Some((gateway, port)) => (gateway, Some(port.parse().ok()?)),
            None => (gateway, None),
        };
        DataPlaneKey::Gateway { gateway: name(gateway)?, port }
    };
    (data_plane.prefix(root) == scope.as_str()).then_some(data_plane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_plane_is_told_from_its_prefix_and_from_nothing_else() {
        let gateway = |port| DataPlaneKey::Gateway { gateway: ObjectName::new("shop", "web"), port };
        for known in [
            gateway(None),
            gateway(Some(8443)),
            DataPlaneKey::Ingress { class: "web".into() },
            DataPlaneKey::Stream { gateway: ObjectName::new("shop", "web") },
        ] {
            let scope = Scope::new(known.prefix("/pingsix")).unwrap();
            assert_eq!(data_plane(&scope, "/pingsix"), Some(known));
        }
        for other in [
            "/pingsix",
            "/pingsix/web",
            "/pingsixes/shop/web",
            "/pingsix/shop/web:x",
            "/pingsix/shop/web:080",
        ] {
            assert_eq!(data_plane(&Scope::new(other).unwrap(), "/pingsix"), None, "{other}");
        }
    }
}
