//! Answers, and the one that PingSIX gives.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::pingsix::{DocumentKey, Outcome, Router};
use pingsix_translate::{DataPlane, Provenance};

use crate::answer::{plugins_of, redirect, target_of};
use crate::effect::{Headers, backend_answer};
use crate::evaluate;
use crate::oracle::{Answer, Target, World};
use crate::probe::Probe;
use crate::protection::Credential;

/// The origin of an answer, and the answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answered {
    /// `namespace/name` of the Ingress; `None` for 404.
    pub(super) ingress: Option<String>,
    pub(super) answer: Given,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Given {
    /// Without a backend.
    Status(u16),
    /// Without a backend, by share: a canary and its Ingress without one.
    Statuses(Answer),
    /// A redirect.
    Redirect { status: u16, location: Option<String> },
    /// The permission of a preflight.
    Preflight,
    /// The answers of backends.
    Backends(Box<Delivery>),
}

/// A request for backends, and what becomes of their responses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Delivery {
    pub(super) shares: Answer,
    /// The path and the query at the backend.
    pub(super) target: String,
    /// The Host at the backend.
    pub(super) host: Option<String>,
    /// The values of `X-Forwarded-Prefix` at the backend.
    pub(super) prefix: Vec<String>,
    pub(super) response: Headers,
    /// Whether scripts of other origins may read the response.
    pub(super) is_for_scripts: bool,
    /// The networks of the clients that are admitted, and of those that are not.
    pub(super) networks: [BTreeSet<String>; 2],
    /// The user that a request needs.
    pub(super) user: Option<String>,
}

impl Answered {
    pub(super) const fn not_found() -> Self {
        Self { ingress: None, answer: Given::Status(404) }
    }
}

impl Delivery {
    /// Whether a backend sees the request as it is, and the client the response.
    pub(super) fn is_plain(&self, probe: &Probe) -> bool {
        self.target == format!("{}{}", probe.path, probe.query_string())
            && self.host == probe.host
            && self.prefix.is_empty()
            && self.response == backend_answer()
            && !self.is_for_scripts
    }
}

/// The answer of PingSIX to a request.
///
/// # Errors
///
/// The answer has no meaning: the configuration or its provenance has a defect.
pub(super) fn given(
    world: &World,
    plane: &DataPlane,
    router: &Router<'_>,
    probe: &Probe,
) -> Result<Answered, String> {
    let request = probe.request();
    let (route, answer) = match router.outcome(&request) {
        Outcome::NotFound => return Ok(Answered::not_found()),
        Outcome::Static { route, status, .. } => (route, Given::Status(status)),
        Outcome::Preflight { route, allowed: true } => (route, Given::Preflight),
        Outcome::Preflight { route, allowed: false } => (route, Given::Status(403)),
        Outcome::Redirect { route, status, location } => {
            (route, of_target(redirect(status, Some(&location), &request))?)
        }
        Outcome::Forward { route, candidates } => {
            let plugins = plugins_of(plane, route)?;
            let mut shares: BTreeMap<Target, u64> = BTreeMap::new();
            let mut to_service = None;
            for candidate in &candidates {
                let (target, upstream) = target_of(world, plane, &plugins, &request, &candidate.upstream)?;
                to_service =
                    to_service.or_else(|| matches!(target, Target::Service { .. }).then_some(upstream));
                *shares.entry(target).or_default() += u64::from(candidate.weight);
            }
            let Some(upstream) = to_service else {
                let ingress = Some(ingress_of(plane, route)?);
                let mut targets = shares.keys();
                let answer = match (targets.next(), targets.next()) {
                    (Some(target), None) => of_target(target.clone())?,
                    _ => Given::Statuses(Answer::new(shares)),
                };
                return Ok(Answered { ingress, answer });
            };
            let mut effect = evaluate::effect(&plugins, upstream, &request)?;
            let protection = evaluate::protection(&plugins)?;
            let addresses = protection.addresses.unwrap_or_default();
            let user = match protection.credential {
                None => None,
                Some(Credential::User { name, .. }) => Some(name),
                Some(other) => return Err(format!("nobody asked for {other:?}")),
            };
            let delivery = Delivery {
                shares: Answer::new(shares),
                target: effect.target,
                host: effect.host,
                prefix: effect.request.remove("x-forwarded-prefix").unwrap_or_default(),
                response: effect.response,
                is_for_scripts: effect.script.is_some(),
                networks: [addresses.allow, addresses.deny],
                user,
            };
            (route, Given::Backends(Box::new(delivery)))
        }
    };
    Ok(Answered { ingress: Some(ingress_of(plane, route)?), answer })
}

fn of_target(target: Target) -> Result<Given, String> {
    match target {
        Target::Status(status) => Ok(Given::Status(status)),
        Target::Redirect { status, location } => Ok(Given::Redirect { status, location }),
        target @ (Target::Service { .. } | Target::Preflight(_)) => Err(format!("{target:?} is no answer")),
    }
}

/// The only Ingress that decides by a route.
fn ingress_of(plane: &DataPlane, route: &DocumentKey) -> Result<String, String> {
    let Some(Provenance::Rules { decisions, .. }) = plane.provenance.get(route) else {
        return Err(format!("{route} has provenance {:?}", plane.provenance.get(route)));
    };
    let origins = decisions.iter().map(|decision| decision.origin.as_ref());
    let names: Option<BTreeSet<String>> =
        origins.map(|origin| origin.map(|origin| origin.object.name.to_string())).collect();
    let names: Vec<String> = names.into_iter().flatten().collect();
    match <[String; 1]>::try_from(names) {
        Ok([name]) => Ok(name),
        Err(names) => Err(format!("{names:?} share {route}")),
    }
}
