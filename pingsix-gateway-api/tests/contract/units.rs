//! The answers to requests during a change that is too large for one transaction.

#[path = "../../src/bridge/tests/steps.rs"]
mod steps;

use std::collections::BTreeSet;

use pingsix_gateway_api::bridge;
use pingsix_sink::{DocumentSet, Step, plan, units};
use pingsix_translate::pingsix::{Config, Request, Router};
use pingsix_translate::{DataPlane, DataPlaneKey, Layout};
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::properties::case::{Case, Setting};
use crate::properties::generate::{Taste, hosts, probe, table};
use crate::properties::probe::Probe;
use crate::run::seed;
use steps::apply;

/// Hosts of tables in which Routes have little to do with one another.
const EXACT: [&str; 8] = [
    "a.example.com",
    "b.a.example.com",
    "example.com",
    "other.test",
    "b.example.com",
    "c.example.com",
    "d.test",
    "e.test",
];

const SETTING: Setting = Setting { layout: Layout::PerPort, responder: true };

/// Two tables of the same Gateway, some of whose routes are the same.
fn tables(rng: &mut SmallRng) -> [Vec<Value>; 2] {
    let taste = Taste { https: false };
    let [mut before, other] = [table(rng, taste), table(rng, taste)];
    let is_scattered = rng.random_bool(0.7);
    if is_scattered {
        for gateway in before.iter_mut().filter(|object| object["kind"] == "Gateway") {
            for listener in gateway["spec"]["listeners"].as_array_mut().unwrap() {
                listener.as_object_mut().unwrap().remove("hostname");
            }
        }
    }
    let is_route = |object: &Value| object["kind"].as_str().unwrap().ends_with("Route");
    let key = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    let mut after: Vec<Value> = before.iter().filter(|object| !is_route(object)).cloned().collect();
    let mut routes: Vec<Value> = before.iter().filter(|object| is_route(object)).cloned().collect();
    routes.retain(|_| rng.random_bool(0.6));
    let kept: BTreeSet<String> = routes.iter().map(key).collect();
    routes.extend(other.into_iter().filter(|object| is_route(object) && !kept.contains(&key(object))));
    after.extend(routes);
    if is_scattered {
        // A route of one name has the same hosts in both.
        let hosts: Vec<[&str; 2]> = (0..8)
            .map(|_| [EXACT.choose(rng).unwrap(), EXACT.choose(rng).unwrap()])
            .map(|of| of.map(|host| *host))
            .collect();
        for route in before.iter_mut().chain(&mut after).filter(|object| is_route(object)) {
            let number = usize::from(route["metadata"]["name"].as_str().unwrap().as_bytes()[1] % 8);
            route["spec"]["hostnames"] = json!(&hosts[number][..=number % 2]);
        }
    }
    [before, after]
}

/// The answers of a table, independent of the order in which PingSIX inserts its Routes.
fn answers(config: &Config, requests: &[Request], rng: &mut SmallRng) -> Vec<BTreeSet<String>> {
    let mut order: Vec<usize> = (0..config.routes().count()).collect();
    let mut answers = vec![BTreeSet::new(); requests.len()];
    for _ in 0..3 {
        order.shuffle(rng);
        let router = Router::build(config, order.iter().copied()).unwrap();
        for (request, answers) in requests.iter().zip(&mut answers) {
            answers.insert(format!("{:?}", router.outcome(request)));
        }
    }
    answers
}

/// The published documents of a data plane.
fn published(key: &DataPlaneKey, plane: &DataPlane) -> (Config, DocumentSet) {
    let bridged = bridge(key, plane, &SETTING.options()).unwrap();
    (bridged.config, bridged.desired.documents().clone())
}

fn is_of_routes(unit: &[Step]) -> bool {
    unit.iter().any(|step| step.key().as_str().starts_with("routes/"))
}

#[test]
fn between_two_units_each_request_is_answered_as_before_or_as_after() {
    let mut rng = SmallRng::seed_from_u64(seed());
    let (mut between, mut several) = (0, 0);
    for _ in 0..150 {
        let tables = tables(&mut rng);
        let hosts = hosts(&tables.concat());
        let cases = tables.each_ref().map(|table| Case::new(table, SETTING));
        let requests: Vec<_> = (0..40).map(|_| probe(&mut rng, &hosts)).collect();
        for (key, new) in &cases[1].translation.data_planes {
            let Some(old) = cases[0].translation.data_planes.get(key) else { continue };
            let requests: Vec<Request> = requests.iter().map(Probe::request).collect();
            let [old, new] = [old, new].map(|plane| published(key, plane));
            let settled = [&old.0, &new.0].map(|config| answers(config, &requests, &mut rng));
            let units = units(&plan(&old.1, &new.1), &old.1);
            several += usize::from(units.iter().filter(|unit| is_of_routes(unit)).count() > 1);
            let mut config = old.0;
            for unit in units.iter() {
                apply(&mut config, unit);
                for (index, found) in answers(&config, &requests, &mut rng).into_iter().enumerate() {
                    between += 1;
                    let allowed = settled.each_ref().map(|settled| &settled[index]);
                    assert!(
                        allowed.contains(&&found),
                        "{:?} after {unit:#?}: {found:#?}, and before and after {allowed:#?}",
                        requests[index]
                    );
                }
            }
        }
    }
    assert!(between > 8_000 && several > 40, "{between} answers, {several} changes of several units");
}
