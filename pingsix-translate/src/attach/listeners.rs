//! The listeners of a translation: those of the Gateway and of the ListenerSets it allows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use gateway_api::gateways::GatewayListeners;
use kube::core::ObjectMeta;

use super::allowed_routes::AllowedNamespaces;
use super::capacity::limit_ports;
use super::conflict::mark_conflicts;
use super::front_slots::assign_slots;
use super::listener::{Listener, ListenerState};
use super::listener_judge::judge_alone;
use super::listener_source::{ListenerSource, ListenerSupport, Origins};
use super::overlap_search::mark_overlaps;
use crate::model::{Age, FieldPath, Kind, ObjectKey, ParentRef, Problem, Reason, Refusal, compare_age};
use crate::references::{References, labels_of};
use crate::snapshot::{ExtraListenerFields, Gateway, ListenerSet, Referents, Snapshot, key_of};

/// All listeners with their owners.
#[derive(Clone, Debug)]
pub(crate) struct Listeners {
    /// The listeners of the Gateway, then those of each ListenerSet in order of precedence; of each owner in spec
    /// order. Listeners of ListenerSets that the Gateway does not allow come last, so they shift no index of the
    /// others.
    pub(crate) all: Vec<Listener>,
    pub(crate) gateway: ListenerOwner,
    /// Sorted by namespace and name.
    pub(crate) sets: Vec<ListenerOwner>,
}

/// A Gateway or ListenerSet.
#[derive(Clone, Debug)]
pub(crate) struct ListenerOwner {
    pub(crate) key: Arc<ObjectKey>,
    pub(crate) generation: i64,
    /// Its listeners, as indices of [`Listeners::all`].
    pub(crate) listeners: Range<usize>,
    /// The reason for which the Gateway does not take its listeners.
    pub(crate) excluded: Option<Refusal>,
}

impl Listeners {
    /// The listeners of an owner.
    pub(crate) fn of(&self, owner: &ListenerOwner) -> &[Listener] {
        self.all.get(owner.listeners.clone()).unwrap_or_default()
    }

    /// Whether a listener may admit routes of other namespaces than the Gateway's, or belongs to one.
    pub(crate) fn admit_others(&self, namespace: &str) -> bool {
        let is_allowed = |listener: &&Listener| !matches!(listener.state, ListenerState::Excluded { .. });
        self.all.iter().filter(is_allowed).any(|listener| {
            let is_own = matches!(listener.namespaces, AllowedNamespaces::None | AllowedNamespaces::Same);
            !is_own || *listener.owner.name.namespace != *namespace
        })
    }

    /// Whether routes are attached and judged alike with other listeners. Routes that name a ListenerSet in
    /// [`Self::excluded`] may differ.
    pub(crate) fn attach_like(&self, other: &Self) -> bool {
        let owners = |listeners: &'_ Self| -> Vec<_> {
            let sets = listeners.sets.iter().filter(|set| set.excluded.is_none());
            let owners = std::iter::once(&listeners.gateway).chain(sets);
            owners.map(|owner| (owner.key.clone(), owner.listeners.clone())).collect()
        };
        let (own, others) = (owners(self), owners(other));
        // The same owners have as many listeners.
        let allowed = own.iter().map(|(_, listeners)| listeners.len()).sum();
        own == others
            && self.all.iter().zip(&other.all).take(allowed).all(|(one, other)| one.attaches_like(other))
    }

    /// The ListenerSets that the Gateway does not allow.
    pub(crate) fn excluded(&self) -> BTreeSet<&Arc<ObjectKey>> {
        self.sets.iter().filter(|set| set.excluded.is_some()).map(|set| &set.key).collect()
    }

    /// Whether a change of the namespace's labels changes which of its routes a listener allows.
    pub(crate) fn selects_differently(
        &self,
        namespace: &str,
        before: &BTreeMap<String, String>,
        now: &BTreeMap<String, String>,
    ) -> bool {
        self.all.iter().any(|listener| {
            let admits =
                |labels| listener.namespaces.admits(&listener.owner.name.namespace, namespace, labels);
            admits(before) != admits(now)
        })
    }

    /// The owner that a parentRef in a route of `namespace` names. Does not allocate, since there may be ten thousand
    /// routes.
    pub(super) fn named_by(&self, parent: &ParentRef, namespace: &str) -> Option<&ListenerOwner> {
        if parent.names(namespace, &self.gateway.key) {
            return Some(&self.gateway);
        }
        let wanted = parent.namespace.as_deref().unwrap_or(namespace);
        let found = self.sets.binary_search_by(|set| {
            let name = &set.key.name;
            (&*name.namespace, &*name.name).cmp(&(wanted, parent.name.as_str()))
        });
        let set = self.sets.get(found.ok()?)?;
        parent.names(namespace, &set.key).then_some(set)
    }
}

