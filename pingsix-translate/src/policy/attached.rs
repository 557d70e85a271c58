//! Attached policies of any kind: targets, precedence and conflicts, as GEP-713 has them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use kube::Resource;

use super::chain::Credentials;
use crate::model::{Age, FieldPath, Kind, ObjectKey, ObjectName, Reason, Refusal, Section, compare_age};
use crate::quarantine::message_of;
use crate::references::References;
use crate::shared_map::SharedMap;
use crate::snapshot::{AnyPolicy, OfKind, PolicyObject, TargetRef, key_of};

/// The effect of a policy of one kind: the parts of the spec on which routes and backends depend.
pub(crate) trait PolicyEffect: Debug + PartialEq + Sized {
    /// The type of the policy objects.
    type Object: PolicyObject + Resource;

    /// Reads the fields of the spec other than the targets.
    fn read(object: &Self::Object, references: &References<'_>) -> PolicySpec<Self>;

    /// Whether routes are attached in the same way under both effects.
    fn attaches_like(&self, other: &Self) -> bool {
        self == other
    }

    /// The effect on requests that need no credentials of the policy; `None` if it asks for none.
    fn without_credentials(&self) -> Option<Self> {
        None
    }

    /// The refusals for traffic for which PingSIX cannot honour a valid policy.
    fn refuse(&self, unsupported: &UnsupportedTraffic) -> Vec<Refusal>;
}

/// The spec of a policy apart from its targets.
#[derive(Debug)]
pub(crate) struct PolicySpec<P> {
    /// The effect; or at least one reason why PingSIX cannot honour the policy for any target.
    pub(crate) effect: Result<P, Vec<Refusal>>,
    /// Invalid fields, which are not applied. The effect has all other fields.
    pub(crate) unapplied: Vec<Refusal>,
    /// References that lead nowhere.
    pub(crate) unresolved: Vec<Refusal>,
    pub(crate) limitations: Vec<Refusal>,
    /// Whether the policy fails closed: traffic is denied if PingSIX cannot honour the policy.
    pub(crate) protects: bool,
}

impl<P: PolicyEffect> PolicySpec<P> {
    fn attaches_like(&self, other: &Self) -> bool {
        let is_same_effect = match (&self.effect, &other.effect) {
            (Ok(one), Ok(other)) => one.attaches_like(other),
            (Err(one), Err(other)) => one == other,
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
        };
        is_same_effect && self.protects == other.protects
    }
}

/// Traffic for which PingSIX cannot honour a valid policy: the references of routes to the targets, as object and field.
#[derive(Debug, Default)]
pub(crate) struct UnsupportedTraffic {
    /// References for requests.
    pub(crate) requests: BTreeSet<String>,
    /// References for connections without known requests.
    pub(crate) connections: BTreeSet<String>,
}

/// An object, or one of its sections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PolicyTarget {
    pub(crate) object: ObjectKey,
    /// The name of a section, such as a port of a Service; `None` is the whole object.
    pub(crate) section: Option<String>,
}

/// The section of an Ingress for the policies that its annotations stand for. An Ingress has no other sections.
const ANNOTATIONS: &str = "metadata.annotations";

impl PolicyTarget {
    /// The target of the policies that the annotations of an Ingress stand for. It is wider than the Ingress, so that a
    /// field of a policy for the Ingress replaces the same field by an annotation.
    pub(super) fn annotations(ingress: &ObjectKey) -> Self {
        Self { object: ingress.clone(), section: Some(ANNOTATIONS.to_owned()) }
    }

    /// Reads a target of a policy of this kind, which may target objects of the kinds `targets`.
    pub(crate) fn read(
        (policy, targets): (Kind, &[Kind]),
        namespace: &Arc<str>,
        target: TargetRef<'_>,
        at: &FieldPath,
    ) -> Result<Self, Refusal> {
        let Some(kind) = target.known_kind().filter(|kind| targets.contains(kind)) else {
            let is_known = targets.iter().any(|kind| kind.as_str() == target.kind);
            let group = if target.group.is_empty() { "the core group" } else { target.group };
            let targets: Vec<String> = targets.iter().map(|kind| plural(*kind)).collect();
            return Err(Refusal::new(
                at.child(if is_known { "group" } else { "kind" }),
                Reason::Invalid,
                format!(
                    "A {policy} may target {}, but the reference names kind {} of {group}.",
                    targets.join(", "),
                    target.kind
                ),
            ));
        };
        Ok(Self {
            object: ObjectKey { kind, name: ObjectName::new(namespace.clone(), target.name) },
            // An empty name counts as absent. An Ingress has no sections. A policy for a section of an Ingress is invalid and
            // counts for the whole Ingress, so that no part of the Ingress is open by mistake.
            section: target
                .section_name
                .filter(|name| !name.is_empty() && kind != Kind::Ingress)
                .map(str::to_owned),
        })
    }
}

