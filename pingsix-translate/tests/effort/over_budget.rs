//! Changes of a data plane that refuses rules.

use std::sync::Arc;

use pingsix_translate::snapshot::{AnyRoute, HttpRoute};
use pingsix_translate::{
    Budget, Kind, ObjectKey, ObjectName, Options, Snapshot, TranslationMode, Translator, translate,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::{ROUTES_PER_TEAM, TEAMS, assert_same, options, slices, with, world};

const STEPS: usize = 72;

/// A change of an object: those that change no charge, and others.
type Change = fn(&mut Snapshot, &mut SmallRng);

const CHANGES: [Change; 6] = [endpoint, endpoints, weights, path, backend, presence];

fn team(rng: &mut SmallRng) -> String {
    format!("team-{}", rng.random_range(0..TEAMS))
}

/// The only endpoint of a Service.
fn endpoint(world: &mut Snapshot, rng: &mut SmallRng) {
    let address = format!("10.0.0.{}", rng.random_range(1..255));
    slices(world, &ObjectName::new(team(rng), "own"), json!([{"addresses": [address]}]));
}

/// Up to twelve endpoints of a Service.
fn endpoints(world: &mut Snapshot, rng: &mut SmallRng) {
    let count = rng.random_range(0..12);
    let endpoints: Vec<Value> =
        (0..count).map(|number| json!({"addresses": [format!("10.1.{number}.1")]})).collect();
    let of =
        if rng.random() { ObjectName::new("infra", "shared") } else { ObjectName::new(team(rng), "own") };
    slices(world, &of, json!(endpoints));
}

/// Replaces a value of a random route.
fn change_route(world: &mut Snapshot, rng: &mut SmallRng, pointer: &str, value: Value) {
    let name = format!("route-{}", rng.random_range(0..ROUTES_PER_TEAM));
    let key = ObjectKey::new(Kind::HttpRoute, team(rng), name);
    let Some(AnyRoute::HttpRoute(before)) = world.routes.get(&key) else { return };
    let changed: Arc<HttpRoute> = with(&**before, pointer, value);
    world.routes.insert(key, AnyRoute::HttpRoute(changed));
}

fn weights(world: &mut Snapshot, rng: &mut SmallRng) {
    let backends = json!([
        {"name": "own", "port": 80, "weight": rng.random_range(1..100)},
        {"name": "shared", "namespace": "infra", "port": 80, "weight": rng.random_range(1..100)},
    ]);
    change_route(world, rng, "/spec/rules/0/backendRefs", backends);
}

fn path(world: &mut Snapshot, rng: &mut SmallRng) {
    let path = format!("/{}", "p".repeat(rng.random_range(1..30)));
    change_route(world, rng, "/spec/rules/1/matches/0/path/value", json!(path));
}

fn backend(world: &mut Snapshot, rng: &mut SmallRng) {
    let backends = [
        json!([{"name": "own", "port": 80}]),
        json!([{"name": "shared", "namespace": "infra", "port": 80}]),
        json!([]),
    ];
    let backends = backends[rng.random_range(0..3)].clone();
    change_route(world, rng, "/spec/rules/1/backendRefs", backends);
}

/// Removes a route.
fn presence(world: &mut Snapshot, rng: &mut SmallRng) {
    let name = format!("route-{}", rng.random_range(0..ROUTES_PER_TEAM));
    world.routes.remove(&ObjectKey::new(Kind::HttpRoute, team(rng), name));
}

/// A change that changes no charge leaves the admission as it is; any other one repeats it. Both give the same as a full
/// translation.
#[test]
fn an_incremental_translation_over_budget_equals_a_full_one() {
    for (seed, namespace_share) in [(1, 100), (2, 9)] {
        let mut world = world();
        let bytes: usize =
            translate(&world, &options()).data_planes.values().map(|plane| plane.size.bytes).max().unwrap();
        let options = Options { budget: Budget { bytes, ..options().budget }, namespace_share, ..options() };
        let (mut translator, mut rng) = (Translator::new(options.clone()), SmallRng::seed_from_u64(seed));
        translator.translate(&world);
        let mut incremental = 0;
        for step in 0..STEPS {
            CHANGES[step % CHANGES.len()](&mut world, &mut rng);
            let got = translator.translate(&world);
            assert_same(&got, &translate(&world, &options));
            incremental += usize::from(matches!(translator.last_mode(), TranslationMode::Incremental { .. }));
        }
        assert!(incremental * 2 > STEPS, "{incremental} of {STEPS}");
    }
}
