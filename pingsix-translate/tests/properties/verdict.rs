//! Verdicts against the oracle's.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::Layout;
use pingsix_translate::status::{
    Condition, ConditionStatus, ConditionType, Conditions, Delivery, ListenerSetVerdict, ListenerVerdict,
    Reason, RouteVerdict, Verdicts, with_delivery,
};

use crate::case::Case;
use crate::oracle::{Listener, ListenerProblem, ListenerStatus, Owner, ParentStatus, Refusals};

/// Everything that is not as the oracle expects it; empty when all is well.
pub(crate) fn differences(case: &Case) -> Vec<String> {
    let mut found = Vec::new();
    let refusals = case.world.refusals(case.setting.layout == Layout::Shared);
    gateway(case, &refusals, &mut found);
    let verdicts = &case.translation.verdicts;
    for (index, route) in case.world.routes.iter().enumerate() {
        let (namespace, name) = route.metadata.key();
        let verdict = verdicts
            .routes
            .iter()
            .find(|(key, _)| *key.name.namespace == *namespace && *key.name.name == *name)
            .filter(|(key, _)| key.kind.as_str() == route.kind.as_str());
        let expected = case.world.parent_statuses(index, &refusals);
        match verdict {
            Some((_, verdict)) => self::route(case, index, &expected, verdict, &mut found),
            None if expected.is_empty() => {}
            None => found.push(format!("{namespace}/{name} has no verdict")),
        }
    }
    found
}

fn gateway(case: &Case, refusals: &Refusals, found: &mut Vec<String>) {
    let verdicts = finished(case);
    let verdict = verdicts.gateway.as_ref().unwrap();
    let metadata = &case.world.gateway.metadata;
    observed("Gateway", &verdict.conditions, metadata.generation, found);
    let statuses = case.world.listener_statuses(refusals);
    let own = of_owner(case, Owner::Gateway, &statuses);
    let spec = &case.world.gateway.spec.listeners;
    listeners("Gateway", spec, &own, (&verdict.listeners, metadata.generation), found);
    listener_sets(case, &verdicts, &statuses, found);
    let attached = verdicts.listener_sets.values();
    let attached = attached.filter(|set| set.conditions.is_true(ConditionType::Accepted)).count();
    if usize::try_from(verdict.attached_listener_sets) != Ok(attached) {
        found.push(format!("{attached} ListenerSets are accepted, not {}", verdict.attached_listener_sets));
    }
    // Whether a listener that only cannot resolve the kinds it allows is valid, nothing says.
    if statuses.iter().any(|listener| listener.has_wrong_kinds) {
        return;
    }
    // A Gateway is useful as long as any of all the listeners serves.
    let serves = |statuses: &[&ListenerStatus]| statuses.iter().any(|listener| listener.problems.is_empty());
    let (status, reason) = if own.iter().all(|listener| listener.problems.is_empty()) {
        (ConditionStatus::True, Reason::Accepted)
    } else if serves(&statuses.iter().collect::<Vec<_>>()) {
        (ConditionStatus::True, Reason::ListenersNotValid)
    } else {
        (ConditionStatus::False, Reason::ListenersNotValid)
    };
    exactly("Gateway", &verdict.conditions, ConditionType::Accepted, status, reason, found);
    let programmed = if status == ConditionStatus::True { Reason::Programmed } else { Reason::Invalid };
    exactly("Gateway", &verdict.conditions, ConditionType::Programmed, status, programmed, found);
}

/// The verdicts once every data plane has its configuration.
fn finished(case: &Case) -> Verdicts {
    let planes = case.translation.data_planes.keys();
    with_delivery(
        case.translation.verdicts.clone(),
        &planes.map(|key| (key.clone(), Delivery::Delivered)).collect::<BTreeMap<_, _>>(),
    )
}

fn of_owner<'s>(case: &Case, owner: Owner, statuses: &'s [ListenerStatus]) -> Vec<&'s ListenerStatus> {
    case.world.listeners_of(owner).into_iter().map(|index| &statuses[index]).collect()
}

