//! Random annotations of other controllers: none of them is refused by PingSIX, opens a closed Ingress, or concerns another one.

use std::collections::BTreeSet;

use pingsix_translate::{Layout, Objects, translate_ingress};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::annotated::{APISIX, CLOSING, NGINX, add, switch_on};
use super::oracle::{Decided, Labels};
use super::{CLASS, Case, LAYOUTS, answer::answer, arriving_at, generate, options, report};
use crate::generate::{hosts, probe};
use crate::oracle::Target;
use crate::probe::Probe;
use crate::{accepted, case, cases};
use pingsix_translate::pingsix::RouteTable;

#[test]
fn everything_emitted_for_annotations_is_accepted_by_pingsix() {
    for seed in 0..cases() * 4 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut objects = generate::table(&mut rng);
        add(&mut rng, &mut objects);
        for (layout, _) in LAYOUTS {
            let failure = |objects: &[Value]| {
                let violations =
                    accepted::violations(&Case::new(objects, layout).translation, &options(layout));
                (!violations.is_empty()).then(|| violations.join("\n"))
            };
            if failure(&objects).is_some() {
                report(seed, objects, failure);
            }
        }
    }
}

#[test]
fn ingresses_without_annotations_are_the_same_with_the_dialect() {
    for seed in 0..cases() {
        let objects = generate::table(&mut SmallRng::seed_from_u64(seed));
        let mut switched = objects.clone();
        switch_on(&mut switched);
        for (layout, _) in LAYOUTS {
            let [off, on] = [&objects, &switched].map(|objects| documents(objects, layout));
            assert_eq!(off, on, "seed {seed}, {layout:?}");
        }
    }
}

/// Neither annotations nor policies admit credentials of scripts of any origin.
#[test]
fn no_document_admits_credentials_of_any_origin() {
    let (mut with, mut without) = (0_u64, 0_u64);
    for seed in 0..cases() * 4 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut objects = generate::table(&mut rng);
        add(&mut rng, &mut objects);
        for ingress in objects.iter_mut().filter(|object| object["kind"] == "Ingress") {
            let annotations = &mut ingress["metadata"]["annotations"];
            annotations[format!("{NGINX}/enable-cors")] = json!("true");
            if rng.random_bool(0.3) {
                annotations[format!("{NGINX}/cors-allow-origin")] = json!("https://a.test, x");
            }
        }
        for (_, document) in documents(&objects, Layout::Shared) {
            let document: Value = serde_json::from_str(&document).unwrap();
            let Some(cors) = document.pointer("/plugins/cors") else { continue };
            let is_for_any = admits_any_origin(cors);
            assert!(cors["allow_credential"] != true || !is_for_any, "seed {seed}: {cors}");
            with += u64::from(cors["allow_credential"] == true);
            without += u64::from(is_for_any);
        }
    }
    println!("{with} plugins with credentials, {without} for any origin");
    assert!(with > 20 && without > 20, "hardly any of both");
}

/// Whether a plugin admits scripts of origins that nobody lists.
pub(crate) fn admits_any_origin(cors: &Value) -> bool {
    let origins = cors["allow_origins"].as_str().unwrap_or("*");
    let patterns = cors["allow_origins_by_regex"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let patterns: Vec<regex::Regex> = patterns.map(|pattern| regex::Regex::new(pattern).unwrap()).collect();
    let unlisted = [
        "https://unlisted.invalid",
        "http://unlisted.invalid",
        "http://unlisted.invalid:8080",
        "https://a",
        "null",
    ];
    matches!(origins, "*" | "**")
        || unlisted.iter().any(|origin| patterns.iter().any(|pattern| pattern.is_match(origin)))
}

fn documents(objects: &[Value], layout: Layout) -> Vec<(String, String)> {
    let mut all = Objects::default();
    for object in objects {
        all.insert(case::decode(object));
    }
    let translation = translate_ingress(&all.ingress_snapshot(CLASS).unwrap(), &options(layout));
    let mut documents = Vec::new();
    for (key, plane) in &translation.data_planes {
        documents.extend(plane.config.to_pairs(&key.to_string()));
    }
    documents
}

/// An Ingress with a user or a list of addresses passes no request on without checking both.
#[test]
fn a_protected_ingress_passes_nothing_on_unchecked() {
    let (mut users, mut addresses, mut refused) = (0_u64, 0_u64, 0_u64);
    for seed in 0..cases() * 3 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut objects = generate::table(&mut rng);
        add(&mut rng, &mut objects);
        for ingress in objects.iter_mut().filter(|object| object["kind"] == "Ingress") {
            if rng.random_bool(0.3) {
                ingress["metadata"]["annotations"][format!("{NGINX}/allowlist-source-range")] =
                    json!("10.0.0.7/8");
            }
        }
        let hosts: Vec<String> = hosts(&generate::hostnames(&objects));
        let probes: Vec<Probe> = (0..80).map(|_| probe(&mut rng, &hosts)).collect();
        let annotation = |ingress: &str, name: &str| {
            let is_it = |object: &&Value| {
                let metadata = &object["metadata"];
                let name = |field: &str| metadata[field].as_str().unwrap_or_default();
                object["kind"] == "Ingress" && format!("{}/{}", name("namespace"), name("name")) == ingress
            };
            let object = objects.iter().find(is_it)?;
            object["metadata"]["annotations"][format!("{NGINX}/{name}")].as_str()
        };
        for (layout, _) in LAYOUTS {
            let case = Case::new(&objects, layout);
            for (key, plane) in case.planes() {
                let table = RouteTable::new(&plane.config);
                let router = table.insert_in(0..table.len()).unwrap();
                for probe in probes.iter().map(|probe| arriving_at(key, probe)) {
                    // Requests that a canary shares have no single answer.
                    let Ok(decided) = answer(&case.world, plane, &router, &probe.request()) else { continue };
                    let Some((ingress, _)) = &decided.origin else { continue };
                    let wants_user = annotation(ingress, "auth-type").is_some();
                    let wants_address = annotation(ingress, "allowlist-source-range").is_some();
                    if !matches!(decided.target, Target::Service { .. }) {
                        refused += u64::from(wants_user || wants_address);
                        continue;
                    }
                    let said = || format!("seed {seed}, {layout:?}, {key}, {probe:?}: {decided:?}");
                    assert!(!wants_user || decided.protection.credential.is_some(), "{}", said());
                    assert!(!wants_address || decided.protection.addresses.is_some(), "{}", said());
                    users += u64::from(wants_user);
                    addresses += u64::from(wants_address);
                }
            }
        }
    }
    println!("{users} requests with users, {addresses} with addresses, {refused} refused");
    assert!(users > 100 && addresses > 100 && refused > 100, "hardly anything is protected");
}