/// Judges every listener of a Gateway and of its ListenerSets.
pub(crate) fn judge_listeners(
    snapshot: &Snapshot,
    gateway: &Arc<ObjectKey>,
    references: &References<'_>,
    support: ListenerSupport,
    problems: &mut Vec<Problem>,
) -> Listeners {
    let spec = &snapshot.gateway.spec;
    let origins = Origins { gateway_key: gateway, gateway: &spec.known, references, support };
    let allowed = AllowedNamespaces::of_listener_sets(spec).unwrap_or_else(|refusal| {
        problems.push(refusal.of(gateway));
        AllowedNamespaces::None
    });
    let mut written = ListenerJudge { origins, judged: Vec::new() };
    let metadata = &snapshot.gateway.metadata;
    let of_gateway = written.add(gateway.clone(), metadata, (&spec.listeners, &spec.extra.listeners), None);
    let is_allowed = |(key, _): &(Arc<ObjectKey>, &ListenerSet)| {
        let labels = references.namespace_labels(&key.name.namespace);
        allowed.admits(&gateway.name.namespace, &key.name.namespace, &labels)
    };
    let (allowed_sets, others): (Vec<_>, Vec<_>) = by_precedence(snapshot).into_iter().partition(is_allowed);
    let allowed_sets = allowed_sets.into_iter().map(|set| (set, None));
    let others = others.into_iter().map(|set| (set, Some(not_allowed(gateway))));
    let mut sets: Vec<ListenerOwner> = allowed_sets
        .chain(others)
        .map(|((key, set), excluded)| {
            written.add(key, &set.metadata, (&set.spec.listeners, &set.spec.extra.listeners), excluded)
        })
        .collect();
    let mut all = written.judged;

    let owners = std::iter::once(&of_gateway).chain(&sets).map(|owner| owner.listeners.clone());
    mark_conflicts(&mut all, owners);
    limit_ports(&mut all, support.max_ports);
    assign_slots(&mut all);
    mark_overlaps(&mut all);
    for listener in &mut all {
        if listener.is_served() {
            let limitations = listener.certificate_limitations();
            listener.limitations.extend(limitations);
        } else {
            listener.limitations.clear();
        }
    }
    for listener in &all {
        let refusals = listener.refusal().into_iter().chain(&listener.unresolved);
        problems.extend(refusals.map(|refusal| refusal.of(&listener.owner)));
    }
    // A ListenerSet without listeners is excluded, too.
    problems.extend(sets.iter().filter_map(|set| Some(set.excluded.as_ref()?.of(&set.key))));
    sets.sort_by(|left, right| left.key.cmp(&right.key));
    Listeners { all, gateway: of_gateway, sets }
}

/// Whether a Gateway takes the listeners of a ListenerSet of this namespace (`allowedListeners`).
pub(super) fn allows_listener_set(gateway: &Gateway, namespace: &Arc<str>, referents: &Referents) -> bool {
    let allowed = AllowedNamespaces::of_listener_sets(&gateway.spec);
    let own = gateway.metadata.namespace.as_deref().unwrap_or_default();
    let labels = labels_of(namespace, referents.namespaces.get(namespace).map(AsRef::as_ref));
    allowed.is_ok_and(|allowed| allowed.admits(own, namespace, &labels))
}

/// By age, then alphabetically (GEP-1713, listener precedence).
fn by_precedence(snapshot: &Snapshot) -> Vec<(Arc<ObjectKey>, &ListenerSet)> {
    let sets = snapshot.listener_sets.values();
    let mut sets: Vec<(Arc<ObjectKey>, &ListenerSet)> =
        sets.map(|set| (Arc::new(key_of(Kind::ListenerSet, &set.metadata)), &**set)).collect();
    sets.sort_by(|(left_key, left), (right_key, right)| {
        compare_age((Age::of(&left.metadata), left_key), (Age::of(&right.metadata), right_key))
    });
    sets
}

fn not_allowed(gateway: &ObjectKey) -> Refusal {
    Refusal::new(
        FieldPath::new("spec").child("parentRef"),
        Reason::NotAllowed,
        format!("{gateway} does not allow ListenerSets of this namespace; its allowedListeners say which."),
    )
}

/// Listeners that are read and judged one by one.
struct ListenerJudge<'a> {
    origins: Origins<'a>,
    judged: Vec<Listener>,
}

impl ListenerJudge<'_> {
    /// Adds the listeners of an owner, with the fields that the generated type lacks.
    fn add(
        &mut self,
        key: Arc<ObjectKey>,
        metadata: &ObjectMeta,
        (written, extras): (&[GatewayListeners], &[ExtraListenerFields]),
        excluded: Option<Refusal>,
    ) -> ListenerOwner {
        let start = self.judged.len();
        let (age, generation) = (Age::of(metadata), metadata.generation.unwrap_or_default());
        self.judged.extend(written.iter().enumerate().map(|(index, written)| {
            let at = FieldPath::new("spec").child("listeners").index(index);
            let source = ListenerSource { owner: &key, age, index, at, written, extra: extras.get(index) };
            judge_alone(&source, &self.origins)
        }));
        let own = &mut self.judged[start..];
        refuse_repeated_names(own);
        if let Some(refusal) = &excluded {
            for listener in own {
                listener.state = ListenerState::Excluded { refusal: refusal.clone() };
                if listener.terminates_tls() {
                    // The Secrets of a ListenerSet that is not allowed are not read, so its references have no
                    // verdict.
                    listener.unresolved.clear();
                }
            }
        }
        ListenerOwner { key, generation, listeners: start..self.judged.len(), excluded }
    }
}

/// Both `sectionName` and the list in the status go by name, so listeners of one owner with the same name are all
/// refused.
fn refuse_repeated_names(listeners: &mut [Listener]) {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for listener in listeners.iter() {
        *count.entry(listener.name.clone()).or_default() += 1;
    }
    for listener in listeners {
        if count.get(&listener.name).is_some_and(|count| *count > 1) {
            let refusal = Refusal::new(
                listener.at().child("name"),
                Reason::UnsupportedValue,
                format!("Another listener is called \"{}\" too.", listener.name),
            );
            listener.state = ListenerState::Refused { refusal };
        }
    }
}

#[cfg(test)]
mod tests;
