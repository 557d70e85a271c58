//! Parts that routes of every kind have: identity, parents, hostnames.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{BackendRef, Conditions, Hostnames, Match, Part, Path, Route, Rule};
use crate::model::{FieldPath, Hostname, ObjectKey, ObjectName, Reason, Refusal};
use crate::snapshot::{OfKind, RouteObject, RouteSpec};

/// A route's spec without parents and rules.
pub(super) struct RouteHeader<'a> {
    pub(super) hostnames: Option<&'a [String]>,
    /// Whether `useDefaultGateways` asks for Gateways that the route does not name.
    pub(super) uses_default_gateways: bool,
}

/// The rules of a route; the default rule of its API in place of none.
pub(super) fn rules<R: Default>(written: Option<&[R]>, read: impl Fn(usize, &R) -> Rule) -> Vec<Rule> {
    match written {
        None | Some([]) => vec![read(0, &R::default())],
        Some(rules) => rules.iter().enumerate().map(|(index, rule)| read(index, rule)).collect(),
    }
}

/// The matches of a rule, each read with its index; all requests in place of none.
pub(super) fn matches<M>(written: Option<&[M]>, read: impl FnMut((usize, &M)) -> Vec<Match>) -> Vec<Match> {
    match written {
        None | Some([]) => {
            vec![Match { index: 0, path: Path::root(), method: None, conditions: Conditions::default() }]
        }
        Some(matches) => matches.iter().enumerate().flat_map(read).collect(),
    }
}

/// Puts a route together.
pub(super) fn assemble<S: RouteSpec>(
    route: &RouteObject<S>,
    header: &RouteHeader<'_>,
    mut rules: Vec<Rule>,
) -> Route
where
    RouteObject<S>: OfKind,
{
    let kind = RouteObject::<S>::KIND;
    for rule in &mut rules {
        let mirrors = rule.mirrors.iter_mut().map(|mirror| &mut mirror.backend);
        rule.backends.iter_mut().chain(mirrors).for_each(|backend| share_name(backend, route.services()));
    }
    let mut refusals = Vec::new();
    let hostnames = normalise_hostnames(header.hostnames, &mut refusals);
    let default_gateways = header.uses_default_gateways.then(|| {
        Refusal::limited(
            FieldPath::new("spec").child("useDefaultGateways"),
            "There are no default Gateways; only those that parentRefs name serve the route.",
        )
    });
    Route {
        key: Arc::new(ObjectKey { kind, name: route.metadata.name.clone() }),
        part: Part::Whole,
        traffic: kind.traffic().unwrap_or_default(),
        generation: route.metadata.generation,
        age: route.metadata.age,
        parent_refs: route.parent_refs.clone(),
        hostnames,
        rules,
        ingress_port: None,
        alias: 0,
        refusals: refusals.into(),
        limitations: default_gateways.into_iter().collect(),
    }
}

/// Has a backend hold the name that the route itself holds, which the Service holds as well.
fn share_name(backend: &mut BackendRef, services: &[ObjectName]) {
    if let Ok(index) = services.binary_search(&backend.name) {
        backend.name.clone_from(&services[index]);
    }
}

fn normalise_hostnames(names: Option<&[String]>, refusals: &mut Vec<Refusal>) -> Hostnames {
    let names = names.unwrap_or_default();
    if names.is_empty() {
        return Hostnames::Any;
    }
    let mut usable = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        match Hostname::parse(name) {
            Ok(hostname) => {
                usable.insert(hostname);
            }
            Err(error) => refusals.push(Refusal::new(
                FieldPath::new("spec").child("hostnames").index(index),
                Reason::UnsupportedValue,
                format!("\"{name}\" is not a hostname a request could have: {error}."),
            )),
        }
    }
    Hostnames::Named(usable.into_iter().collect())
}
