//! The verdicts on routes that are held back.

use std::sync::Arc;

use pingsix_translate::snapshot::{AnyRoute, OwnerSnapshot, Snapshot};
use pingsix_translate::status::{
    Condition, ConditionStatus, ConditionType, Conditions, ParentVerdict, Reason, RouteVerdict,
};
use pingsix_translate::{Kind, ObjectKey, SharedMap};

use super::Acceptance;

impl Acceptance {
    /// Adds the refusals of held-back routes to their verdicts. The translation had their previous versions, or none.
    pub(crate) fn amend(
        &self,
        newest: &OwnerSnapshot,
        verdicts: &mut SharedMap<Arc<ObjectKey>, RouteVerdict>,
    ) {
        let OwnerSnapshot::Gateway(newest) = newest else { return };
        // The translation has the former version of objects held back here, and the present version of those held back
        // by others.
        let here: Vec<_> =
            self.held_back().map(|(part, message)| (part, message, verdicts.get(part).cloned())).collect();
        let elsewhere = self.remote_held_back.iter().flat_map(|remote| {
            let served =
                remote.served.iter().map(|part| (part, &*remote.message, verdicts.get(part).cloned()));
            served.chain(remote.absent.iter().map(|part| (part, &*remote.message, None)))
        });
        for (part, message, before) in here.iter().cloned().chain(elsewhere.collect::<Vec<_>>()) {
            let verdict = newest.routes.get(part).filter(|route| route.kind().has_requests());
            let verdict = verdict.map(|route| verdict_on(newest, route, part, message, before.as_ref()));
            if let Some(verdict) = verdict {
                verdicts.insert(verdict.key.clone(), verdict);
            }
        }
    }
}

/// The verdict on a route that is there and held back.
fn verdict_on(
    snapshot: &Snapshot,
    route: &AnyRoute,
    key: &ObjectKey,
    message: &str,
    before: Option<&RouteVerdict>,
) -> RouteVerdict {
    let generation = route.metadata().generation;
    let metadata = &snapshot.gateway.metadata;
    let is_ours = |parent: &ObjectKey| {
        if parent.kind == Kind::ListenerSet {
            return snapshot.listener_sets.contains_key(&parent.name);
        }
        metadata.name.as_deref() == Some(&*parent.name.name)
            && metadata.namespace.as_deref() == Some(&*parent.name.namespace)
    };
    let parents = route.parent_refs().iter();
    let parents =
        parents.filter(|parent| parent.target(&key.name.namespace).is_some_and(|target| is_ours(&target)));
    let parents = parents.map(|parent_ref| {
        let before =
            before.and_then(|before| before.parents.iter().find(|parent| parent.parent_ref == *parent_ref));
        let mut conditions = before.map_or_else(Conditions::default, |before| before.conditions.clone());
        let (kind, status, version) = if before.is_some() {
            (
                ConditionType::PartiallyInvalid,
                ConditionStatus::True,
                "The previous version of the \
             route",
            )
        } else {
            (ConditionType::Accepted, ConditionStatus::False, "No version of the route")
        };
        conditions.set(Condition {
            kind,
            status,
            reason: Reason::Quarantined,
            message: format!(
                "PingSIX refuses the documents of the route. {version} is served until the route \
                 changes. PingSIX: {message}"
            ),
            observed_generation: generation,
        });
        ParentVerdict { parent_ref: parent_ref.clone(), conditions }
    });
    RouteVerdict { key: Arc::new(key.clone()), generation, parents: parents.collect() }
}
