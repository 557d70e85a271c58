//! Random tables of objects, with vocabularies so small that names, paths and conditions collide all the time.

pub(crate) mod backend_traffic;
mod filter;
pub(crate) mod gateway;
mod grpc;
pub(crate) mod listener_set;
mod request;
mod route;
pub(crate) mod schema;
pub(crate) mod security;
mod service;
pub(crate) mod traffic;

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::Value;

pub(crate) use self::gateway::{CERTIFICATES, secret_of};
pub(crate) use self::request::{hosts, probe};
pub(crate) use self::service::{SERVICES, services};

/// Namespaces: two of them differ by what sorts before `/`, so that `namespace/name` is not namespace, then name.
pub(crate) const NAMESPACES: [&str; 3] = ["infra", "app", "app-b"];

/// Hostnames that cover, meet and miss one another.
pub(crate) const HOSTNAMES: [&str; 9] = [
    "*.example.com",
    "a.example.com",
    "*.a.example.com",
    "b.a.example.com",
    "*.com",
    "example.com",
    "other.test",
    "*.test",
    "*.b.example.com",
];

/// The properties of generated tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taste {
    /// Whether listeners may speak HTTPS.
    pub(crate) https: bool,
}

/// A random table: every object of one case.
pub(crate) fn table(rng: &mut SmallRng, taste: Taste) -> Vec<Value> {
    let mut objects = gateway::namespaces();
    objects.push(gateway::gateway(rng, taste, "public"));
    objects.extend(gateway::certificates("infra"));
    objects.extend(service::services(rng));
    objects.extend(service::grants(rng));
    let mut routes: Vec<Value> = Vec::new();
    for index in 0..rng.random_range(1..=6) {
        let mut route = if one_in(rng, 3) { grpc::route(rng, index) } else { route::route(rng, index) };
        if let Some(model) = routes.choose(rng).filter(|_| index % 2 == 1) {
            route::imitate(rng, &mut route, model);
        }
        routes.push(route);
    }
    filter::decorate(rng, &mut routes);
    objects.extend(routes);
    objects
}

/// A random table with a second Gateway. About a third of the routes are attached to it as well, and another third
/// to it alone.
pub(crate) fn table_of_two(rng: &mut SmallRng, taste: Taste) -> Vec<Value> {
    let mut objects = table(rng, taste);
    for object in &mut objects {
        let Some(parents) = object["spec"].get_mut("parentRefs").and_then(Value::as_array_mut) else {
            continue;
        };
        let mut moved = parents.clone();
        for parent in moved.iter_mut().filter(|parent| parent["name"] == "public") {
            parent["name"] = "private".into();
        }
        match rng.random_range(0..3) {
            0 => parents.extend(moved),
            1 => *parents = moved,
            _ => {}
        }
    }
    objects.push(gateway::gateway(rng, taste, "private"));
    objects
}

/// A random table in which the Gateway shares its ports with ListenerSets, and routes attach to either.
pub(crate) fn table_of_sets(rng: &mut SmallRng, taste: Taste) -> Vec<Value> {
    let mut objects = table(rng, taste);
    listener_set::add(rng, taste, &mut objects);
    objects
}

pub(crate) fn pick<'t, T: ?Sized>(rng: &mut SmallRng, from: &[&'t T]) -> &'t T {
    from.choose(rng).unwrap()
}

/// True once in `n` times.
pub(crate) fn one_in(rng: &mut SmallRng, n: u32) -> bool {
    rng.random_ratio(1, n)
}
