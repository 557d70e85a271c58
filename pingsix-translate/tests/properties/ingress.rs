//! Ingresses: random tables of one class against an independent reading of `networking.k8s.io/v1`.

mod annotated;
pub(crate) mod annotations;
pub(crate) mod answer;
mod answers;
mod generate;
mod incremental;
mod oracle;
mod ownership;
mod policies;

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::pingsix::RouteTable;
use pingsix_translate::status::Severity;
use pingsix_translate::{
    DataPlane, DataPlaneKey, Kind, Layout, Objects, Options, Provenance, Translation, translate_ingress,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde_json::Value;

use self::answer::answer;
use self::oracle::{Decided, Ingresses, Labels};
use crate::effect::Way;
use crate::generate::{hosts, probe};
use crate::oracle::{Target, World};
use crate::probe::Probe;
use crate::protection::{Protection, Treatment};
use crate::{accepted, case, cases, shrink};

/// The class under test.
const CLASS: &str = "pingsix";

/// Every layout of its data planes, with their ports.
const LAYOUTS: [(Layout, &[Option<u16>]); 2] =
    [(Layout::Shared, &[None]), (Layout::PerPort, &[Some(80), Some(443)])];

fn options(layout: Layout) -> Options {
    Options { layout, ..Options::default() }
}

struct Case {
    world: World,
    ingresses: Ingresses,
    translation: Translation,
}

impl Case {
    fn new(objects: &[Value], layout: Layout) -> Self {
        Self::with(objects, &options(layout))
    }

    fn with(objects: &[Value], options: &Options) -> Self {
        let mut all = Objects::default();
        for object in objects {
            all.insert(case::decode(object));
        }
        let snapshot = all.ingress_snapshot(CLASS).expect("every table has the class");
        let is_of_world = |object: &&Value| {
            let kinds = [
                "Service",
                "EndpointSlice",
                "SecurityPolicy",
                "TrafficPolicy",
                "BackendTrafficPolicy",
                "Secret",
                "ReferenceGrant",
            ];
            kinds.contains(&object["kind"].as_str().unwrap())
        };
        let of_world: Vec<Value> = objects.iter().filter(is_of_world).cloned().collect();
        Self {
            world: World::read(&of_world),
            ingresses: Ingresses::read(objects),
            translation: translate_ingress(&snapshot, options),
        }
    }

    /// The data planes of the class, each with the ports that the layout gives it.
    fn planes(&self) -> impl Iterator<Item = (&DataPlaneKey, &DataPlane)> {
        self.translation.data_planes.iter()
    }

    /// Compares the answers of every data plane to requests in several insertion orders.
    fn check(&self, probes: &[Probe], orders: usize, seed: u64, tally: &mut Tally) -> Result<(), String> {
        self.planes().try_for_each(|(key, plane)| {
            let probes: Vec<Probe> = probes.iter().map(|probe| arriving_at(key, probe)).collect();
            let answers = self.check_plane(plane, &probes, orders, seed, tally);
            answers.map_err(|difference| format!("{key}: {difference}"))
        })
    }

    fn check_plane(
        &self,
        plane: &DataPlane,
        probes: &[Probe],
        orders: usize,
        seed: u64,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let expected: Vec<Decided> =
            probes.iter().map(|probe| self.ingresses.decide(&self.world, probe, Labels::Several)).collect();
        let table = RouteTable::new(&plane.config);
        let mut order: Vec<usize> = (0..table.len()).collect();
        for _ in 0..orders {
            order.shuffle(&mut rng);
            let router = table.insert_in(order.iter().copied()).map_err(|error| error.to_string())?;
            for (probe, expected) in probes.iter().zip(&expected) {
                let decided = answer(&self.world, plane, &router, &probe.request())?;
                if decided.target == Target::Status(400)
                    && !self.world.security_policies.is_empty()
                    && self.ingresses.has_other_spelling(probe)
                {
                    continue;
                }
                if decided != *expected {
                    return Err(format!(
                        "{probe:?}: the oracle says {expected:?}, the data plane {decided:?}"
                    ));
                }
                // Where no wildcard stands for several labels, the specification says the same.
                if !self.ingresses.deviates(probe) {
                    let specified = self.ingresses.decide(&self.world, probe, Labels::One);
                    if decided != specified {
                        return Err(format!(
                            "{probe:?}: specified is {specified:?}, and {decided:?} is answered"
                        ));
                    }
                    tally.as_specified += 1;
                }
                tally.count(expected);
            }
        }
        Ok(())
    }

    /// Ingresses that are served, errors and certificates that are not the oracle's.
    fn differences(&self) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |what: &str, said: BTreeSet<String>, expected: BTreeSet<String>| {
            if said != expected {
                differences.push(format!("{what}: the oracle says {expected:?}, the verdicts {said:?}"));
            }
        };
        let verdicts = &self.translation.verdicts;
        let served = verdicts.ingresses.keys().map(|key| key.name.to_string()).collect();
        compare("served", served, self.ingresses.served());
        let errors = verdicts
            .problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error && problem.object.kind == Kind::Ingress)
            .map(|problem| format!("{} {}", problem.object.name, place(problem.field.as_str())))
            .collect();
        compare("errors", errors, self.ingresses.errors(&self.world));
        for (key, plane) in self.planes() {
            // No client of a plaintext port sees a certificate.
            let expected =
                if key.port() == Some(80) { BTreeSet::new() } else { self.ingresses.certificates() };
            compare(&format!("certificates of {key}"), shown(plane), expected);
        }
        differences
    }
}

