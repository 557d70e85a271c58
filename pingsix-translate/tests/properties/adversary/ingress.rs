//! Hostile Ingresses beside a victim's. A host has no owner here, so only over budget nobody else comes in the place of the
//! victim, and younger Ingresses for other or wider hosts change nothing.

use pingsix_translate::pingsix::RouteTable;
use pingsix_translate::{Budget, Objects, Options, Translation, translate_ingress};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::fixtures::{HOSTILE, PATHS, VICTIM, created, infrastructure, probes};
use super::{By, certificate_of, is_over_budget, judge_documents, report, scarce, world, worlds};
use crate::case::decode;
use crate::generate::gateway::certificates;
use crate::generate::{one_in, pick};
use crate::ingress::answer::answer;
use crate::oracle::{Target, World};
use crate::probe::Probe;

/// Hosts of the victim's, which have certificates as well.
const HOSTS: [&str; 3] = ["shop.victim.test", "api.victim.test", "shop.example.com"];

/// Hosts that are wider, or of others.
const AROUND: [&str; 5] = ["", "*.victim.test", "*.example.com", "hostile.example.com", "x.hostile.test"];

fn ingress(name: &str, namespace: &str, created: &str, spec: &Value) -> Value {
    let mut ingress = json!({
        "kind": "Ingress", "metadata": {"namespace": namespace, "name": name, "creationTimestamp": created},
        "spec": spec,
    });
    ingress["spec"]["ingressClassName"] = json!("pingsix");
    ingress
}

fn backend(rng: &mut SmallRng) -> Value {
    let name = *["one", "two", "one", "two", "absent"].choose(rng).unwrap();
    json!({"service": {"name": name, "port": {"number": 80}}})
}

fn rule(rng: &mut SmallRng, host: &str, paths: &[String]) -> Value {
    let paths: Vec<Value> = paths
        .iter()
        .map(|path| {
            let kind = *["Prefix", "Exact"].choose(rng).unwrap();
            json!({"path": path, "pathType": kind, "backend": backend(rng)})
        })
        .collect();
    let mut rule = json!({"http": {"paths": paths}});
    if !host.is_empty() {
        rule["host"] = json!(host);
    }
    rule
}

fn paths(rng: &mut SmallRng) -> Vec<String> {
    let count = rng.random_range(1..4);
    PATHS.choose_multiple(rng, count).map(|path| (*path).to_owned()).collect()
}

fn victim(rng: &mut SmallRng) -> Vec<Value> {
    let each = HOSTS.iter().enumerate().map(|(index, host)| {
        let paths = paths(rng);
        let secret = pick(rng, &["certificate", "other"]);
        let spec = json!({
            "rules": [rule(rng, host, &paths)],
            "tls": [{"hosts": [host], "secretName": secret}],
        });
        ingress(&format!("victim-{index}"), VICTIM, &created(rng, 2020), &spec)
    });
    each.chain(certificates(VICTIM)).collect()
}

/// Ingresses with catch-alls, thousands of paths or names, certificates that are none, and the victim's own hosts.
fn hostile(rng: &mut SmallRng, younger: bool, apart: bool) -> Vec<Value> {
    let mut objects = Vec::new();
    for namespace in HOSTILE {
        objects.extend(certificates(namespace));
        for index in 0..rng.random_range(1..4) {
            let mut known = AROUND.to_vec();
            if !apart {
                known.extend(HOSTS);
            }
            let host = *known.choose(rng).unwrap();
            let paths = match rng.random_range(0..6) {
                0 => (0..rng.random_range(10..150)).map(|path| format!("/long/{path}")).collect(),
                1 => vec![format!("/{}", "x".repeat(2000)), "/{*p}".to_owned(), "/%2e%2e".to_owned()],
                _ => paths(rng),
            };
            let mut spec = json!({"rules": [rule(rng, host, &paths)]});
            if one_in(rng, 3) {
                spec["defaultBackend"] = backend(rng);
            }
            if one_in(rng, 2) {
                let mut names: Vec<String> = (0..*[1, 1, 20, 100].choose(rng).unwrap())
                    .map(|name| format!("n{name}.hostile.test"))
                    .collect();
                names
                    .extend(known.choose(rng).filter(|name| !name.is_empty()).map(|name| (*name).to_owned()));
                let secret = *["certificate", "other", "absent"].choose(rng).unwrap();
                spec["tls"] = json!([{"hosts": names, "secretName": secret}]);
            }
            let from = if younger { 2024 } else { *[2010, 2020, 2024].choose(rng).unwrap() };
            objects.push(ingress(&format!("h{index}"), namespace, &created(rng, from), &spec));
        }
    }
    objects
}

fn run(objects: &[Value], budget: Budget) -> Translation {
    let mut all = Objects::default();
    for object in objects {
        all.insert(decode(object));
    }
    let options = Options { budget, ..Options::default() };
    translate_ingress(&all.ingress_snapshot("pingsix").expect("there is the class"), &options)
}

