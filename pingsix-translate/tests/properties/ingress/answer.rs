//! PingSIX's answer to a request, in the terms of the oracle.

use pingsix_translate::pingsix::{DocumentKey, Outcome, Request, Router};
use pingsix_translate::{DataPlane, Provenance};

use super::oracle::Decided;
use crate::answer::{plugins_of, target_of};
use crate::evaluate;
use crate::oracle::{Target, World};

/// Asks the router model, and finds the way back from its outcome to Ingresses and Services.
///
/// # Errors
///
/// The answer has no meaning for the oracle: the configuration or its provenance has a defect.
pub(crate) fn answer(
    world: &World,
    plane: &DataPlane,
    router: &Router<'_>,
    request: &Request,
) -> Result<Decided, String> {
    match router.outcome(request) {
        // The fallback route of a host is not the answer of a rule.
        Outcome::NotFound | Outcome::Static { status: 404, .. } => {
            Ok(Decided::without_backend(None, Target::Status(404)))
        }
        Outcome::Static { route, status, .. } => {
            Ok(Decided::without_backend(Some(origin_of(plane, route)?), Target::Status(status)))
        }
        Outcome::Forward { route, candidates } => {
            let [candidate] = candidates.as_slice() else {
                return Err(format!("{route} shares its requests"));
            };
            let plugins = &plugins_of(plane, route)?;
            let (target, upstream) = target_of(world, plane, plugins, request, &candidate.upstream)?;
            let origin = Some(origin_of(plane, route)?);
            if !matches!(target, Target::Service { .. }) {
                return Ok(Decided::without_backend(origin, target));
            }
            let protection = evaluate::protection(plugins)?;
            let response = evaluate::effect(plugins, upstream, request)?.response;
            Ok(Decided { origin, target, protection, response })
        }
        outcome @ (Outcome::Preflight { .. } | Outcome::Redirect { .. }) => {
            Err(format!("nobody asked for {outcome:?}"))
        }
    }
}

fn origin_of(plane: &DataPlane, route: &DocumentKey) -> Result<(String, String), String> {
    match plane.provenance.get(route) {
        Some(Provenance::Rules { decisions, .. }) => match &**decisions {
            [decision] => {
                let origin = decision.origin.as_ref().ok_or_else(|| format!("{route} is nobody's"))?;
                Ok((origin.object.name.to_string(), origin.field().to_string()))
            }
            several => {
                Err(format!("{route} has {} decisions, and an Ingress has no conditions", several.len()))
            }
        },
        other => Err(format!("{route} has provenance {other:?}")),
    }
}