/// A request as it arrives at a data plane of the class.
fn arriving_at(key: &DataPlaneKey, probe: &Probe) -> Probe {
    Probe { tls: key.port() == Some(443), ..probe.clone() }
}

/// The names that a data plane shows certificates for, each with the entry that provides it.
fn shown(plane: &DataPlane) -> BTreeSet<String> {
    let names = plane.config.ssls().flat_map(|(key, ssl)| {
        let Provenance::Certificate { by, .. } = &plane.provenance[key] else {
            panic!("{key} is no certificate")
        };
        ssl.snis
            .iter()
            .zip(by)
            .map(|(name, by)| format!("{name} {} {}", by.object().name, by.origin().field()))
    });
    names.collect()
}

/// The part of a field path that says which path, default backend or entry of `tls` it is about.
fn place(field: &str) -> &str {
    [".backend", ".path", ".secretName", ".host", ".resource", ".service"]
        .into_iter()
        .filter_map(|part| field.find(part).filter(|at| !field[*at..].starts_with(".paths")))
        .min()
        .map_or(field, |end| &field[..end])
}

/// The number of checked requests, by the oracle's answer.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    checks: u64,
    not_found: u64,
    errors: u64,
    services: u64,
    defaults: u64,
    as_specified: u64,
    protected: u64,
    treated: u64,
    /// Reached a backend, and not as without policies of its Service.
    tuned: u64,
}

impl Tally {
    fn count(&mut self, decided: &Decided) {
        self.checks += 1;
        let Protection { treatment, .. } = &decided.protection;
        self.treated += u64::from(*treatment != Treatment::default());
        self.protected += u64::from(
            Protection { treatment: Treatment::default(), ..decided.protection.clone() }
                != Protection::default(),
        );
        let is_tuned = |way: &Way| way.retries != 1 || way.timeout.is_some_and(|(connect, ..)| connect != 5);
        self.tuned += u64::from(matches!(&decided.target, Target::Service { way, .. } if is_tuned(way)));
        match decided {
            Decided { origin: None, .. } => self.not_found += 1,
            Decided { target: Target::Status(_), .. } => self.errors += 1,
            Decided { origin: Some((_, field)), .. } if !field.contains("paths") => self.defaults += 1,
            Decided { .. } => self.services += 1,
        }
    }
}

/// Shows the smallest table of a seed that still fails, and fails.
fn report(seed: u64, objects: Vec<Value>, failure: impl Fn(&[Value]) -> Option<String>) -> ! {
    let first = failure(&objects).unwrap_or_default();
    let objects = shrink::shrink(objects, |objects| failure(objects).is_some());
    for object in &objects {
        println!("{object}");
    }
    panic!("seed {seed}: {first}\nafter shrinking: {}", failure(&objects).unwrap_or_default());
}

/// Checks something about every table in every layout.
fn check_tables(failure: impl Fn(&[Value], Layout) -> Option<String>) {
    for seed in 0..cases() {
        let objects = generate::table(&mut SmallRng::seed_from_u64(seed));
        for (layout, _) in LAYOUTS {
            if failure(&objects, layout).is_some() {
                report(seed, objects, |objects| failure(objects, layout));
            }
        }
    }
}