/// The answer to a request.
#[derive(Debug, PartialEq)]
struct Answered {
    by: By,
    target: Target,
    /// The namespace of the Ingress that takes the request, which may have nobody to answer it.
    of: By,
}

fn answers(world: &World, translation: &Translation, probes: &[Probe]) -> Result<Vec<Answered>, String> {
    let plane = translation.data_planes.values().next().ok_or("a class without a data plane")?;
    let table = RouteTable::new(&plane.config);
    let router = table.insert_in(0..table.len()).map_err(|error| error.to_string())?;
    let each = probes.iter().map(|probe| {
        let decided = answer(world, plane, &router, &probe.request())?;
        let by = match &decided.target {
            Target::Service { namespace, .. } => By::Namespace(namespace.clone()),
            Target::Status(_) | Target::Redirect { .. } | Target::Preflight(_) => By::Nobody,
        };
        let taken = decided.origin.as_ref().and_then(|(ingress, _)| ingress.split_once('/'));
        let of = taken.map_or(By::Nobody, |(namespace, _)| By::Namespace(namespace.to_owned()));
        Ok(Answered { by, target: decided.target, of })
    });
    each.collect()
}

#[derive(Debug, Default)]
struct Seen {
    worlds: usize,
    over_budget: usize,
    answered: usize,
    left_out: usize,
    same: usize,
    certificates: usize,
}

fn judge(
    objects: &[Value],
    budget: Budget,
    is_apart: bool,
    probes: &[Probe],
    seen: &mut Seen,
) -> Result<(), String> {
    let world = world_of(objects);
    let (whole, got) = (run(objects, Budget::default()), run(objects, budget));
    judge_documents(&got, budget, &Options::default())?;
    let of_got = answers(&world, &got, probes)?;
    for ((probe, meant), got) in probes.iter().zip(answers(&world, &whole, probes)?).zip(&of_got) {
        if got.by != By::Nobody && got.by != meant.of {
            return Err(format!("{probe:?} is meant to be answered as {meant:?}, and is as {got:?}"));
        }
        seen.left_out += usize::from(got.by != meant.by);
        seen.answered += usize::from(got.by != By::Nobody);
    }
    if is_apart {
        let alone: Vec<Value> = objects.iter().filter(|object| !super::is_hostile(object)).cloned().collect();
        let before = run(&alone, budget);
        for ((probe, before), after) in probes.iter().zip(answers(&world, &before, probes)?).zip(&of_got) {
            if before.by != By::Nobody && before != *after {
                return Err(format!("{probe:?}: without others {before:?}, beside them {after:?}"));
            }
            seen.same += usize::from(before.by != By::Nobody);
        }
        let planes = [&before, &got].map(|translation| translation.data_planes.values().next());
        for host in HOSTS {
            let [before, after] = planes.map(|plane| plane.and_then(|plane| certificate_of(plane, host)));
            if before.is_some() && before != after {
                return Err(format!("{host} has another certificate because of others"));
            }
            seen.certificates += usize::from(before.is_some());
        }
    }
    seen.worlds += 1;
    seen.over_budget += usize::from(is_over_budget(&got));
    Ok(())
}

/// Services alone: the oracle of Gateways reads no Ingresses.
fn world_of(objects: &[Value]) -> World {
    let is_of_services =
        |object: &&Value| ["Service", "EndpointSlice"].iter().any(|kind| object["kind"] == *kind);
    world(&objects.iter().filter(is_of_services).cloned().collect::<Vec<_>>())
}

#[test]
fn hostile_ingresses_gain_nothing_over_budget_and_younger_change_nothing() {
    let mut seen = Seen::default();
    for seed in 0..worlds() / 2 {
        let mut rng = SmallRng::seed_from_u64(seed ^ 0x1_6e55);
        let (younger, apart) = (rng.random_bool(0.6), rng.random_bool(0.6));
        let mut objects = vec![json!({"kind": "IngressClass", "metadata": {"name": "pingsix"},
            "spec": {"controller": "pingsix.io/gateway-controller"}})];
        objects.extend(
            infrastructure(&mut rng, false, false).into_iter().filter(|object| object["kind"] != "Gateway"),
        );
        objects.extend(victim(&mut rng));
        let alone = run(&objects, Budget::default());
        objects.extend(hostile(&mut rng, younger, apart));
        let budget = scarce(&mut rng, &alone, &run(&objects, Budget::default()));
        let probes = probes(&mut rng, super::REQUESTS);
        let is_apart = younger && apart;
        if let Err(error) = judge(&objects, budget, is_apart, &probes, &mut seen) {
            let again =
                |objects: &[Value]| judge(objects, budget, is_apart, &probes, &mut Seen::default()).err();
            report(&format!("seed {seed}, {budget:?}: {error}"), objects, again);
        }
    }
    println!("{seen:?}");
    let Seen { worlds, over_budget, answered, left_out, same, certificates } = seen;
    assert!(over_budget * 3 > worlds, "budgets are too large: {seen:?}");
    assert!([answered, left_out, same, certificates].into_iter().all(|count| count > worlds / 3), "{seen:?}");
}
