//! Random Ingresses: the output answers as the model of the original does, or the report says why not.
//!
//! `ORACLE_INGRESSES` is the number of Ingresses, and `ORACLE_SEED` another start.

use std::collections::BTreeSet;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::generate::{self, Dialect};
use crate::arguments::{MigrationReport, TranslationArguments};
use crate::migrate::answer::{Answer, Request};
use crate::migrate::convert::{self, Choices, Converted};
use crate::migrate::original::Original;
use crate::migrate::report::Report;
use crate::migrate::source::Sources;
use crate::migrate::translated::Translated;
use crate::migrate::{asked, judge, replay};

/// The Ingresses of a run without `ORACLE_INGRESSES`.
const INGRESSES: usize = 300;

/// The requests to each case.
const REQUESTS: usize = 12;

/// The most faults that are shown.
const SHOWN: usize = 12;

/// The ways to serve Ingresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// `migrate`.
    Routes,
    /// `migrate --keep-ingress`.
    Kept,
    /// A class that reads the annotations.
    Class,
}

impl Way {
    const ALL: [Self; 3] = [Self::Routes, Self::Kept, Self::Class];
}

/// The translation of a case, and the objects about which something is said.
struct Served {
    translated: Translated,
    spoken: BTreeSet<String>,
}

fn options() -> pingsix_translate::Options {
    TranslationArguments::defaults().unwrap().options()
}

fn migrated(objects: &[Value], keep_ingress: bool) -> Served {
    let mut report = Report::default();
    let sources = Sources::of_values(objects.to_vec(), &mut report).unwrap();
    let asked = asked::asked(&sources);
    let Converted { objects, origins, mut report } =
        convert::convert(sources, Choices::of_tests(keep_ingress), report);
    let translated = Translated::new(&objects, true, options());
    judge::judge(&asked, &objects, &origins, &translated, &mut report);
    let report: Value = serde_json::from_str(&report.render(MigrationReport::Json, true)).unwrap();
    let entries = report["entries"].as_array().unwrap().iter();
    let spoken = entries.filter(|entry| entry["verdict"] != "exact");
    let spoken = spoken.filter_map(|entry| entry["object"].as_str().map(str::to_owned)).collect();
    Served { translated, spoken }
}

/// The Ingresses as they are, in a class of ours.
fn in_a_class(objects: &[Value], dialect: Dialect) -> Served {
    let mut objects = objects.to_vec();
    for object in objects.iter_mut().filter(|object| object["kind"] == "Ingress") {
        object["spec"]["ingressClassName"] = json!("pingsix");
    }
    let parameters = json!({
        "apiGroup": "pingsix.io", "kind": "PingsixProxy", "name": "proxy", "namespace": "shop", "scope": "Namespace",
    });
    objects.push(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": { "name": "pingsix" },
        "spec": { "controller": "pingsix.io/gateway-controller", "parameters": parameters },
    }));
    objects.push(json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy", "metadata": { "namespace": "shop", "name": "proxy" },
        "spec": { "attached": { "layout": "PerPort" }, "ingress": { "annotations": [dialect.domain()] } },
    }));
    let mut report = Report::default();
    let sources = Sources::of_values(objects, &mut report).unwrap();
    let Sources { kept, created, .. } = &sources;
    let mut written: Vec<_> = kept.clone().into_iter().collect();
    for (key, object) in &mut written {
        if let Some(created) = created.get(key) {
            object["metadata"]["creationTimestamp"] = json!(created);
        }
    }
    let translated = Translated::new(&written, true, options());
    let spoken = translated.output.findings.iter().map(|finding| finding.object.to_string()).collect();
    Served { translated, spoken }
}

/// The Ingresses that may concern a host.
fn concerned(objects: &[Value], host: &str) -> BTreeSet<String> {
    let is_near = |text: &str| {
        let name = text.trim_start_matches("*.").trim_start_matches("www.");
        name.is_empty() || host.ends_with(name)
    };
    let ingresses = objects.iter().filter(|object| object["kind"] == "Ingress");
    let near = ingresses.filter(|ingress| {
        let rules = ingress["spec"]["rules"].as_array().into_iter().flatten();
        let aliases = &ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/server-alias"];
        let aliases = aliases.as_str().unwrap_or_default().contains(host);
        let mut hosts = rules.map(|rule| rule["host"].as_str().unwrap_or_default());
        aliases || hosts.any(is_near)
    });
    near.map(|ingress| format!("Ingress shop/{}", ingress["metadata"]["name"].as_str().unwrap_or_default()))
        .collect()
}