/// Objects of a kind, in words.
fn plural(kind: Kind) -> String {
    let ending = if kind.as_str().ends_with('s') { "es" } else { "s" };
    format!("{kind}{ending}")
}

/// A policy with its targets.
#[derive(Debug)]
pub(crate) struct AttachedPolicy<P> {
    pub(crate) key: Arc<ObjectKey>,
    pub(crate) generation: i64,
    age: Age,
    /// One per targetRef, in order.
    pub(crate) targets: Vec<Result<PolicyTarget, Refusal>>,
    pub(crate) spec: PolicySpec<P>,
    /// The effect without credentials, of a policy that annotations stand for and that asks for some.
    without_credentials: Option<P>,
}

impl<P: PolicyEffect> AttachedPolicy<P> {
    /// Reads a policy. Never fails: its refusals are part of the result.
    fn read(object: &P::Object, references: &References<'_>) -> Self {
        let key = key_of(P::Object::KIND, object.meta());
        let at = FieldPath::new("spec").child("targetRefs");
        let targets = object.target_refs().enumerate();
        let targets = targets.map(|(index, target)| {
            PolicyTarget::read(
                (P::Object::KIND, P::Object::TARGETS),
                &key.name.namespace,
                target,
                &at.index(index),
            )
        });
        let mut spec = P::read(object, references);
        if let Some(said) = message_of(&references.referents().quarantine, &key, Section::Whole) {
            let message =
                format!("PingSIX refuses this policy. It has no effect until the policy changes: {said}");
            spec.effect = Err(vec![Refusal::new(FieldPath::new("spec"), Reason::Quarantined, message)]);
        }
        Self {
            targets: targets.collect(),
            spec,
            generation: object.meta().generation.unwrap_or_default(),
            age: Age::of(object.meta()),
            key: Arc::new(key),
            without_credentials: None,
        }
    }

    /// Reads the policy that the annotations of an Ingress stand for.
    fn read_annotations(ingress: &Arc<ObjectKey>, object: &P::Object, references: &References<'_>) -> Self {
        let target = PolicyTarget::annotations(ingress);
        let read = Self::read(object, references);
        let without_credentials = read.spec.effect.as_ref().ok().and_then(P::without_credentials);
        Self { targets: vec![Ok(target)], key: ingress.clone(), without_credentials, ..read }
    }

    /// Whether the effect depends on the choice of credentials.
    pub(super) const fn may_spare_credentials(&self) -> bool {
        self.without_credentials.is_some()
    }

    /// The effect of the policy; or at least one reason why PingSIX cannot honour it.
    pub(super) fn effect(&self, credentials: Credentials) -> Result<&P, &Vec<Refusal>> {
        match (credentials, &self.without_credentials) {
            (Credentials::NotOfAnnotations, Some(effect)) => Ok(effect),
            (Credentials::NotOfAnnotations | Credentials::OfAll, _) => self.spec.effect.as_ref(),
        }
    }

    /// Whether the annotations of an Ingress stand for the policy, so that no object has a status for it.
    pub(crate) fn is_of_annotations(&self) -> bool {
        self.key.kind == Kind::Ingress
    }

    /// The reasons why PingSIX cannot honour the policy or some of its fields.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        self.spec.effect.as_ref().err().into_iter().flatten().chain(&self.spec.unapplied)
    }
}

/// The policies that the annotations of Ingresses stand for.
pub(crate) type AnnotationPolicies = BTreeMap<Arc<ObjectKey>, Vec<AnyPolicy>>;

/// All policies of one kind in a snapshot.
#[derive(Debug)]
pub(crate) struct AttachedPolicies<P> {
    /// In the order of precedence: the oldest first, then by name.
    list: Vec<AttachedPolicy<P>>,
    /// By target: index of the policy that takes precedence, even if PingSIX cannot honour that policy.
    winners: BTreeMap<PolicyTarget, usize>,
    /// Index of the policy.
    by_key: BTreeMap<Arc<ObjectKey>, usize>,
}