/// Every ListenerSet that is the Gateway's has a verdict, and no other has.
fn listener_sets(case: &Case, verdicts: &Verdicts, statuses: &[ListenerStatus], found: &mut Vec<String>) {
    let mut stated: BTreeMap<(String, String), &ListenerSetVerdict> = BTreeMap::new();
    for (key, verdict) in &verdicts.listener_sets {
        stated.insert((key.name.namespace.to_string(), key.name.name.to_string()), verdict);
    }
    for (index, set) in case.world.listener_sets.iter().enumerate() {
        let name = format!("ListenerSet {}/{}", set.metadata.namespace, set.metadata.name);
        let Some(verdict) = stated.remove(&set.metadata.key()) else {
            found.push(format!("{name} has no verdict"));
            continue;
        };
        observed(&name, &verdict.conditions, set.metadata.generation, found);
        let own = of_owner(case, Owner::Set(index), statuses);
        let (status, reasons) = if case.world.allows_set(set) {
            let spec = &set.spec.listeners;
            listeners(&name, spec, &own, (&verdict.listeners, set.metadata.generation), found);
            // As for a Gateway, the specification does not define validity.
            if own.iter().any(|listener| listener.has_wrong_kinds) {
                continue;
            }
            match own.iter().filter(|listener| listener.problems.is_empty()).count() {
                all if all == own.len() => (ConditionStatus::True, vec![Reason::Accepted]),
                // Nor whether one that has no listener to serve blames itself, or a Gateway that has none either.
                0 => (ConditionStatus::False, vec![Reason::ListenersNotValid, Reason::ParentNotAccepted]),
                _ => (ConditionStatus::True, vec![Reason::ListenersNotValid]),
            }
        } else {
            excluded(&name, verdict, found);
            (ConditionStatus::False, vec![Reason::NotAllowed])
        };
        let accepted = verdict.conditions.get(ConditionType::Accepted);
        if !accepted.is_some_and(|stated| stated.status == status && reasons.contains(&stated.reason)) {
            found.push(format!("{name}: {accepted:?}, not {status:?} for one of {reasons:?}"));
        }
        let programmed = match (status, accepted.map(|accepted| accepted.reason)) {
            (ConditionStatus::True, _) => Reason::Programmed,
            (_, Some(Reason::ParentNotAccepted)) => Reason::ParentNotProgrammed,
            (_, reason) => reason.unwrap_or(Reason::Invalid),
        };
        exactly(&name, &verdict.conditions, ConditionType::Programmed, status, programmed, found);
    }
    found.extend(stated.keys().map(|key| format!("{key:?} is not of this Gateway, and has a verdict")));
}

/// A ListenerSet that is not allowed has nothing that serves, or that looks as if it did.
fn excluded(name: &str, verdict: &ListenerSetVerdict, found: &mut Vec<String>) {
    for listener in &verdict.listeners {
        let seems_to_serve = [ConditionType::Accepted, ConditionType::Programmed]
            .into_iter()
            .any(|kind| listener.conditions.is_true(kind));
        if seems_to_serve || listener.attached_routes > 0 || listener.data_plane.is_some() {
            found.push(format!("{name} is not allowed, and listener {} is {listener:?}", listener.name));
        }
    }
}

/// The listeners of one Gateway or ListenerSet, in the order of its spec.
fn listeners(
    owner: &str,
    spec: &[Listener],
    expected: &[&ListenerStatus],
    (verdicts, generation): (&[ListenerVerdict], i64),
    found: &mut Vec<String>,
) {
    if verdicts.len() != spec.len() {
        found.push(format!("{owner} has {} listeners, {} verdicts on them", spec.len(), verdicts.len()));
        return;
    }
    for ((listener, expected), verdict) in spec.iter().zip(expected).zip(verdicts) {
        let name = format!("{owner}, listener {}", listener.name);
        observed(&name, &verdict.conditions, generation, found);
        if verdict.name != listener.name {
            found.push(format!("the verdict on {name} is called {}", verdict.name));
        }
        self::listener(&name, expected, verdict, found);
    }
}

fn listener(name: &str, expected: &ListenerStatus, verdict: &ListenerVerdict, found: &mut Vec<String>) {
    if verdict.attached_routes != expected.attached_routes {
        let (stated, counted) = (verdict.attached_routes, expected.attached_routes);
        found.push(format!("{name} states {stated} attached routes, not {counted}"));
    }
    let reasons: Vec<Reason> = expected.problems.iter().filter_map(|problem| reason_of(*problem)).collect();
    one_of(name, &verdict.conditions, ConditionType::Accepted, &reasons, found);
    let conflicts: Vec<Reason> = expected
        .problems
        .iter()
        .filter(|problem| is_conflict(**problem))
        .filter_map(|problem| reason_of(*problem))
        .collect();
    let conflicted = verdict.conditions.is_true(ConditionType::Conflicted);
    if conflicted == conflicts.is_empty() {
        found.push(format!("{name} is conflicted: {conflicted}; problems: {:?}", expected.problems));
    }
    // A listener that loses a conflict has the reason in three conditions.
    if let [conflict] = conflicts.as_slice() {
        let (yes, no) = (ConditionStatus::True, ConditionStatus::False);
        exactly(name, &verdict.conditions, ConditionType::Conflicted, yes, *conflict, found);
        exactly(name, &verdict.conditions, ConditionType::Programmed, no, *conflict, found);
    }
    let serves = expected.problems.is_empty();
    if verdict.data_plane.is_some() != serves
        || verdict.conditions.is_true(ConditionType::Programmed) != serves
    {
        found.push(format!("{name} has {:?}; problems: {:?}", verdict.data_plane, expected.problems));
    }
    let supported: BTreeSet<&str> = verdict.supported_kinds.iter().map(|kind| kind.kind.as_str()).collect();
    if supported != expected.supported_kinds {
        found.push(format!("{name} supports {:?}", verdict.supported_kinds));
    }
    if expected.speaks_http {
        let mut reasons = reasons_called(&expected.certificate_problems);
        if expected.has_wrong_kinds {
            reasons.push(Reason::InvalidRouteKinds);
        }
        one_of(name, &verdict.conditions, ConditionType::ResolvedRefs, &reasons, found);
    }
}

