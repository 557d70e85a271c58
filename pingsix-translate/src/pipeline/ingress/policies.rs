//! The policies of an IngressClass, and their changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::annotations::Annotated;
use crate::model::ObjectKey;
use crate::parameters::PlaneSettings;
use crate::pipeline::diff::{ReferentsDiff, difference};
use crate::policy::{AnnotationPolicies, Policies};
use crate::references::References;
use crate::snapshot::IngressSnapshot;
use crate::status::JudgedPolicies;

/// The policies of Ingresses and their backends.
#[derive(Debug)]
pub(super) struct ClassPolicies {
    pub(super) policies: Policies,
    /// The policies that the annotations of Ingresses stand for.
    pub(super) annotations: AnnotationPolicies,
    has_other_annotations: bool,
    /// Whether responses may be cached. All namespaces share a class.
    may_cache: bool,
    pub(super) judged: JudgedPolicies,
}

/// The effects of changed policies.
#[derive(Debug, Default)]
pub(super) struct ChangedPolicies {
    /// Inherited policies with other contents.
    pub(super) contents: BTreeSet<Arc<ObjectKey>>,
    /// The objects for which other policies count than before.
    pub(super) targets: BTreeSet<ObjectKey>,
}

impl ClassPolicies {
    pub(super) fn new(
        snapshot: &IngressSnapshot,
        annotations: AnnotationPolicies,
        references: &References<'_>,
        settings: &PlaneSettings,
    ) -> Self {
        let may_cache = settings.shared_cache;
        Self {
            policies: read(snapshot, &annotations, references, may_cache),
            annotations,
            may_cache,
            has_other_annotations: false,
            judged: JudgedPolicies::default(),
        }
    }

    /// Takes in how the annotations of an Ingress are now; `None` is an Ingress that is gone.
    pub(super) fn replace_annotations(&mut self, key: Arc<ObjectKey>, now: Option<&Annotated<'_>>) {
        let now = now.map(|now| now.annotations.policies(&key.name)).filter(|now| !now.is_empty());
        if self.annotations.get(&key) == now.as_ref() {
            return;
        }
        self.has_other_annotations = true;
        match now {
            Some(now) => self.annotations.insert(key, now),
            None => self.annotations.remove(&key),
        };
    }

    /// Replaces the policies if they may differ.
    pub(super) fn update(
        &mut self,
        (last, snapshot): (&IngressSnapshot, &IngressSnapshot),
        diff: &ReferentsDiff,
        references: &References<'_>,
    ) -> ChangedPolicies {
        let Self { policies, annotations, has_other_annotations, may_cache, judged: _ } = self;
        let has_other_annotations = std::mem::take(has_other_annotations);
        let differ = !difference(&snapshot.policies, &last.policies).is_empty()
            || has_other_annotations
            || diff.quarantined.iter().any(|key| key.kind.is_policy());
        let may_refer_otherwise =
            !diff.config_maps.is_empty() || !diff.secrets.is_empty() || !diff.reference_grants.is_empty();
        let all = || snapshot.policies.values().chain(annotations.values().flatten());
        let refer = || all().any(|policy| !policy.references().is_empty());
        let may_differ = differ || (may_refer_otherwise && refer());
        if !may_differ {
            return ChangedPolicies::default();
        }
        let before = std::mem::replace(policies, read(snapshot, annotations, references, *may_cache));
        ChangedPolicies {
            contents: policies.changed_contents(&before),
            targets: policies.changed(&before).into_iter().cloned().collect(),
        }
    }
}

fn read(
    snapshot: &IngressSnapshot,
    annotations: &AnnotationPolicies,
    references: &References<'_>,
    may_cache: bool,
) -> Policies {
    let mut policies = Policies::new(&snapshot.policies, annotations, references);
    if !may_cache {
        policies.forbid_caches();
    }
    policies
}