impl<P> Default for AttachedPolicies<P> {
    fn default() -> Self {
        Self { list: Vec::new(), winners: BTreeMap::new(), by_key: BTreeMap::new() }
    }
}

impl<P: PolicyEffect> AttachedPolicies<P> {
    /// Selects the policies of kind `P` from objects and from annotations of Ingresses.
    pub(crate) fn new(
        policies: &SharedMap<ObjectKey, AnyPolicy>,
        annotations: &AnnotationPolicies,
        references: &References<'_>,
    ) -> Self {
        let objects = policies.values().filter_map(P::Object::of);
        let mut list: Vec<AttachedPolicy<P>> =
            objects.map(|object| AttachedPolicy::read(&**object, references)).collect();
        let of_annotations = annotations.iter().flat_map(|(ingress, policies)| {
            let of_kind = policies.iter().filter_map(P::Object::of);
            of_kind.map(|object| AttachedPolicy::read_annotations(ingress, &**object, references))
        });
        list.extend(of_annotations);
        list.sort_by(|left, right| compare_age((left.age, &left.key), (right.age, &right.key)));
        let mut winners = BTreeMap::new();
        for (index, policy) in list.iter().enumerate() {
            for target in policy.targets.iter().flatten() {
                winners.entry(target.clone()).or_insert(index);
            }
        }
        let by_key = list.iter().enumerate().map(|(index, policy)| (policy.key.clone(), index)).collect();
        Self { list, winners, by_key }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &AttachedPolicy<P>> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut AttachedPolicy<P>> {
        self.list.iter_mut()
    }

    /// The policy that counts for a section of an object: one for the section before one for the whole object.
    pub(crate) fn effective(&self, object: ObjectKey, section: Option<&str>) -> Option<&AttachedPolicy<P>> {
        if self.winners.is_empty() {
            return None;
        }
        let mut target = PolicyTarget { object, section: section.map(str::to_owned) };
        self.winner(&target).or_else(|| {
            target.section = None;
            self.winner(&target)
        })
    }

    /// The refusal of a policy for one of its targets on which another policy takes precedence.
    pub(crate) fn conflict(
        &self,
        policy: &AttachedPolicy<P>,
        target: &PolicyTarget,
        at: FieldPath,
    ) -> Option<Refusal> {
        let winner = self.winner(target).filter(|winner| winner.key != policy.key)?;
        let message = format!("{} has the same target and takes precedence over this policy.", winner.key);
        Some(Refusal::new(at, Reason::Conflicted, message))
    }

    /// The targets of all policies, including policies without precedence.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &ObjectKey> {
        self.winners.keys().map(|target| &target.object)
    }

    /// The objects whose effective policy changed, by identity or by effect.
    pub(crate) fn changed<'s>(&'s self, before: &'s Self) -> impl Iterator<Item = &'s ObjectKey> {
        let targets: BTreeSet<&PolicyTarget> = self.winners.keys().chain(before.winners.keys()).collect();
        let changed = targets.into_iter().filter(move |target| {
            match [self, before].map(|policies| policies.winner(target)) {
                [Some(now), Some(before)] => now.key != before.key || !now.spec.attaches_like(&before.spec),
                [None, None] => false,
                [Some(_), None] | [None, Some(_)] => true,
            }
        });
        changed.map(|target| &target.object)
    }

    /// The policy with a key.
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&AttachedPolicy<P>> {
        let index = self.by_key.get(key)?;
        self.list.get(*index)
    }

    /// The refusals of the policy at a target, each with whether the policy fails closed.
    pub(super) fn refusals_at<'s>(
        &'s self,
        target: &PolicyTarget,
    ) -> impl Iterator<Item = (bool, &'s Refusal)> + use<'s, P> {
        let policy = self.winner(target).into_iter();
        policy.flat_map(|policy| policy.refusals().map(|refusal| (policy.spec.protects, refusal)))
    }

    /// The policy that counts at a target.
    pub(super) fn winner(&self, target: &PolicyTarget) -> Option<&AttachedPolicy<P>> {
        self.winners.get(target).and_then(|index| self.list.get(*index))
    }
}

#[cfg(test)]
mod tests;