const fn is_conflict(problem: ListenerProblem) -> bool {
    matches!(problem, ListenerProblem::ProtocolConflict | ListenerProblem::HostnameConflict)
}

/// The reason of `Accepted=False` a problem is; a certificate is a matter of `ResolvedRefs` alone.
const fn reason_of(problem: ListenerProblem) -> Option<Reason> {
    match problem {
        ListenerProblem::UnsupportedProtocol => Some(Reason::UnsupportedProtocol),
        ListenerProblem::ProtocolConflict => Some(Reason::ProtocolConflict),
        ListenerProblem::HostnameConflict => Some(Reason::HostnameConflict),
        ListenerProblem::InvalidCertificateRef => None,
    }
}

fn reasons_called(names: &BTreeSet<&str>) -> Vec<Reason> {
    Reason::ALL.iter().copied().filter(|known| names.contains(known.as_str())).collect()
}

fn route(
    case: &Case,
    index: usize,
    expected: &[ParentStatus],
    verdict: &RouteVerdict,
    found: &mut Vec<String>,
) {
    let route = &case.world.routes[index];
    let name = format!("{}/{}", route.metadata.namespace, route.metadata.name);
    let stated: Vec<usize> = verdict.parents.iter().map(|parent| parent.parent_ref.index).collect();
    if !expected.iter().map(|parent| parent.index).eq(stated.iter().copied()) {
        found.push(format!("{name}: verdicts on parentRefs {stated:?}, not {expected:?}"));
        return;
    }
    for (expected, verdict) in expected.iter().zip(verdict.parents.iter()) {
        let name = format!("{name} parentRefs[{}]", expected.index);
        let written = &route.spec.parent_refs[expected.index];
        let echo = &verdict.parent_ref;
        if echo.group != written.group
            || echo.kind != written.kind
            || echo.namespace != written.namespace
            || echo.name != written.name
            || echo.section_name != written.section_name
            || echo.port != written.port.map(i32::from)
        {
            found.push(format!("{name}: {written:?} is echoed as {echo:?}"));
        }
        observed(&name, &verdict.conditions, route.metadata.generation, found);
        let reason = expected.refused.map(|reason| {
            Reason::ALL.iter().copied().find(|known| known.as_str() == reason).expect("a reason we know")
        });
        one_of(&name, &verdict.conditions, ConditionType::Accepted, reason.as_slice(), found);
        let partially = verdict.conditions.is_true(ConditionType::PartiallyInvalid);
        // Without a responder more is refused than the oracle knows of.
        if partially != expected.partially_invalid {
            found.push(format!("{name}: PartiallyInvalid is {partially}, {expected:?}"));
        }
        let reasons = case.world.unresolved_reasons(index);
        if reasons.is_empty() && case.world.refers_to_external(index) {
            continue;
        }
        let reasons = reasons_called(&reasons);
        if reasons.is_empty() || !case.world.refers_to_external(index) {
            one_of(&name, &verdict.conditions, ConditionType::ResolvedRefs, &reasons, found);
        }
    }
}

/// The condition is `True` when there are no reasons against it, else `False` with one of them.
fn one_of(
    name: &str,
    conditions: &Conditions,
    kind: ConditionType,
    reasons: &[Reason],
    found: &mut Vec<String>,
) {
    let status = if reasons.is_empty() { ConditionStatus::True } else { ConditionStatus::False };
    match conditions.get(kind) {
        None => found.push(format!("{name} lacks {kind}")),
        Some(Condition { status: stated, reason, .. }) => {
            let is_expected = *stated == status && (reasons.is_empty() || reasons.contains(reason));
            if !is_expected {
                found.push(format!(
                    "{name}: {kind} is {stated:?} for {reason}, not {status:?} for one of {reasons:?}"
                ));
            }
        }
    }
}

fn exactly(
    name: &str,
    conditions: &Conditions,
    kind: ConditionType,
    status: ConditionStatus,
    reason: Reason,
    found: &mut Vec<String>,
) {
    let stated = conditions.get(kind).map(|condition| (condition.status, condition.reason));
    if stated != Some((status, reason)) {
        found.push(format!("{name}: {kind} is {stated:?}, not {status:?} for {reason}"));
    }
}

fn observed(name: &str, conditions: &Conditions, generation: i64, found: &mut Vec<String>) {
    for condition in conditions {
        if condition.observed_generation != generation {
            found.push(format!(
                "{name}: {} observed generation {}",
                condition.kind, condition.observed_generation
            ));
        }
        if condition.message.is_empty() {
            found.push(format!("{name}: {} says nothing", condition.kind));
        }
    }
}
