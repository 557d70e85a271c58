//! Hosts that belong to namespaces.

use pingsix_translate::Layout;
use pingsix_translate::pingsix::{RouteTable, Router};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::answer::answer;
use super::oracle::Labels;
use super::{Case, LAYOUTS, arriving_at, generate, report};
use crate::cases;
use crate::generate::{NAMESPACES, hosts, probe};
use crate::probe::Probe;

/// The namespace whose Ingresses are younger than all others.
const LATE: &str = NAMESPACES[0];

/// Without and with the younger Ingresses.
fn without_and_with(objects: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let is_late = |object: &Value| object["kind"] == "Ingress" && object["metadata"]["namespace"] == LATE;
    let mut with = objects.to_vec();
    for object in with.iter_mut().filter(|object| object["kind"] == "Ingress") {
        if is_late(object) {
            object["metadata"]["creationTimestamp"] = json!("2027-01-01T00:00:00Z");
        } else if object["metadata"].get("creationTimestamp").is_none() {
            object["metadata"]["creationTimestamp"] = json!("2026-12-01T00:00:00Z");
        }
    }
    let without = with.iter().filter(|object| !is_late(object)).cloned().collect();
    (without, with)
}

fn table(seed: u64) -> Vec<Value> {
    let mut objects = generate::table(&mut SmallRng::seed_from_u64(seed));
    if !objects.iter().any(|object| object["kind"] == "PingsixProxy") {
        generate::own_hosts(&mut objects);
    }
    objects
}

/// The names that certificates are shown for, with the namespace of each.
fn shown_by(case: &Case, objects_of: &dyn Fn(&str) -> bool) -> Vec<String> {
    let names = case.ingresses.certificates();
    names.into_iter().filter(|name| objects_of(name.split(' ').next().unwrap())).collect()
}

/// Checks the answers to requests in every data plane of a layout. Counts the requests that an owner answers.
fn judge(objects: &[Value], layout: Layout, probes: &[Probe]) -> Result<[usize; 3], String> {
    let (without, with) = without_and_with(objects);
    let (without, with) = (Case::new(&without, layout), Case::new(&with, layout));
    let (mut answered, mut kept, mut all) = (0, 0, 0);
    for ((key, before), (_, after)) in without.planes().zip(with.planes()) {
        let tables = [RouteTable::new(&before.config), RouteTable::new(&after.config)];
        let routers: Vec<Router<'_>> =
            tables.iter().map(|table| table.insert_in(0..table.len()).unwrap()).collect();
        for probe in probes.iter().map(|probe| arriving_at(key, probe)) {
            all += 1;
            let before = answer(&without.world, before, &routers[0], &probe.request())?;
            let after = answer(&with.world, after, &routers[1], &probe.request())?;
            let host = probe.routing_host();
            let named = with.ingresses.named_by_rules(host.as_deref(), Labels::Several);
            let owner = named.map(|(_, owner)| owner).or_else(|| with.ingresses.owner(None));
            if let Some((by, _)) = &after.origin {
                answered += 1;
                if owner.is_none_or(|owner| !by.starts_with(&format!("{owner}/"))) {
                    return Err(format!("{probe:?} belongs to {owner:?} and is answered by {by}"));
                }
            }
            if owner.is_some_and(|owner| owner != LATE) {
                kept += 1;
                if before != after {
                    return Err(format!(
                        "{probe:?} was answered {before:?}, and with a younger namespace {after:?}"
                    ));
                }
            }
        }
    }
    let is_of_others = |name: &str| with.ingresses.owner(Some(name)).is_some_and(|owner| owner != LATE);
    let (before, after) = (shown_by(&without, &is_of_others), shown_by(&with, &is_of_others));
    if before != after {
        return Err(format!("certificates were {before:?}, and with a younger namespace {after:?}"));
    }
    Ok([answered, kept, all])
}

#[test]
fn owners_answer_for_their_hosts_and_younger_namespaces_change_nothing() {
    let (mut answered, mut kept, mut all) = (0, 0, 0);
    for seed in 0..cases() * 2 {
        let objects = table(seed);
        let mut rng = SmallRng::seed_from_u64(seed);
        let hosts: Vec<String> = hosts(&generate::hostnames(&objects));
        let probes: Vec<Probe> = (0..80).map(|_| probe(&mut rng, &hosts)).collect();
        for (layout, _) in LAYOUTS {
            match judge(&objects, layout, &probes) {
                Ok([by_owner, unchanged, asked]) => {
                    answered += by_owner;
                    kept += unchanged;
                    all += asked;
                }
                Err(_) => report(seed, objects, |objects| judge(objects, layout, &probes).err()),
            }
        }
    }
    println!("{answered} and {kept} of {all}");
    assert!(answered * 4 > all && kept * 4 > all, "the requests are all alike: {answered}, {kept} of {all}");
}
