//! Whether it matters in whose spec a listener stands: a Gateway whose last listeners move to a ListenerSet, together with
//! the parentRefs that reach them, is served by the same documents. And whether ListenerSets that must not serve change
//! anything: those the Gateway does not allow, and those whose listeners somebody else had first.

use pingsix_translate::status::{ConditionType, ListenerVerdict, ParentVerdict, Reason};
use pingsix_translate::{Layout, Translation, translate};
use serde_json::{Value, json};

use crate::case::{Case, Setting, documents, snapshot};
use crate::oracle::{ListenerProblem, Owner};

/// Counts of the contents of tables with ListenerSets, by the oracle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Listeners of ListenerSets that serve.
    serving: u64,
    /// Those that have lost to an earlier owner, or to one another.
    hostname_conflicts: u64,
    protocol_conflicts: u64,
    /// Those without permission to use a certificate.
    not_permitted: u64,
    /// ListenerSets the Gateway does not allow.
    not_allowed: u64,
    /// Routes that are attached through a ListenerSet, and those that are refused there, by reason.
    attached: u64,
    no_such_listener: u64,
    not_allowed_there: u64,
    no_such_hostname: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, case: &Case) {
        let world = &case.world;
        let shared = case.setting.layout == Layout::Shared;
        let statuses = world.listener_statuses(&world.refusals(shared));
        for (listener, status) in world.listeners.iter().zip(statuses) {
            if listener.owner == Owner::Gateway {
                continue;
            }
            let has = |problem| u64::from(status.problems.contains(&problem));
            self.serving += u64::from(status.problems.is_empty());
            self.hostname_conflicts += has(ListenerProblem::HostnameConflict);
            self.protocol_conflicts += has(ListenerProblem::ProtocolConflict);
            self.not_permitted += u64::from(status.certificate_problems.contains("RefNotPermitted"));
        }
        self.not_allowed += world.listener_sets.iter().filter(|set| !world.allows_set(set)).count() as u64;
        for (index, route) in world.routes.iter().enumerate() {
            for parent in &route.spec.parent_refs {
                if !matches!(world.named_by(&route.metadata.namespace, parent), Some(Owner::Set(_))) {
                    continue;
                }
                *match world.attach(index, parent) {
                    Ok(_) => &mut self.attached,
                    Err("NotAllowedByListeners") => &mut self.not_allowed_there,
                    Err("NoMatchingListenerHostname") => &mut self.no_such_hostname,
                    Err(_) => &mut self.no_such_listener,
                } += 1;
            }
        }
    }

    pub(crate) fn is_everything(self) -> bool {
        let Self { serving, hostname_conflicts, protocol_conflicts, not_permitted, not_allowed, .. } = self;
        let of_listeners = [serving, hostname_conflicts, protocol_conflicts, not_permitted, not_allowed];
        let of_routes = [self.attached, self.no_such_listener, self.not_allowed_there, self.no_such_hostname];
        of_listeners.into_iter().chain(of_routes).all(|count| count > 0)
    }
}

/// The difference after listeners moved to ListenerSets; `None` without one.
pub(crate) fn difference(objects: &[Value], setting: Setting) -> Option<String> {
    let translation = translate(&snapshot(objects), &setting.options());
    // Of listeners in one spec that cannot be told apart none is served, of those in two the first is.
    if translation.verdicts.listeners().any(|one| one.conditions.is_true(ConditionType::Conflicted)) {
        return None;
    }
    let count = translation.verdicts.listeners().count();
    (1..count).find_map(|kept| {
        let moved = translate(&snapshot(&split(objects, kept)), &setting.options());
        if documents(&translation) != documents(&moved) {
            return Some(format!("the documents depend on where listeners stand, from {kept} on"));
        }
        // A parentRef is refused as a whole when nothing is served through it, which may be for reasons of one
        // listener; two references are judged apart.
        let is_partial = |parent: &ParentVerdict| parent.conditions.is_true(ConditionType::PartiallyInvalid);
        let some_partial =
            translation.verdicts.routes.values().flat_map(|route| route.parents.iter()).any(is_partial);
        if setting.layout == Layout::Shared || some_partial {
            return None;
        }
        let counts = |translation: &Translation| -> Vec<i32> {
            translation.verdicts.listeners().map(|listener| listener.attached_routes).collect()
        };
        let (before, after) = (counts(&translation), counts(&moved));
        (before != after)
            .then(|| format!("attached routes were {before:?} and are {after:?}, from {kept} on"))
    })
}

/// Moves all listeners but the first to a ListenerSet.
fn split(objects: &[Value], kept: usize) -> Vec<Value> {
    let mut moved = Vec::new();
    let mut split: Vec<Value> = objects.to_vec();
    for gateway in split.iter_mut().filter(|object| object["kind"] == "Gateway") {
        moved = gateway["spec"]["listeners"].as_array_mut().unwrap().split_off(kept);
        gateway["spec"]["allowedListeners"] = json!({ "namespaces": { "from": "Same" } });
    }
    for object in &mut split {
        let Some(parents) = object["spec"].get_mut("parentRefs").and_then(Value::as_array_mut) else {
            continue;
        };
        *parents = parents.iter().flat_map(|parent| [parent.clone(), to_set(parent)]).collect();
    }
    split.push(json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "ListenerSet",
        "metadata": { "namespace": "infra", "name": "public", "generation": 1 },
        "spec": { "parentRef": { "name": "public" }, "listeners": moved },
    }));
    split
}

