//! Stream documents on random Gateways, against an independent reading of Gateway API.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod budget;
mod oracle;
mod world;

use std::collections::BTreeMap;

use pingsix_translate::stream::{Arrival, Destination, RejectReason, StreamConfig, validate};
use pingsix_translate::{Budget, ObjectName, Objects, Options, StreamPlane, Translation, translate};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use oracle::{Outcome, fate, specificity};
use world::{SERVICES, World};

const CASES: u64 = 400;

const NAMES: [&str; 10] = [
    "a.test",
    "b.a.test",
    "c.b.a.test",
    "d.c.b.a.test",
    "x.a.test",
    "b.test",
    "c.b.test",
    "x.test",
    "test",
    "other",
];

/// The documents' targets for a connection; `None` without a route, or for a guard.
fn documents(config: &StreamConfig, port: u16, arrival: Arrival<'_>) -> Option<BTreeMap<&'static str, u32>> {
    let (_, route) = config.route_for(port, arrival)?;
    let mut shares = BTreeMap::new();
    for target in &route.targets {
        let end = match &target.to {
            Destination::Reject(RejectReason::NoRoute) => return None,
            Destination::Reject(RejectReason::Invalid) => "invalid",
            Destination::Reject(RejectReason::NoEndpoints) => "no_endpoints",
            Destination::Upstream(id) => {
                let nodes = &config.upstream(id).unwrap().nodes;
                let port = if arrival == Arrival::Udp { 91 } else { 90 };
                let at = (1..=2).find(|index| nodes.contains_key(&format!("10.0.0.{index}:{port}"))).unwrap();
                assert_eq!(nodes.len(), 1);
                SERVICES[at - 1]
            }
        };
        assert!(shares.insert(end, target.weight).is_none(), "{end} twice");
    }
    Some(shares)
}

fn run(objects: &Objects, budget: Budget) -> (Translation, StreamPlane) {
    let snapshot = objects.snapshot(&ObjectName::new("infra", "web")).unwrap();
    let translation = translate(&snapshot, &Options { stream: true, budget, ..Options::default() });
    let plane = translation.stream_planes.values().next().unwrap().clone();
    (translation, plane)
}

/// All connections that the test tries on a Gateway.
fn arrivals() -> impl Iterator<Item = (u16, Arrival<'static>)> {
    let names = [443, 444].into_iter().flat_map(|port| NAMES.map(|name| (port, Arrival::Tls(name))));
    let plain = [(5432, Arrival::Tcp), (5433, Arrival::Tcp), (53, Arrival::Udp), (443, Arrival::Tcp)];
    names.chain(plain)
}

/// Checks the destination of a connection.
fn check_connection(
    world: &World,
    config: &StreamConfig,
    port: u16,
    arrival: Arrival<'_>,
    seed: u64,
) -> Outcome {
    let expected = fate(world, port, arrival);
    let found = documents(config, port, arrival);
    let is_right = match (&expected, &found) {
        (Outcome::Shares(expected), found) => found.as_ref() == Some(expected),
        (Outcome::NoRoute, found) => found.is_none(),
        // A connection without a document is closed too: documents exist only where a wider listener could take it.
        (Outcome::Unserved, found) => {
            found.as_ref().is_none_or(|found| *found == BTreeMap::from([("invalid", 1)]))
        }
    };
    assert!(is_right, "seed {seed}, {arrival:?} at port {port}: {found:?}, not {expected:?}: {config:#?}");
    expected
}

#[test]
fn every_connection_goes_where_the_specification_says() {
    let (mut taken, mut closed, mut split, mut kept) = (0, 0, 0, 0);
    for seed in 0..CASES {
        let mut world = World::random(&mut SmallRng::seed_from_u64(seed));
        let objects = world.objects();
        let (translation, plane) = run(&objects, Budget::default());
        assert_eq!(validate(&plane.config), [], "seed {seed}");
        for (port, arrival) in arrivals() {
            match check_connection(&world, &plane.config, port, arrival, seed) {
                Outcome::NoRoute => closed += 1,
                Outcome::Unserved => kept += 1,
                Outcome::Shares(shares) if shares.len() > 1 => split += 1,
                Outcome::Shares(_) => taken += 1,
            }
        }
        let gateway = translation.verdicts.gateway.unwrap();
        for (listener, verdict) in world.listeners.iter().zip(&gateway.listeners) {
            let attached = world.routes.iter().filter(|route| route.is_attached_to(listener)).count();
            assert_eq!(
                verdict.attached_routes,
                i32::try_from(attached).unwrap(),
                "seed {seed} {}",
                listener.name
            );
        }
    }
    // A generator that hardly ever gets somewhere would make all this pass.
    assert!([taken, closed, split, kept].iter().all(|count| *count > 500), "{taken} {closed} {split} {kept}");
}

#[test]
fn one_route_more_changes_only_the_documents_of_its_own_places() {
    for seed in 0..CASES / 4 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut world = World::random(&mut rng);
        let before = run(&world.objects(), Budget::default()).1.config;
        let mut added = World::route(&mut rng, 99, &world.listeners);
        added.name = "new".to_owned();
        let own: Vec<(u16, Option<String>)> = world
            .listeners
            .iter()
            .filter(|listener| added.is_attached_to(listener))
            .flat_map(|listener| {
                let names = added.hostnames.iter().map(|name| {
                    let narrower = specificity(listener.hostname) > specificity(Some(name));
                    (listener.port, listener.hostname.filter(|_| narrower).or(Some(name)).map(str::to_owned))
                });
                let plain = (listener.protocol != "TLS").then_some((listener.port, None));
                names.chain(plain).collect::<Vec<_>>()
            })
            .collect();
        world.routes.push(added);
        let after = run(&world.objects(), Budget::default()).1.config;
        for (key, route) in before.routes() {
            let place = (route.server_port, route.snis.first().cloned());
            assert!(own.contains(&place) || after.route(&key.id) == Some(route), "seed {seed}: {key}");
        }
        let new = after.routes().filter(|(key, _)| before.get(key).is_none());
        for (key, route) in new {
            assert!(own.contains(&(route.server_port, route.snis.first().cloned())), "seed {seed}: {key}");
        }
    }
}
