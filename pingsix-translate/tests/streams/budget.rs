//! Budgets of stream documents: the oldest routes are admitted, and they get the same as alone.

use std::collections::BTreeSet;

use pingsix_translate::status::Reason;
use pingsix_translate::{Budget, Translation};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::oracle::can_have_connections;
use crate::world::{Route, World};
use crate::{CASES, arrivals, check_connection, run};

/// The routes a translation had no room for, as kind, namespace and name.
fn refused(translation: &Translation) -> BTreeSet<(String, String, String)> {
    let problems = translation.verdicts.problems.iter();
    let over = problems.filter(|problem| problem.reason == Reason::BudgetExceeded);
    over.map(|problem| {
        let name = &problem.object.name;
        (problem.object.kind.to_string(), name.namespace.to_string(), name.name.to_string())
    })
    .collect()
}

fn key(route: &Route) -> (String, String, String) {
    (route.kind.to_owned(), route.namespace.to_owned(), route.name.clone())
}

/// The order of admission. Routes of different kinds can have one age and one name.
fn age(route: &Route) -> (&'static str, String, Option<usize>) {
    let kind = ["TLSRoute", "TCPRoute", "UDPRoute"].iter().position(|kind| *kind == route.kind);
    (route.age.unwrap_or("9999"), format!("{}/{}", route.namespace, route.name), kind)
}

/// The parentRefs that accept a route: a route beyond the budget is refused by those that lead to a served listener.
fn accepted<'a>(world: &'a World, route: &'a Route, is_refused: bool) -> impl Iterator<Item = usize> + 'a {
    (0..route.parents.len()).filter(move |&parent| {
        let mut served = world.listeners.iter().filter(|listener| listener.is_served);
        !is_refused || !served.any(|listener| route.attaches(parent, listener))
    })
}

#[test]
fn a_budget_admits_the_oldest_routes_and_they_get_what_they_would_alone() {
    let (mut some, mut all) = (0, 0);
    for seed in 0..CASES {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut world = World::random(&mut rng);
        let objects = world.objects();
        let (_, whole) = run(&objects, Budget::default());
        if whole.size.matcher_entries == 0 {
            continue;
        }
        let by_bytes = rng.random_bool(0.5);
        let budget = if by_bytes {
            Budget { bytes: rng.random_range(0..whole.size.bytes), ..Budget::default() }
        } else {
            let matcher_entries = rng.random_range(0..whole.size.matcher_entries);
            Budget { matcher_entries, ..Budget::default() }
        };
        let (translation, plane) = run(&objects, budget);
        let refused = refused(&translation);
        let (out, kept): (Vec<&Route>, Vec<&Route>) = world
            .routes
            .iter()
            .filter(|route| can_have_connections(&world, route))
            .partition(|route| refused.contains(&key(route)));
        assert!(!out.is_empty() || kept.is_empty(), "seed {seed}: everything is admitted to {budget:?}");
        let fits = plane.size.bytes <= budget.bytes && plane.size.matcher_entries <= budget.matcher_entries;
        assert!(fits || kept.is_empty(), "seed {seed}: {:?} of {budget:?}", plane.size);
        let youngest_kept = kept.iter().map(|route| age(route)).max();
        let oldest_out = out.iter().copied().min_by_key(|route| age(route));
        if let (Some(kept), Some(out)) = (&youngest_kept, oldest_out) {
            assert!(*kept <= age(out), "seed {seed}: {kept:?} is admitted before {:?}", age(out));
        }
        let next = oldest_out.map(key);
        if kept.is_empty() {
            all += 1;
        } else {
            some += 1;
        }

        let gateway = translation.verdicts.gateway.as_ref().unwrap();
        for (listener, verdict) in world.listeners.iter().zip(&gateway.listeners) {
            let attached = world.routes.iter().filter(|route| {
                accepted(&world, route, refused.contains(&key(route))).any(|by| route.attaches(by, listener))
            });
            let stated = usize::try_from(verdict.attached_routes).unwrap();
            assert_eq!(stated, attached.count(), "seed {seed} {}", listener.name);
        }

        world.routes.retain(|route| !refused.contains(&key(route)) || Some(key(route)) == next);
        let one_more = run(&world.objects(), Budget::default()).1.size;
        // Admitting a route may save bytes: it can take names from a larger one.
        if next.is_some() && !by_bytes {
            assert!(one_more.matcher_entries > budget.matcher_entries, "seed {seed}: {next:?} would fit too");
        }
        world.routes.retain(|route| !refused.contains(&key(route)));
        let (_, alone) = run(&world.objects(), Budget::default());
        assert_eq!(plane.config, alone.config, "seed {seed}");
        for (port, arrival) in arrivals() {
            check_connection(&world, &plane.config, port, arrival, seed);
        }
    }
    // A generator that hardly ever gets somewhere would make all this pass.
    assert!(some > 60 && all > 60, "{some} {all}");
}
