//! One pass over the objects of an owner: differing objects are applied, and unwanted ones deleted.
//!
//! **Fence.** Before its first write, a pass has the API server confirm that this replica holds the Lease. Each write
//! carries the version of its object that was observed before that confirmation. So a process that overestimates its
//! leadership, for example because its clock stood still, overwrites nothing of its successor. After a conflict, the
//! object is read, the Lease is confirmed again, and the write is repeated. A new object is created without a
//! version. Both processes may create it, and the leader then corrects it.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use kube::api::{
    Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions, ValidationDirective,
};
use serde_json::{Value, json};
use thiserror::Error;

use super::children::{ChildChange, ChildKey, Observed, ObservedVersion, scaled_by};
use super::object::encoded;
use super::{Child, ChildKind, Objects, certificate};
use crate::api_error::{ApiError, ApiErrorCategory, within};
use crate::digest::short_digest;
use crate::leader::Leadership;

/// The number of attempts of a write after conflicts.
const MAX_ATTEMPTS: usize = 3;

/// The suffix of the field manager of the number of Pods.
const SCALE: &str = "-scale";

/// The applied object, and its version after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Applied {
    intent: String,
    result: String,
}

/// The writer of objects.
pub(super) struct ApiWriter {
    pub(super) client: Client,
    pub(super) field_manager: String,
    pub(super) timeout: Duration,
    pub(super) leadership: Leadership,
}

/// The input of a pass.
#[derive(Debug)]
pub(super) struct PassInput {
    /// The UID of the owner; nothing is applied without one.
    pub(super) uid: Option<String>,
    /// The desired objects; `None` to delete all.
    pub(super) objects: Option<Objects>,
    /// The observed objects of this owner or with these names.
    pub(super) observed: BTreeMap<ChildKey, Observed>,
    /// The objects applied before.
    pub(super) applied: BTreeMap<ChildKey, Applied>,
}

/// The outcome of a pass.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The new observations.
    pub(super) seen: Vec<(ChildKey, ChildChange)>,
    /// The applied objects, of this pass and before.
    pub(super) applied: BTreeMap<ChildKey, Applied>,
    /// The reason for which the pass stopped.
    pub(super) error: Option<PassError>,
}

/// The reason for which a pass stopped. Displays as full sentences.
#[derive(Debug, Error)]
pub(super) enum PassError {
    /// An object of this name has another owner.
    #[error(
        "{kind} \"{name}\" exists and belongs to another owner. The controller does not change the object."
    )]
    Foreign { kind: ChildKind, name: String, uid: String },
    /// A request failed.
    #[error("{}", of_request(verb, *kind, name, error))]
    Request { verb: &'static str, kind: ChildKind, name: String, error: ApiError },
    /// A certificate cannot be made.
    #[error("A certificate cannot be made.")]
    Certificate,
    /// Another replica holds the Lease.
    #[error("Another replica of the controller leads.")]
    Led,
    /// The holder of the Lease could not be confirmed.
    #[error("The controller cannot confirm that it leads: {}.", sentence(.0))]
    Unconfirmed(ApiError),
}

impl PassError {
    /// The delay that the API server asks for.
    pub(super) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Request { error, .. } | Self::Unconfirmed(error) => error.retry_after,
            Self::Foreign { .. } | Self::Certificate | Self::Led => None,
        }
    }

    /// For logs.
    pub(super) const fn category(&self) -> &'static str {
        match self {
            Self::Foreign { .. } => "foreign",
            Self::Request { error, .. } | Self::Unconfirmed(error) => error.category.as_str(),
            Self::Certificate => "certificate",
            Self::Led => "led",
        }
    }
}

fn of_request(verb: &str, kind: ChildKind, name: &str, error: &ApiError) -> String {
    let why = sentence(error);
    if error.category == ApiErrorCategory::Forbidden {
        format!(
            "The controller is not allowed to {verb} {kind} \"{name}\": {why}. The manifests in deploy/data-planes grant the \
             permission."
        )
    } else {
        format!("The controller cannot {verb} {kind} \"{name}\": {why}.")
    }
}

fn sentence(error: &ApiError) -> String {
    error.to_string().trim_end_matches('.').to_owned()
}

impl PassInput {
    /// Applies and deletes objects until the first error.
    pub(super) async fn pass(mut self, hand: &ApiWriter) -> Outcome {
        let mut seen = Vec::new();
        let error = self.try_pass(hand, &mut seen).await.err();
        Outcome { seen, applied: self.applied, error }
    }

