//! The policies of an IngressClass, and their changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::ObjectKey;
use crate::pipeline::diff::{LastObjects, ReferentsDiff};
use crate::policy::Policies;
use crate::references::References;
use crate::snapshot::{AnyPolicy, IngressSnapshot};
use crate::status::JudgedPolicies;

/// The policies of Ingresses and their backends.
#[derive(Debug)]
pub(super) struct ClassPolicies {
    last: LastObjects<AnyPolicy, ObjectKey>,
    pub(super) policies: Policies,
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
    pub(super) fn new(snapshot: &IngressSnapshot, references: &References<'_>) -> Self {
        Self {
            last: LastObjects::new(&snapshot.policies),
            policies: Policies::new(&snapshot.policies, references),
            judged: JudgedPolicies::default(),
        }
    }

    /// Replaces the policies if they may differ.
    pub(super) fn update(
        &mut self,
        snapshot: &IngressSnapshot,
        diff: &ReferentsDiff,
        references: &References<'_>,
    ) -> ChangedPolicies {
        let Self { last, policies, judged: _ } = self;
        let differ = !last.update(&snapshot.policies).is_empty()
            || diff.quarantined.iter().any(|key| key.kind.is_policy());
        let may_refer_otherwise =
            diff.of_config_maps || !diff.secrets.is_empty() || !diff.reference_grants.is_empty();
        let refer = || snapshot.policies.values().any(|policy| !policy.references().is_empty());
        let may_differ = differ || (may_refer_otherwise && refer());
        if !may_differ {
            return ChangedPolicies::default();
        }
        let before = std::mem::replace(policies, Policies::new(&snapshot.policies, references));
        ChangedPolicies {
            contents: policies.changed_contents(&before),
            targets: policies.changed(&before).into_iter().cloned().collect(),
        }
    }
}
