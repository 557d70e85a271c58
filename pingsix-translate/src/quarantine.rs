//! Quarantine: parts of objects that PingSIX has refused although they have no known problem.
//!
//! Quarantined parts fail closed, like any other unusable part: rules keep their matches and answer an error,
//! backends answer an error for their share, and certificates are not presented. The owner of a part is notified with
//! PingSIX's message.

use std::sync::Arc;

use crate::model::{Kind, ObjectKey, Origin, Reason, Refusal, Section};
use crate::normalise::Route;
use crate::snapshot::Quarantine;

/// PingSIX's message about a part of an object.
pub(crate) fn message_of<'q>(
    quarantine: &'q Quarantine,
    object: &ObjectKey,
    section: Section,
) -> Option<&'q str> {
    // Nearly always, and asked for everything there is.
    if quarantine.is_empty() {
        return None;
    }
    quarantine.get(&Origin { object: Arc::new(object.clone()), section }).map(|refusal| &**refusal)
}

/// Refuses the rules that are in quarantine.
pub(crate) fn refuse_rules(quarantine: &Quarantine, mut route: Route) -> Route {
    if quarantine.is_empty() || !route.traffic.has_requests() {
        return route;
    }
    for index in 0..route.rules.len() {
        let rule = &route.rules[index];
        let section = route.part.section_of_rule(rule);
        let Some(refusal) = message_of(quarantine, &route.key, section) else { continue };
        let message = format!(
            "PingSIX refuses the documents of this rule. Its requests get {} until the rule changes. \
             PingSIX: {refusal}",
            route.traffic.failure()
        );
        let refusal = Refusal::new(route.field_of(rule), Reason::Quarantined, message);
        route.rules[index].refusals.push(refusal);
    }
    route
}

/// The reason why a Secret may not be used.
pub(crate) fn refuse_secret(quarantine: &Quarantine, secret: &ObjectKey) -> Option<String> {
    debug_assert_eq!(secret.kind, Kind::Secret);
    let refusal = message_of(quarantine, secret, Section::Whole)?;
    Some(format!(
        "PingSIX refuses the certificate of {secret}. The certificate is not shown until the Secret \
         changes. PingSIX: {refusal}"
    ))
}

/// The reason why a Service may not be used.
pub(crate) fn refuse_service(quarantine: &Quarantine, service: &ObjectKey) -> Option<String> {
    debug_assert_eq!(service.kind, Kind::Service);
    let refusal = message_of(quarantine, service, Section::Whole)?;
    Some(format!(
        "PingSIX refuses the documents of {service}. Its share of requests gets an error until the \
         Service or its endpoints change. PingSIX: {refusal}"
    ))
}

#[cfg(test)]
mod tests;