/// Whether a class reads the Ingresses of a host otherwise than ingress-nginx, as its documentation says: regular expressions
/// and canaries are those of an Ingress alone, equally old Ingresses have another order, and the paths of a host are not all
/// that its requests may reach. A wildcard stands for several labels, and Ingresses without annotations are not redirected.
fn is_of_the_class(objects: &[Value], request: &Request) -> bool {
    let near = concerned(objects, &request.host);
    let ingresses: Vec<&Value> = objects
        .iter()
        .filter(|object| object["kind"] == "Ingress")
        .filter(|object| {
            near.contains(&format!(
                "Ingress shop/{}",
                object["metadata"]["name"].as_str().unwrap_or_default()
            ))
        })
        .collect();
    let annotations = |one: &&Value| one["metadata"]["annotations"].to_string();
    let has_patterns =
        |one: &&Value| ["use-regex", "rewrite-target"].iter().any(|name| annotations(one).contains(name));
    let has_hosts = |one: &&Value| one["spec"]["rules"].as_array().is_some_and(|rules| rules.len() > 1);
    ingresses.len() > 1
        || ingresses.iter().any(|one| annotations(one) == "{}" || has_patterns(one) || has_hosts(one))
        || request.host.matches('.').count() > 2
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// The results of a run.
#[derive(Debug, Default)]
struct Tally {
    same: usize,
    explained: usize,
    unknown: usize,
    wrong: usize,
    faults: Vec<String>,
}

fn check(rng: &mut SmallRng, dialect: Dialect, tally: &mut Tally) -> usize {
    let count = rng.random_range(1..4);
    let objects = generate::case(rng, dialect, count);
    let original = Original::read(&objects, true);
    let requests: Vec<Request> = (0..REQUESTS).map(|_| generate::request(rng)).collect();
    for way in Way::ALL {
        let served = match way {
            Way::Routes => migrated(&objects, false),
            Way::Kept => migrated(&objects, true),
            Way::Class => in_a_class(&objects, dialect),
        };
        let answers = served.translated.answers();
        for request in &requests {
            let told = original.answer(request);
            if matches!(told.answer, Answer::Unknown(_)) {
                tally.unknown += 1;
                continue;
            }
            let answer = answers.answer(request);
            if replay::is_same(&told, &answer, request) {
                tally.same += 1;
                continue;
            }
            if way == Way::Class && is_of_the_class(&objects, request) {
                tally.explained += 1;
                continue;
            }
            let mut objects_near = concerned(&objects, &request.host);
            objects_near
                .extend(told.by.as_ref().map(|by| by.split(' ').take(2).collect::<Vec<_>>().join(" ")));
            if objects_near.iter().any(|object| served.spoken.contains(object)) {
                tally.explained += 1;
                continue;
            }
            tally.wrong += 1;
            if tally.faults.len() < SHOWN {
                let shown = objects.iter().filter(|object| object["kind"] == "Ingress").map(|ingress| {
                    format!(
                        "{} {} {} {}",
                        ingress["metadata"]["name"],
                        ingress["metadata"]["creationTimestamp"],
                        ingress["metadata"]["annotations"],
                        ingress["spec"]
                    )
                });
                tally.faults.push(format!(
                    "{dialect:?} {way:?} {} {}://{}{}{} {:?} {:?}\n  old {:?}\n  new {:?}\n  {}",
                    request.method,
                    if request.https { "https" } else { "http" },
                    request.host,
                    request.path,
                    request.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default(),
                    request.headers,
                    request.client,
                    told,
                    answer,
                    shown.collect::<Vec<_>>().join("\n  "),
                ));
            }
        }
    }
    count
}

#[test]
fn random_ingresses_are_answered_as_before_or_the_report_says_why_not() {
    let (wanted, seed) = (number("ORACLE_INGRESSES", INGRESSES), number("ORACLE_SEED", 0));
    let mut wrong = Vec::new();
    for dialect in Dialect::ALL {
        let mut rng = SmallRng::seed_from_u64(seed as u64);
        let (mut tally, mut done) = (Tally::default(), 0);
        while done < wanted / 2 {
            done += check(&mut rng, dialect, &mut tally);
        }
        let Tally { same, explained, unknown, wrong: count, faults } = tally;
        let summary = format!(
            "{dialect:?}: {done} Ingresses: {same} same, {explained} explained, {unknown} unknown, {count} wrong"
        );
        println!("{summary}");
        assert!(same > explained && same > unknown, "{summary}");
        wrong.extend((count > 0).then(|| format!("{summary}\n{}", faults.join("\n"))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