/// Why a ListenerSet must not serve.
#[derive(Clone, Copy, Debug)]
enum Loser {
    /// The Gateway allows none, which is the default.
    NotAllowedAtAll,
    /// The Gateway allows those of its own namespace.
    OfAnotherNamespace,
    /// Its listeners are the Gateway's.
    LikeTheGateway,
    /// An older ListenerSet has the same listener.
    Younger,
}

/// The effect of a ListenerSet that must not serve although routes name it; `None` without one.
pub(crate) fn harm(objects: &[Value], setting: Setting) -> Option<String> {
    use Loser::{LikeTheGateway, NotAllowedAtAll, OfAnotherNamespace, Younger};
    [NotAllowedAtAll, OfAnotherNamespace, LikeTheGateway, Younger].into_iter().find_map(|loser| {
        let without = beside(objects, loser);
        let before = translate(&snapshot(&without), &setting.options());
        let accepted: Vec<usize> = before
            .verdicts
            .gateway
            .iter()
            .flat_map(|gateway| gateway.listeners.iter().enumerate())
            .filter(|(_, listener)| listener.conditions.is_true(ConditionType::Accepted))
            .map(|(index, _)| index)
            .collect();
        let gateway = without.iter().find(|object| object["kind"] == "Gateway")?;
        let listeners: Vec<Value> = match loser {
            LikeTheGateway => {
                accepted.iter().map(|index| gateway["spec"]["listeners"][*index].clone()).collect()
            }
            NotAllowedAtAll | OfAnotherNamespace | Younger => vec![free_listener()],
        };
        let namespace = if matches!(loser, OfAnotherNamespace) { "app" } else { "infra" };
        let mut with = without.clone();
        with.push(listener_set(namespace, "loser", 2, &listeners));
        let after = translate(&snapshot(&with), &setting.options());
        if documents(&before) != documents(&after) {
            return Some(format!("{loser:?}: the documents changed"));
        }
        if before.verdicts.gateway.as_ref().map(|gateway| &gateway.listeners)
            != after.verdicts.gateway.as_ref().map(|gateway| &gateway.listeners)
        {
            return Some(format!("{loser:?}: the Gateway's listeners are judged otherwise"));
        }
        let verdict = after.verdicts.listener_sets.iter().find(|(key, _)| &*key.name.name == "loser")?.1;
        let is_told = match loser {
            NotAllowedAtAll | OfAnotherNamespace => {
                let condition = verdict.conditions.get(ConditionType::Accepted);
                condition.is_some_and(|condition| condition.reason == Reason::NotAllowed)
            }
            LikeTheGateway | Younger => {
                let conflicted = |one: &ListenerVerdict| one.conditions.is_true(ConditionType::Conflicted);
                verdict.listeners.iter().all(conflicted)
            }
        };
        (!is_told).then(|| format!("{loser:?}: {verdict:?}"))
    })
}

/// The objects with what a losing ListenerSet stands beside, and with routes that name it as well.
fn beside(objects: &[Value], loser: Loser) -> Vec<Value> {
    let mut objects = objects.to_vec();
    for object in &mut objects {
        if object["kind"] == "Gateway" {
            let from = match loser {
                Loser::NotAllowedAtAll => "None",
                Loser::OfAnotherNamespace => "Same",
                Loser::LikeTheGateway | Loser::Younger => "All",
            };
            object["spec"]["allowedListeners"] = json!({ "namespaces": { "from": from } });
        }
        if let Some(parents) = object["spec"].get_mut("parentRefs").and_then(Value::as_array_mut) {
            let namespace = if matches!(loser, Loser::OfAnotherNamespace) { "app" } else { "infra" };
            parents.push(json!({ "kind": "ListenerSet", "name": "loser", "namespace": namespace }));
        }
    }
    if matches!(loser, Loser::Younger) {
        objects.push(listener_set("infra", "winner", 1, &[free_listener()]));
    }
    objects
}

/// A listener that no generated Gateway has.
fn free_listener() -> Value {
    let allowed = json!({ "namespaces": { "from": "All" } });
    json!({ "name": "free", "port": 9090, "protocol": "HTTP", "allowedRoutes": allowed })
}

/// A ListenerSet of the Gateway, created in this second.
fn listener_set(namespace: &str, name: &str, second: u8, listeners: &[Value]) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "ListenerSet",
        "metadata": {
            "namespace": namespace, "name": name, "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
        },
        "spec": { "parentRef": { "name": "public", "namespace": "infra" }, "listeners": listeners },
    })
}

/// The same reference to the ListenerSet, unless it is one to something else.
fn to_set(parent: &Value) -> Value {
    let mut parent = parent.clone();
    if parent.get("kind").is_none_or(|kind| kind == "Gateway") {
        parent["kind"] = json!("ListenerSet");
    }
    parent
}
