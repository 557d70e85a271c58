//! Policies of Ingresses: which of them count, what they leave alone, and that no SecurityPolicy fails open.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::pingsix::RouteTable;
use pingsix_translate::snapshot::Pending;
use pingsix_translate::status::ConditionType;
use pingsix_translate::{Objects, Quarantine, Translator, translate_ingress};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::answer::answer;
use super::oracle::Decided;
use super::{CLASS, Case, LAYOUTS, Tally, arriving_at, generate, options, report};
use crate::generate::security::{credentials, grants, settings};
use crate::generate::{NAMESPACES, backend_traffic, hosts, one_in, pick, probe, traffic};
use crate::incremental::{Present, compare, put};
use crate::oracle::Target;
use crate::probe::Probe;
use crate::protection::{Credential, Protection};
use crate::security::{Judged, change_guard, grant_of_guard, keys_of_guard, secret_of_guard};
use crate::{accepted, cases};

const AGES: [&str; 3] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-02-01T00:00:00Z"];
/// The names of SecurityPolicies, and those of TrafficPolicies.
const NAMES: [[&str; 4]; 2] = [["p0", "p1", "p2", "p3"], ["t0", "t1", "t2", "t3"]];

const BACKEND_NAMES: [&str; 6] = ["b0", "b1", "b2", "b3", "b4", "b5"];

/// A random table with policies.
fn table(rng: &mut SmallRng) -> Vec<Value> {
    let mut objects = generate::table(rng);
    add(rng, &mut objects);
    objects
}

/// Adds policies for Ingresses of a table, with Secrets and grants.
pub(super) fn add(rng: &mut SmallRng, objects: &mut Vec<Value>) {
    let ingresses: Vec<Value> =
        objects.iter().filter(|object| object["kind"] == "Ingress").cloned().collect();
    objects.extend(credentials(rng));
    objects.extend(grants(rng));
    let [security, traffic] = NAMES;
    for name in &security[..rng.random_range(1..=security.len())] {
        let mut settings = settings(rng, false);
        // Preflights are the same for all kinds of targets.
        settings.as_object_mut().unwrap().remove("cors");
        objects.push(policy(rng, ("SecurityPolicy", name), &ingresses, settings));
    }
    for name in &traffic[..rng.random_range(0..=traffic.len())] {
        let settings = traffic::settings(rng, false);
        objects.push(policy(rng, ("TrafficPolicy", name), &ingresses, settings));
    }
    for name in &BACKEND_NAMES[..rng.random_range(3..=BACKEND_NAMES.len())] {
        objects.push(backend_policy(rng, name));
    }
}

/// A BackendTrafficPolicy of this name for Services that Ingresses name.
fn backend_policy(rng: &mut SmallRng, name: &str) -> Value {
    let mut target = json!({ "group": "", "kind": "Service", "name": pick(rng, &["one", "two"]) });
    if one_in(rng, 2) {
        target["sectionName"] = json!(pick(rng, &["http", "http", "admin", "absent"]));
    }
    let mut spec = backend_traffic::settings(rng);
    spec["targetRefs"] = json!([target]);
    let mut metadata = json!({ "namespace": pick(rng, &NAMESPACES), "name": name });
    if !one_in(rng, 12) {
        metadata["creationTimestamp"] = json!(pick(rng, &AGES));
    }
    json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "BackendTrafficPolicy", "metadata": metadata, "spec": spec,
    })
}

/// A policy of this kind and name for some of the Ingresses.
fn policy(rng: &mut SmallRng, (kind, name): (&str, &str), ingresses: &[Value], settings: Value) -> Value {
    let first = ingresses.choose(rng).expect("a table has an Ingress");
    let namespace = &first["metadata"]["namespace"];
    let beside = ingresses.iter().filter(|ingress| ingress["metadata"]["namespace"] == *namespace);
    let beside: Vec<&Value> = beside.collect();
    let mut targets = vec![target(first)];
    for _ in 0..rng.random_range(0..3) {
        targets.push(target(beside.choose(rng).expect("the first one is there")));
    }
    if one_in(rng, 20) {
        targets[0]["sectionName"] = json!("n0");
    }
    if one_in(rng, 20) {
        let kind = pick(rng, &["HTTPRoute", "Gateway"]);
        targets.push(json!({ "group": "gateway.networking.k8s.io", "kind": kind, "name": "other" }));
    }
    let mut spec = settings;
    spec["targetRefs"] = json!(targets);
    let mut metadata = json!({ "namespace": namespace, "name": name });
    if !one_in(rng, 12) {
        metadata["creationTimestamp"] = json!(pick(rng, &AGES));
    }
    json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
    })
}

