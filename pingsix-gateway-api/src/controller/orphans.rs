//! The orphan collector: withdraws publications of objects that were deleted while no controller ran. No event reports
//! such objects.
//!
//! A new leader searches each target with [marks](pingsix_sink::Sink::publish_as) once, after the initial lists. The mark
//! has the names of the controller and of the cluster, so publications of other installations are left alone. An orphan is
//! withdrawn if the API server has no such Gateway or IngressClass, or if the translation of the owner has no such data
//! plane. A controller that watches a part of the cluster withdraws no orphans, because it does not see all owners.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::networking::v1::IngressClass;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt as _};
use pingsix_sink::backoff::jittered;
use pingsix_sink::{Scope, SinkError};
use pingsix_translate::snapshot::Gateway;
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::attached_sinks::{OpenSinks, SinkId};
use super::tasks::Tasks;
use super::{ControllerOptions, Progress, SinkRouter};
use crate::api_error::{ApiError, within};
use crate::leader::Leadership;
use crate::watch::Namespaces;

/// The namespace whose UID identifies the cluster. Kubernetes creates it first, and does not allow its deletion.
const CLUSTER: &str = "kube-system";

/// The time limit of a request to the API server.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// A published data plane without a publication of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Orphan {
    pub(super) data_plane: DataPlaneKey,
    /// Whether the owner is missing in the API server.
    pub(super) is_gone: bool,
    /// The sink of parameters with the documents; `None` for the other sinks.
    pub(super) at: Option<SinkId>,
}

/// A message of the collector to the engine.
#[derive(Debug)]
pub(super) enum CollectorEvent {
    /// Publications have marks from now on. A publication from before has none, so a later process would not find it.
    MarksBegin,
    /// A search found these publications.
    Found(Vec<Orphan>),
}

/// Searches for orphans.
pub(super) struct OrphanCollector {
    client: Client,
    sinks: Arc<SinkRouter>,
    /// The open sinks of parameters.
    attached: watch::Receiver<OpenSinks>,
    root: String,
    controller: String,
    /// Whether the controller watches the whole cluster.
    sees_all: bool,
    leadership: Leadership,
    progress: watch::Receiver<Progress>,
}

