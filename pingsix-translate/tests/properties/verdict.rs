//! Verdicts against the oracle's.

use std::collections::BTreeSet;

use pingsix_translate::Layout;
use pingsix_translate::verdict::{
    Condition, ConditionStatus, ConditionType, Conditions, Reason, RouteVerdict,
};

use crate::case::Case;
use crate::oracle::ListenerFault;

/// Everything that is not as the oracle expects it; empty when all is well.
pub(crate) fn differences(case: &Case) -> Vec<String> {
    let mut found = Vec::new();
    gateway(case, &mut found);
    let verdicts = &case.translation.verdicts;
    for (index, route) in case.world.routes.iter().enumerate() {
        let (namespace, name) = route.metadata.key();
        let verdict = verdicts
            .routes
            .iter()
            .find(|(key, _)| *key.name.namespace == *namespace && *key.name.name == *name)
            .filter(|(key, _)| key.kind.as_str() == route.kind.as_str());
        let expected = case.world.parent_statuses(index, case.setting.layout == Layout::Shared).len();
        match verdict {
            Some((_, verdict)) => self::route(case, index, verdict, &mut found),
            None if expected == 0 => {}
            None => found.push(format!("{namespace}/{name} has no verdict")),
        }
    }
    found
}

fn gateway(case: &Case, found: &mut Vec<String>) {
    let verdict = case.translation.verdicts.gateway.as_ref().unwrap();
    let metadata = &case.world.gateway.metadata;
    observed("Gateway", &verdict.conditions, metadata.generation, found);
    let expected = case.world.listener_statuses(case.setting.layout == Layout::Shared);
    let spec = &case.world.gateway.spec.listeners;
    if verdict.listeners.len() != spec.len() {
        found.push(format!("{} listeners, {} verdicts on them", spec.len(), verdict.listeners.len()));
        return;
    }
    for ((listener, expected), verdict) in spec.iter().zip(&expected).zip(&verdict.listeners) {
        let name = format!("listener {}", listener.name);
        observed(&name, &verdict.conditions, metadata.generation, found);
        if verdict.name != listener.name {
            found.push(format!("the verdict on {name} is called {}", verdict.name));
        }
        if verdict.attached_routes != expected.attached_routes {
            let (stated, counted) = (verdict.attached_routes, expected.attached_routes);
            found.push(format!("{name} states {stated} attached routes, not {counted}"));
        }
        let is_conflict = |fault: &&ListenerFault| {
            matches!(fault, ListenerFault::ProtocolConflict | ListenerFault::HostnameConflict)
        };
        let reasons: Vec<Reason> = expected.faults.iter().filter_map(|fault| reason_of(*fault)).collect();
        one_of(&name, &verdict.conditions, ConditionType::Accepted, &reasons, found);
        let conflicted = verdict.conditions.is_true(ConditionType::Conflicted);
        if conflicted != expected.faults.iter().any(|fault| is_conflict(&fault)) {
            found.push(format!("{name} is conflicted: {conflicted}; faults: {:?}", expected.faults));
        }
        if verdict.data_plane.is_some() != expected.faults.is_empty() {
            found.push(format!(
                "{name} has data plane {:?} with faults {:?}",
                verdict.data_plane, expected.faults
            ));
        }
        let supported: BTreeSet<&str> =
            verdict.supported_kinds.iter().map(|kind| kind.kind.as_str()).collect();
        if supported != expected.supported_kinds {
            found.push(format!("{name} supports {:?}", verdict.supported_kinds));
        }
        if !expected.faults.contains(&ListenerFault::UnsupportedProtocol) {
            let mut reasons = Vec::new();
            if expected.has_wrong_kinds {
                reasons.push(Reason::InvalidRouteKinds);
            }
            if expected.lacks_certificates {
                reasons.push(Reason::InvalidCertificateRef);
            }
            one_of(&name, &verdict.conditions, ConditionType::ResolvedRefs, &reasons, found);
        }
    }
    let valid = expected.iter().filter(|listener| listener.faults.is_empty()).count();
    // Whether a listener that only cannot resolve the kinds it allows is valid, nothing says.
    if expected.iter().any(|listener| listener.has_wrong_kinds) {
        return;
    }
    let (status, reason) = match valid {
        all if all == expected.len() => (ConditionStatus::True, Reason::Accepted),
        0 => (ConditionStatus::False, Reason::ListenersNotValid),
        _ => (ConditionStatus::True, Reason::ListenersNotValid),
    };
    exactly("Gateway", &verdict.conditions, ConditionType::Accepted, status, reason, found);
}

/// The reason of `Accepted=False` a fault is; a certificate is a matter of `ResolvedRefs` alone.
const fn reason_of(fault: ListenerFault) -> Option<Reason> {
    match fault {
        ListenerFault::UnsupportedProtocol => Some(Reason::UnsupportedProtocol),
        ListenerFault::ProtocolConflict => Some(Reason::ProtocolConflict),
        ListenerFault::HostnameConflict => Some(Reason::HostnameConflict),
        ListenerFault::InvalidCertificateRef => None,
    }
}

fn route(case: &Case, index: usize, verdict: &RouteVerdict, found: &mut Vec<String>) {
    let route = &case.world.routes[index];
    let name = format!("{}/{}", route.metadata.namespace, route.metadata.name);
    let expected = case.world.parent_statuses(index, case.setting.layout == Layout::Shared);
    let stated: Vec<usize> = verdict.parents.iter().map(|parent| parent.parent_ref.index).collect();
    if !expected.iter().map(|parent| parent.index).eq(stated.iter().copied()) {
        found.push(format!("{name}: verdicts on parentRefs {stated:?}, not {expected:?}"));
        return;
    }
    for (expected, verdict) in expected.iter().zip(&verdict.parents) {
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
        let has_filters = route.spec.rules.iter().any(|rule| !rule.filters.is_empty());
        if reasons.is_empty() && (case.world.refers_to_external(index) || has_filters) {
            continue;
        }
        let reasons: Vec<Reason> =
            Reason::ALL.iter().copied().filter(|known| reasons.contains(known.as_str())).collect();
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