fn target(ingress: &Value) -> Value {
    json!({ "group": "networking.k8s.io", "kind": "Ingress", "name": ingress["metadata"]["name"] })
}

fn probes(rng: &mut SmallRng, objects: &[Value], count: usize) -> Vec<Probe> {
    let hosts = hosts(&generate::hostnames(objects));
    (0..count).map(|_| probe(rng, &hosts)).collect()
}

#[test]
fn every_answer_of_an_ingress_class_under_policies_is_the_oracles() {
    let mut tally = Tally::default();
    for seed in 0..cases() * 2 {
        let mut rng = SmallRng::seed_from_u64(seed ^ 0x5345_4349);
        let objects = table(&mut rng);
        let probes = probes(&mut rng, &objects, 120);
        for (layout, _) in LAYOUTS {
            if Case::new(&objects, layout).check(&probes, 2, seed, &mut tally).is_err() {
                report(seed, objects, |objects| {
                    Case::new(objects, layout).check(&probes, 6, seed, &mut Tally::default()).err()
                });
            }
        }
    }
    println!("{tally:?}");
    let rarest = tally.protected.min(tally.treated).min(tally.tuned);
    assert!(rarest * 20 > tally.checks, "policies of a kind hardly ever count: {tally:?}");
}

#[test]
fn verdicts_on_policies_of_ingresses_are_the_oracles() {
    let mut seen = BTreeMap::new();
    for seed in 0..cases() * 2 {
        let objects = table(&mut SmallRng::seed_from_u64(seed ^ 0x5645_5244));
        for (layout, _) in LAYOUTS {
            let failure = |objects: &[Value]| {
                let case = Case::new(objects, layout);
                let policies = case.translation.verdicts.policies.iter();
                let policies = policies.filter(|(key, _)| key.kind.is_inherited_policy());
                let said: BTreeMap<_, _> = policies
                    .map(|(key, verdict)| {
                        let name = (key.name.namespace.to_string(), key.name.name.to_string());
                        ((key.kind.to_string(), name), verdict.conditions.is_true(ConditionType::Accepted))
                    })
                    .collect();
                let expected = case.world.verdicts_on_policies(&case.ingresses.names());
                let violations = accepted::violations(&case.translation, &options(layout));
                let differs = said != expected;
                differs
                    .then(|| format!("the oracle says {expected:?}, the verdicts {said:?}"))
                    .or(violations.first().cloned())
            };
            if failure(&objects).is_some() {
                report(seed, objects, failure);
            }
            let case = Case::new(&objects, layout);
            for ((kind, _), is_accepted) in case.world.verdicts_on_policies(&case.ingresses.names()) {
                *seen.entry((kind, is_accepted)).or_insert(0_u64) += 1;
            }
        }
    }
    assert!(seen.values().all(|count| count * 10 > cases()) && seen.len() == 4, "{seen:?}");
}

#[test]
fn a_policy_of_an_ingress_changes_no_answer_of_another_ingress() {
    let mut compared = 0;
    for seed in 0..cases() {
        let mut rng = SmallRng::seed_from_u64(seed ^ 0x494e_5446);
        let objects = table(&mut rng);
        let probes = probes(&mut rng, &objects, 60);
        let is_policy =
            |object: &&Value| object["kind"] == "SecurityPolicy" || object["kind"] == "TrafficPolicy";
        for policy in objects.iter().filter(is_policy) {
            let others: Vec<Value> = objects.iter().filter(|object| *object != policy).cloned().collect();
            let names: Vec<String> = policy["spec"]["targetRefs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|target| {
                    format!(
                        "{}/{}",
                        policy["metadata"]["namespace"].as_str().unwrap(),
                        target["name"].as_str().unwrap()
                    )
                })
                .collect();
            for (layout, _) in LAYOUTS {
                let [with, without] =
                    [&objects, &others].map(|objects| answers(&Case::new(objects, layout), &probes));
                for (one, other) in with.iter().zip(&without) {
                    let is_target = one.origin.as_ref().is_some_and(|(ingress, _)| names.contains(ingress));
                    let is_spelling =
                        one.target == Target::Status(400) || other.target == Target::Status(400);
                    if !is_target && !is_spelling {
                        assert_eq!(one, other, "seed {seed}: {policy}");
                        compared += 1;
                    }
                }
            }
        }
    }
    println!("{compared} answers compared");
    assert!(compared > cases() * 60, "policies target everything");
}