#[test]
fn the_data_planes_of_a_class_are_those_of_its_layout() {
    check_tables(|objects, layout| {
        let ports: Vec<_> = Case::new(objects, layout).planes().map(|(key, _)| key.port()).collect();
        let (_, expected) = LAYOUTS.into_iter().find(|(other, _)| *other == layout).unwrap();
        (ports != expected).then(|| format!("{layout:?} has {ports:?}"))
    });
}

#[test]
fn every_answer_of_an_ingress_class_is_the_oracles() {
    let mut tally = Tally::default();
    for seed in 0..cases() * 3 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let objects = generate::table(&mut rng);
        let hosts: Vec<String> = hosts(&generate::hostnames(&objects));
        let probes: Vec<Probe> = (0..120).map(|_| probe(&mut rng, &hosts)).collect();
        for (layout, _) in LAYOUTS {
            if Case::new(&objects, layout).check(&probes, 3, seed, &mut tally).is_err() {
                report(seed, objects, |objects| {
                    Case::new(objects, layout).check(&probes, 6, seed, &mut Tally::default()).err()
                });
            }
        }
    }
    println!("{tally:?}");
    // A generator that hardly ever gets somewhere would make all this pass.
    let kinds = [tally.not_found, tally.errors, tally.services, tally.defaults, tally.as_specified];
    assert!(kinds.iter().all(|count| count * 20 > tally.checks), "the requests are all alike: {tally:?}");
}

#[test]
fn the_answers_and_problems_of_ingresses_equal_those_of_the_oracle() {
    check_tables(|objects, layout| {
        let differences = Case::new(objects, layout).differences();
        (!differences.is_empty()).then(|| differences.join("\n"))
    });
}

#[test]
fn everything_emitted_for_ingresses_is_accepted_by_pingsix() {
    check_tables(|objects, layout| {
        let violations = accepted::violations(&Case::new(objects, layout).translation, &options(layout));
        (!violations.is_empty()).then(|| violations.join("\n"))
    });
}

#[test]
fn the_order_of_ingresses_changes_nothing() {
    check_tables(|objects, layout| {
        let first = Case::new(objects, layout).translation;
        let mut shuffled = objects.to_vec();
        shuffled.shuffle(&mut SmallRng::seed_from_u64(1));
        let other = Case::new(&shuffled, layout).translation;
        let documents = |translation: &Translation| -> Vec<_> {
            let planes = translation.data_planes.iter();
            planes.map(|(key, plane)| (key.clone(), plane.config.clone(), plane.provenance.clone())).collect()
        };
        (documents(&first) != documents(&other) || first.verdicts != other.verdicts)
            .then(|| "the result depends on the order of the objects".to_owned())
    });
}

#[test]
fn an_ingress_with_hosts_of_its_own_changes_its_own_documents_alone() {
    check_tables(|objects, layout| {
        let mut objects: Vec<Value> = objects.to_vec();
        // The documents of a host that covers its host list its patterns.
        let covers = |rule: &Value| matches!(rule.get("host").and_then(Value::as_str), None | Some("*.test"));
        for ingress in objects.iter_mut().filter(|object| object["kind"] == "Ingress") {
            let spec = ingress["spec"].as_object_mut().unwrap();
            spec.remove("defaultBackend");
            spec["rules"].as_array_mut().unwrap().retain(|rule| !covers(rule));
        }
        let documents = |objects: &[Value]| -> BTreeMap<String, String> {
            let case = Case::new(objects, layout);
            let mut documents = BTreeMap::new();
            for (key, plane) in case.planes() {
                documents.extend(plane.config.to_pairs(&key.to_string()));
            }
            documents
        };
        let before = documents(&objects);
        objects.push(generate::alone());
        let after = documents(&objects);
        let changed = before.iter().find(|(key, value)| after.get(*key) != Some(value));
        changed.map(|(key, _)| format!("{key} changed"))
    });
}

#[test]
fn a_translator_of_an_ingress_class_equals_a_fresh_one_after_any_history() {
    let mut all = incremental::Seen::default();
    for seed in 0..cases() * 2 {
        match incremental::history(seed) {
            Ok(seen) => all.add(&seen),
            Err(difference) => panic!("seed {seed}: {difference}"),
        }
    }
    println!("{all:?}");
    assert!(all.is_everything(), "the histories are all alike: {all:?}");
}