    async fn try_pass(
        &mut self,
        hand: &ApiWriter,
        seen: &mut Vec<(ChildKey, ChildChange)>,
    ) -> Result<(), PassError> {
        let objects = self.objects.take();
        let mut is_confirmed = false;
        if let (Some(objects), Some(uid)) = (&objects, &self.uid) {
            for child in objects.children.iter().chain(&objects.certificate) {
                if let Some(child) =
                    objects.certificate.as_ref().filter(|_| child.kind == ChildKind::Deployment)
                {
                    let key = (child.kind, child.name.clone());
                    if !self.observed.contains_key(&key) && hand.get(child, uid).await?.is_none() {
                        hand.lead(&mut is_confirmed).await?;
                        let observed = hand.create(child).await?;
                        self.observed.insert(key.clone(), observed.clone());
                        seen.push((key, ChildChange::There(Box::new(observed))));
                    }
                }
                let key = (child.kind, child.name.clone());
                let observed = self.observed.get(&key);
                let intent = short_digest(&child.object.to_string());
                let has = |applied: &Applied| {
                    applied.intent == intent
                        && observed.is_some_and(|observed| observed.digest == applied.result)
                };
                if self.applied.get(&key).is_some_and(has) {
                    continue;
                }
                let there = match observed {
                    Some(observed) => Some(owned(child, observed, uid)?.observed_version()),
                    // The object may exist without our label.
                    None => hand.get(child, uid).await?,
                };
                hand.lead(&mut is_confirmed).await?;
                if let Some(ObservedVersion { uid, .. }) = there.as_ref().filter(|_| leaves_scale(child)) {
                    let is_scaled = |observed: &Observed| observed.scaled_by.contains(&hand.field_manager);
                    // An unobserved Deployment may have a scaler as well.
                    if observed.is_none_or(is_scaled) {
                        hand.hand_over_scale(child, uid).await?;
                    }
                }
                let observed = hand.apply_observed(child, there, uid).await?;
                let result = observed.digest.clone();
                self.applied.insert(key.clone(), Applied { intent, result });
                seen.push((key, ChildChange::There(Box::new(observed))));
            }
        }
        let wanted = |key: &ChildKey| {
            let mut children =
                objects.iter().flat_map(|objects| objects.children.iter().chain(&objects.certificate));
            children.any(|child| child.kind == key.0 && child.name == key.1)
        };
        let unwanted: Vec<(ChildKey, ObservedVersion)> = self
            .observed
            .iter()
            .filter(|(key, observed)| {
                let is_ours = match &self.uid {
                    Some(uid) => observed.is_owned_by(uid),
                    None => observed.owner.is_some(),
                };
                is_ours && !wanted(key)
            })
            .map(|(key, observed)| (key.clone(), observed.observed_version()))
            .collect();
        // The reverse of the order of creation.
        for (key, there) in unwanted.into_iter().rev() {
            hand.lead(&mut is_confirmed).await?;
            hand.delete_observed(&key, there.clone()).await?;
            self.applied.remove(&key);
            seen.push((key, ChildChange::Deleted { uid: there.uid }));
        }
        Ok(())
    }
}

/// Whether an object is a Deployment without a number of Pods.
fn leaves_scale(child: &Child) -> bool {
    child.kind == ChildKind::Deployment && child.object.pointer("/spec/replicas").is_none()
}

/// An object, if it belongs to the owner.
fn owned<'o>(child: &Child, observed: &'o Observed, uid: &str) -> Result<&'o Observed, PassError> {
    if observed.is_owned_by(uid) {
        return Ok(observed);
    }
    Err(PassError::Foreign { kind: child.kind, name: child.name.to_string(), uid: observed.uid.clone() })
}