/// The answers of all data planes.
fn answers(case: &Case, probes: &[Probe]) -> Vec<Decided> {
    let mut answers = Vec::new();
    for (key, plane) in case.planes() {
        let table = RouteTable::new(&plane.config);
        let router = table.insert_in(0..table.len()).unwrap();
        for probe in probes {
            let request = arriving_at(key, probe).request();
            answers.push(answer(&case.world, plane, &router, &request).unwrap());
        }
    }
    answers
}

/// The policy that guards every Ingress of namespace `infra`. It is older than all others, so it wins its targets.
fn guard(rng: &mut SmallRng) -> Value {
    let mut secret = json!({ "name": "guard" });
    if rng.random_bool(0.7) {
        secret["namespace"] = json!("app");
    }
    let targets: Vec<Value> = (0..6)
        .map(|index| json!({ "group": "networking.k8s.io", "kind": "Ingress", "name": format!("i{index}") }))
        .collect();
    json!({
        "kind": "SecurityPolicy",
        "metadata": { "namespace": "infra", "name": "guard", "creationTimestamp": "2020-01-01T00:00:00Z" },
        "spec": { "targetRefs": targets, "apiKeyAuth": { "credentialRefs": [secret] } },
    })
}

#[test]
fn a_policy_of_an_ingress_never_fails_open() {
    let mut all = Judged::default();
    for seed in 0..cases() {
        let mut rng = SmallRng::seed_from_u64(seed ^ 0x4749_4e47);
        let (layout, _) = *LAYOUTS.choose(&mut rng).unwrap();
        let options = options(layout);
        let mut objects = Present::new();
        let mut begin = table(&mut rng);
        begin.extend([guard(&mut rng), secret_of_guard("infra", "k1"), secret_of_guard("app", "k1")]);
        begin.push(grant_of_guard(&mut rng));
        for object in begin {
            put(&mut objects, object);
        }
        let others: Vec<Value> = (0..3).flat_map(|_| table(&mut rng)).collect();
        let mut translator = Translator::new(options.clone());
        let (mut quarantine, mut pending) = (Quarantine::new(), Pending::new());
        for step in 0..10 {
            let mut present = Objects::default();
            for (_, object) in objects.values() {
                present.insert(object.clone());
            }
            let mut snapshot = present.ingress_snapshot(CLASS).unwrap();
            snapshot.referents.quarantine = quarantine.clone();
            snapshot.referents.pending = pending.clone();
            let translation = translator.translate_ingress(&snapshot);
            compare(&translation, &translate_ingress(&snapshot, &options)).unwrap();
            let written: Vec<Value> = objects.values().map(|(object, _)| object.clone()).collect();
            let case = Case { translation, ..Case::new(&written, layout) };
            let keys = keys_of_guard(&objects, &quarantine, &pending);
            let probes = probes(&mut rng, &written, 40);
            for decided in answers(&case, &probes) {
                judge(&decided, keys.as_ref(), &mut all)
                    .unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}"));
            }
            for _ in 0..rng.random_range(1..4) {
                if rng.random() {
                    change_guard(&mut rng, &mut objects, &mut quarantine, &mut pending, guard);
                } else if let Some(other) = others.choose(&mut rng) {
                    put(&mut objects, other.clone());
                }
            }
        }
    }
    println!("{all:?}");
    assert!(all.guarded > cases() * 8 && all.closed > cases() * 8, "one state hardly ever occurs: {all:?}");
}

/// Judges an answer. Only the key of the moment opens the way to a backend of a guarded Ingress.
fn judge(decided: &Decided, keys: Option<&BTreeSet<String>>, judged: &mut Judged) -> Result<(), String> {
    let is_guarded = decided.origin.as_ref().is_some_and(|(ingress, _)| ingress.starts_with("infra/"));
    if !is_guarded {
        return Ok(());
    }
    if !matches!(decided.target, Target::Service { .. }) {
        judged.closed += u64::from(keys.is_none());
        return Ok(());
    }
    let Protection { credential, .. } = &decided.protection;
    match (credential, keys) {
        (Some(Credential::Key { keys: demanded, .. }), Some(keys)) if demanded == keys => {
            judged.guarded += 1;
            Ok(())
        }
        _ => Err(format!("the guard asks for {keys:?}, and a request gets {decided:?}")),
    }
}