/// An error of a search.
#[derive(Debug, thiserror::Error)]
enum SearchError {
    #[error("the API server cannot be asked")]
    ApiServer(#[from] ApiError),
    #[error("a target cannot be asked")]
    Target(#[from] SinkError),
}

impl SearchError {
    /// Whether another search may succeed.
    fn may_pass(&self) -> bool {
        match self {
            Self::ApiServer(_) => true,
            // A user with permissions for its own scopes cannot list others.
            Self::Target(error) => error.is_retryable() && error.category() != "etcd_permission_denied",
        }
    }
}

/// The result of a search.
struct SearchResult {
    found: Vec<Orphan>,
    /// The error of a target or of the API server.
    error: Option<SearchError>,
}

impl OrphanCollector {
    pub(super) fn new(
        options: &ControllerOptions,
        client: &Client,
        sinks: &Arc<SinkRouter>,
        leadership: &Leadership,
        progress: &watch::Sender<Progress>,
    ) -> Self {
        Self {
            client: client.clone(),
            sinks: Arc::clone(sinks),
            attached: sinks.attached().watch(),
            root: options.translation.root.clone(),
            controller: options.translation.controller_name.clone(),
            sees_all: options.watch.namespaces == Namespaces::All && options.watch.labels.is_none(),
            leadership: leadership.clone(),
            progress: progress.subscribe(),
        }
    }

    /// Starts the collector.
    pub(super) fn start(self, tasks: &mut Tasks) -> mpsc::Receiver<CollectorEvent> {
        let (events, receiver) = mpsc::channel(1);
        tasks.spawn(self.run(events));
        receiver
    }

    /// Marks publications, then searches once in each term of leadership. A sink that is opened in the term is searched
    /// then.
    async fn run(mut self, events: mpsc::Sender<CollectorEvent>) {
        let publisher = loop {
            match self.publisher().await {
                Ok(Some(publisher)) => break publisher,
                Ok(None) => tracing::debug!(namespace = CLUSTER, "the cluster has no name"),
                Err(error) => tracing::debug!(fault = %error, "the name of the cluster is not known yet"),
            }
            sleep(jittered(RETRY_DELAY)).await;
        };
        self.sinks.publish_as(&publisher);
        if events.send(CollectorEvent::MarksBegin).await.is_err() || !self.sees_all {
            return;
        }
        let (mut complaint, mut asked) = (None, BTreeSet::new());
        loop {
            if !self.leadership.is_held() {
                asked.clear();
            }
            self.leadership.gained().await;
            if self.progress.wait_for(Progress::is_ready).await.is_err() {
                return;
            }
            self.attached.mark_unchanged();
            let SearchResult { found, error } = self.search(&mut asked).await;
            if !found.is_empty() && events.send(CollectorEvent::Found(found)).await.is_err() {
                return;
            }
            let told = error.as_ref().map(|error| {
                std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
            });
            // Logged once: publications to such a target fail, too, and are logged.
            if let Some(error) = error.as_ref().filter(|_| complaint != told) {
                tracing::warn!(%error, fault = told, "cannot search targets for publications of an earlier process");
            }
            complaint = told;
            if error.is_some_and(|error| error.may_pass()) {
                sleep(jittered(RETRY_DELAY * 6)).await;
                continue;
            }
            tokio::select! {
                () = self.leadership.lost() => asked.clear(),
                changed = self.attached.changed() => if changed.is_err() { return },
            }
        }
    }

    /// The mark of this controller in this cluster.
    async fn publisher(&self) -> Result<Option<String>, ApiError> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let only = ListParams::default().fields(&format!("metadata.name={CLUSTER}"));
        let found = within(REQUEST_TIMEOUT, namespaces.list_metadata(&only)).await?;
        let uid = found.items.into_iter().find_map(|namespace| namespace.metadata.uid);
        Ok(uid.map(|uid| format!("{}@{uid}", self.controller)))
    }

    /// Searches the sinks that were not searched: the sinks of the router, which have no id, and the open sinks of
    /// parameters. A sink that cannot be read does not stop the search of the others.
    async fn search(&self, asked: &mut BTreeSet<Option<SinkId>>) -> SearchResult {
        let open = self.attached.borrow().clone();
        asked.retain(|number| number.is_none_or(|number| open.contains_key(&number)));
        let (mut found, mut answered, mut error) = (Vec::new(), Vec::new(), None);
        let targets = std::iter::once(None).chain(open.keys().copied().map(Some));
        for target in targets.filter(|target| !asked.contains(target)).collect::<Vec<_>>() {
            match self.scopes_at(target).await {
                Ok(own) => {
                    let planes =
                        own.iter().filter_map(|scope| DataPlaneKey::from_prefix(scope.as_str(), &self.root));
                    found.extend(planes.map(|data_plane| (data_plane, target)));
                    answered.push(target);
                }
                Err(of_target) => {
                    let of_target = SearchError::from(of_target);
                    // Another search of this target would fail in the same way.
                    if !of_target.may_pass() {
                        answered.push(target);
                    }
                    error = error.filter(SearchError::may_pass).or(Some(of_target));
                }
            }
        }
        if found.is_empty() {
            asked.extend(answered);
            return SearchResult { found: Vec::new(), error };
        }
        // After the targets, so that the list has the owners of all publications.
        match self.owners().await {
            Ok(owners) => {
                asked.extend(answered);
                let orphan = |(data_plane, at): (DataPlaneKey, Option<SinkId>)| {
                    let is_gone = !owners.contains(&data_plane.owner());
                    Orphan { data_plane, is_gone, at }
                };
                SearchResult { found: found.into_iter().map(orphan).collect(), error }
            }
            Err(error) => SearchResult { found: Vec::new(), error: Some(error.into()) },
        }
    }

    /// The scopes with our mark below our roots at a sink of parameters, or with `None` at the other sinks.
    async fn scopes_at(&self, at: Option<SinkId>) -> Result<BTreeSet<Scope>, SinkError> {
        let mut own = BTreeSet::new();
        for root in [&*self.root, &format!("{}-ingress", self.root), &format!("{}-stream", self.root)] {
            let root = Scope::new(root)?;
            own.extend(self.sinks.own_scopes(&root, at).await?);
        }
        Ok(own)
    }

    /// All Gateways and IngressClasses.
    async fn owners(&self) -> Result<BTreeSet<ObjectKey>, ApiError> {
        let mut owners = self.names::<Gateway>(Kind::Gateway).await?;
        owners.extend(self.names::<IngressClass>(Kind::IngressClass).await?);
        Ok(owners)
    }

    /// All objects of a kind, as the API server has them now.
    async fn names<K>(&self, kind: Kind) -> Result<BTreeSet<ObjectKey>, ApiError>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let listed = within(REQUEST_TIMEOUT, api.list_metadata(&ListParams::default())).await?;
        let key = |object: kube::core::PartialObjectMeta<K>| {
            ObjectKey::new(kind, object.namespace().unwrap_or_default(), object.name_any())
        };
        Ok(listed.items.into_iter().map(key).collect())
    }
}