/// With annotations that close Ingresses and no others, each request gets 503 where a closed Ingress decides, and the answer
/// without annotations everywhere else.
#[test]
fn a_closed_ingress_answers_503_and_others_as_before() {
    let (mut closed_answers, mut others) = (0_u64, 0_u64);
    for seed in 0..cases() * 2 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut objects = generate::table(&mut rng);
        switch_on(&mut objects);
        for ingress in objects.iter_mut().filter(|object| object["kind"] == "Ingress") {
            if rng.random_bool(0.4) {
                let (domain, name, value) = *CLOSING.choose(&mut rng).unwrap();
                ingress["metadata"]["annotations"][format!("{domain}/{name}")] = json!(value);
            }
        }
        let hosts: Vec<String> = hosts(&generate::hostnames(&objects));
        let probes: Vec<Probe> = (0..100).map(|_| probe(&mut rng, &hosts)).collect();
        for (layout, _) in LAYOUTS {
            let check =
                |objects: &[Value], counts: &mut (u64, u64)| compare(objects, layout, &probes, counts);
            let mut counts = (0, 0);
            if check(&objects, &mut counts).is_some() {
                report(seed, objects, |objects| check(objects, &mut (0, 0)));
            }
            closed_answers += counts.0;
            others += counts.1;
        }
    }
    println!("{closed_answers} answers of closed Ingresses, {others} others");
    assert!(closed_answers * 20 > others && others > closed_answers / 20);
}

fn compare(objects: &[Value], layout: Layout, probes: &[Probe], counts: &mut (u64, u64)) -> Option<String> {
    let is_closed = |ingress: &&Value| {
        let annotations = ingress["metadata"]["annotations"].as_object();
        annotations.is_some_and(|annotations| {
            annotations.keys().any(|name| name.starts_with(NGINX) || name.starts_with(APISIX))
        })
    };
    let ingresses = objects.iter().filter(|object| object["kind"] == "Ingress");
    let closed: BTreeSet<String> = ingresses
        .filter(is_closed)
        .map(|ingress| {
            let part = |name: &str| ingress["metadata"][name].as_str().unwrap().to_owned();
            format!("{}/{}", part("namespace"), part("name"))
        })
        .collect();
    let case = Case::new(objects, layout);
    case.planes().find_map(|(key, plane)| {
        let table = RouteTable::new(&plane.config);
        let router = table.insert_in(0..table.len()).ok()?;
        probes.iter().map(|probe| arriving_at(key, probe)).find_map(|probe| {
            let mut expected = case.ingresses.decide(&case.world, &probe, Labels::Several);
            let is_closed = expected.origin.as_ref().is_some_and(|(ingress, _)| closed.contains(&**ingress));
            if is_closed {
                expected = Decided::without_backend(expected.origin, Target::Status(503));
                counts.0 += 1;
            } else {
                counts.1 += 1;
            }
            match answer(&case.world, plane, &router, &probe.request()) {
                Ok(decided) if decided == expected => None,
                Ok(decided)
                    if decided.target == Target::Status(400) && case.ingresses.has_other_spelling(&probe) =>
                {
                    None
                }
                // A rule that cannot be served answers so, closed or not.
                Ok(decided) if is_closed && decided.target == Target::Status(500) => None,
                decided => Some(format!("{key}, {probe:?}: {decided:?}, not {expected:?}")),
            }
        })
    })
}