impl ApiWriter {
    fn api(&self, kind: ChildKind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &kind.api_resource())
    }

    async fn ask<T>(
        &self,
        verb: &'static str,
        (kind, name): (ChildKind, &pingsix_translate::ObjectName),
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, PassError> {
        let answer = within(self.timeout, request).await;
        answer.map_err(|error| PassError::Request { verb, kind, name: name.to_string(), error })
    }

    /// Confirms once in a pass that this replica leads.
    async fn lead(&self, is_confirmed: &mut bool) -> Result<(), PassError> {
        if *is_confirmed {
            return Ok(());
        }
        *is_confirmed = self.leadership.confirm().await.map_err(PassError::Unconfirmed)?;
        if *is_confirmed { Ok(()) } else { Err(PassError::Led) }
    }

    /// The current object, if it exists and belongs to the owner.
    async fn get(&self, child: &Child, uid: &str) -> Result<Option<ObservedVersion>, PassError> {
        let api = self.api(child.kind, &child.name.namespace);
        let found = self.ask("get", (child.kind, &child.name), api.get_opt(&child.name.name)).await?;
        let found = found.map(|object| Observed::of(child.kind, object));
        found.map(|observed| Ok(owned(child, &observed, uid)?.observed_version())).transpose()
    }

    /// Applies an object, again after a conflict.
    async fn apply_observed(
        &self,
        child: &Child,
        mut there: Option<ObservedVersion>,
        uid: &str,
    ) -> Result<Observed, PassError> {
        for _ in 1..MAX_ATTEMPTS {
            match self.apply(child, there).await {
                Err(PassError::Request { error, .. }) if error.category == ApiErrorCategory::Conflict => {}
                outcome => return outcome,
            }
            there = self.get(child, uid).await?;
            self.lead(&mut false).await?;
        }
        self.apply(child, there).await
    }

    /// Applies an object. UID and version of an existing object are given, so that a changed or recreated object
    /// stays. An object that another client creates at the same moment is merged into. If it has another controller,
    /// the API server refuses a second one.
    async fn apply(&self, child: &Child, there: Option<ObservedVersion>) -> Result<Observed, PassError> {
        let api = self.api(child.kind, &child.name.namespace);
        let mut object = child.object.clone();
        if let Some(ObservedVersion { uid, version }) = there {
            object["metadata"]["uid"] = json!(uid);
            if let Some(version) = version {
                object["metadata"]["resourceVersion"] = json!(version);
            }
        }
        let mut params = PatchParams::apply(&self.field_manager).force();
        // The API server refuses unknown fields instead of dropping them.
        params.field_validation = Some(ValidationDirective::Strict);
        let patch = Patch::Apply(&object);
        let request = api.patch(&child.name.name, &params, &patch);
        let applied = self.ask("apply", (child.kind, &child.name), request).await?;
        tracing::debug!(object = %child, "applied");
        Ok(Observed::of(child.kind, applied))
    }

    /// Keeps the number of Pods of a Deployment when the configuration gives none any more. A field without a manager
    /// falls back to its default, which is one. So another manager of ours applies the present number, until another
    /// client changes it (Kubernetes, Server-Side Apply, "Transferring ownership between managers"). A change by
    /// another client at the same moment is not overwritten: the request is refused and repeated.
    async fn hand_over_scale(&self, child: &Child, uid: &str) -> Result<(), PassError> {
        let api = self.api(child.kind, &child.name.namespace);
        let live = self.ask("get", (child.kind, &child.name), api.get_opt(&child.name.name)).await?;
        let live = live.filter(|live| scaled_by(live).contains(&self.field_manager));
        let Some(replicas) = live.and_then(|live| live.data.pointer("/spec/replicas").cloned()) else {
            return Ok(());
        };
        let object = json!({
            "apiVersion": child.kind.api_version(),
            "kind": child.kind.as_str(),
            "metadata": { "name": *child.name.name, "namespace": *child.name.namespace, "uid": uid },
            "spec": { "replicas": replicas },
        });
        // Names of managers have no more than 128 characters.
        let manager: String = self.field_manager.chars().take(128 - SCALE.len()).collect();
        let params = PatchParams::apply(&format!("{manager}{SCALE}"));
        let patch = Patch::Apply(&object);
        let request = api.patch(&child.name.name, &params, &patch);
        self.ask("apply", (child.kind, &child.name), request).await?;
        tracing::info!(object = %child, "handed over spec.replicas; the number of Pods stays until another writer changes it");
        Ok(())
    }

    /// Creates a Secret with a certificate. A later application leaves out its data, so the certificate stays.
    async fn create(&self, child: &Child) -> Result<Observed, PassError> {
        let (certificate, key) =
            certificate::certificate(&child.name.to_string()).ok_or(PassError::Certificate)?;
        let mut object: Value = child.object.clone();
        object["data"] = json!({ "tls.crt": encoded(&certificate), "tls.key": encoded(&key) });
        let api = self.api(child.kind, &child.name.namespace);
        let params = PostParams { field_manager: Some(self.field_manager.clone()), ..PostParams::default() };
        let request = async {
            let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
            api.create(&params, &object).await
        };
        let created = self.ask("create", (child.kind, &child.name), request).await?;
        Ok(Observed::of(child.kind, created))
    }

    /// Deletes an object, again after a conflict.
    async fn delete_observed(&self, key: &ChildKey, mut there: ObservedVersion) -> Result<(), PassError> {
        let (kind, name) = (key.0, &key.1);
        let api = self.api(kind, &name.namespace);
        for attempt in 1..=MAX_ATTEMPTS {
            match self.delete(key, there.clone()).await {
                Err(PassError::Request { error, .. })
                    if error.category == ApiErrorCategory::Conflict && attempt < MAX_ATTEMPTS => {}
                outcome => return outcome,
            }
            let found = self.ask("get", (kind, name), api.get_opt(&name.name)).await?;
            let found = found.map(|object| Observed::of(kind, object).observed_version());
            // The object is deleted, or another one has its name.
            let Some(found) = found.filter(|found| found.uid == there.uid) else { return Ok(()) };
            there = found;
            self.lead(&mut false).await?;
        }
        Ok(())
    }

    async fn delete(&self, key: &ChildKey, there: ObservedVersion) -> Result<(), PassError> {
        let (kind, name) = (key.0, &key.1);
        let api = self.api(kind, &name.namespace);
        let mut params = DeleteParams::background();
        params.preconditions = Some(Preconditions { uid: Some(there.uid), resource_version: there.version });
        let request = async {
            match api.delete(&name.name, &params).await {
                Ok(_) => Ok(()),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                Err(error) => Err(error),
            }
        };
        self.ask("delete", (kind, name), request).await?;
        tracing::info!(%kind, %name, "deleted an unwanted object");
        Ok(())
    }
}
