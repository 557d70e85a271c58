//! Hostile tenants beside a victim, with data planes that are often too small for all of them.
//!
//! Judged is what the documentation promises today (`docs/explanation/tenancy.md`, and mapping.md on budgets):
//!
//! - A host that only a listener of the victim takes is answered by the victim's backends, or by an error.
//! - Over budget, a request is answered by the namespace that answers it without a budget, or by an error.
//! - Tenants that are younger and name none of the victim's hostnames change no answer, certificate or verdict of the
//!   victim's. Where the layout or the lack of a responder makes a data plane refuse what it could not tell apart, answers
//!   may become errors.
//!
//! Not promised, and so left out: what the victim is answered for hostnames that others name too, or that are wider than
//! theirs, once these have used up their guards; and what others take of the budget who are older.
//!
//! `ADVERSARY_WORLDS` is the number of worlds (`just adversary-worlds` judges 100,000).

mod attack;
mod fixtures;
mod ingress;

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::pingsix::{Config, RouteTable};
use pingsix_translate::status::Reason;
use pingsix_translate::{
    Budget, DataPlane, DataPlaneKey, Layout, Options, Provenance, Translation, Translator, translate,
};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use self::attack::{Aim, attack, attacks, named_apart};
use self::fixtures::{HOSTILE, VICTIM, infrastructure, is_own, probes, victim};
use crate::answer::{RESPONDER, answer};
use crate::case::snapshot;
use crate::generate::pick;
use crate::oracle::{Decided, Target, World};
use crate::probe::Probe;
use crate::{accepted, certificate, incremental, shrink};

/// Worlds in every run.
const WORLDS: u64 = 200;

/// Requests to each world.
const REQUESTS: usize = 60;

#[expect(
    clippy::disallowed_methods,
    reason = "the fence is for the library; a test may be told to run longer"
)]
fn worlds() -> u64 {
    std::env::var("ADVERSARY_WORLDS")
        .map_or(WORLDS, |text| text.parse().expect("ADVERSARY_WORLDS is a number"))
}

/// The namespace that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    Nobody,
    Namespace(String),
}

/// The namespace whose backend or redirect is the answer.
fn by(decided: &Decided) -> Result<By, String> {
    let mut namespaces = BTreeSet::new();
    for target in decided.answer.targets() {
        match target {
            Target::Service { namespace, .. } => {
                namespaces.insert(namespace.as_str());
            }
            Target::Redirect { .. } => {
                let (route, _) = decided.rule.as_ref().ok_or("a redirect of nobody")?;
                namespaces.extend(route.split_once('/').map(|(namespace, _)| namespace));
            }
            Target::Status(_) => {}
            Target::Preflight(_) => return Err("nobody asks for a preflight".to_owned()),
        }
    }
    let mut namespaces = namespaces.into_iter();
    match (namespaces.next(), namespaces.next()) {
        (None, _) => Ok(By::Nobody),
        (Some(one), None) => Ok(By::Namespace(one.to_owned())),
        (Some(_), Some(_)) => Err(format!("several namespaces answer: {decided:?}")),
    }
}

/// The objects of all tenants, and the options of the translation.
#[derive(Clone, Debug)]
struct AttackCase {
    aim: Aim,
    https: bool,
    options: Options,
    probes: Vec<Probe>,
}

impl AttackCase {
    fn draw(rng: &mut SmallRng, aim: Aim) -> (Self, Vec<Value>) {
        let https = rng.random();
        let mut objects = infrastructure(rng, https, aim.listeners);
        objects.extend(victim(rng));
        let options = Options {
            layout: if rng.random() { Layout::Shared } else { Layout::PerPort },
            responder: rng.random_bool(0.8).then_some(RESPONDER),
            ..Options::default()
        };
        (Self { aim, https, options, probes: probes(rng, REQUESTS) }, objects)
    }

    fn translate(&self, objects: &[Value], budget: Budget) -> Translation {
        translate(&snapshot(objects), &Options { budget, ..self.options.clone() })
    }

    /// The same with a budget for everything, and with a responder. Guards answer for other rules than their own, and so
    /// does a decision list with conditions without a responder: it may answer 500 to all its requests.
    fn intended(&self, objects: &[Value]) -> Translation {
        let Budget { bytes, matcher_entries } = Budget::default();
        let budget = Budget { bytes: 16 * bytes, matcher_entries: 16 * matcher_entries };
        let options = Options { responder: Some(RESPONDER), budget, ..self.options.clone() };
        translate(&snapshot(objects), &options)
    }

    /// Whether nothing has to be refused because requests cannot be told apart.
    fn tells_apart(&self) -> bool {
        self.options.responder.is_some() && (self.options.layout == Layout::PerPort || !self.https)
    }
}

/// A budget that exhausts itself, mostly: for the victim with a little more, or for a part of everything.
fn scarce(rng: &mut SmallRng, alone: &Translation, whole: &Translation) -> Budget {
    let largest = |translation: &Translation| {
        let sizes =
            translation.data_planes.values().map(|plane| (plane.size.bytes, plane.size.matcher_entries));
        sizes.max().unwrap_or_default()
    };
    let (of, percent) = match rng.random_range(0..5) {
        0 => return Budget::default(),
        1 | 2 => (largest(alone), rng.random_range(100..250)),
        _ => (largest(whole), rng.random_range(0..120)),
    };
    if rng.random() {
        Budget { bytes: of.0 * percent / 100, ..Budget::default() }
    } else {
        Budget { matcher_entries: of.1 * percent / 100, ..Budget::default() }
    }
}

/// The answers to the probes in each data plane.
fn answers(world: &World, translation: &Translation, probes: &[Probe]) -> Result<Answers, String> {
    let mut answers = BTreeMap::new();
    for (key, plane) in &translation.data_planes {
        let table = RouteTable::new(&plane.config);
        let router = table.insert_in(0..table.len()).map_err(|error| error.to_string())?;
        let decided = probes.iter().map(|probe| answer(world, plane, &router, &probe.request()));
        answers.insert(key.clone(), decided.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(answers)
}

type Answers = BTreeMap<DataPlaneKey, Vec<Decided>>;

/// The objects that the oracle reads. The nodes of Services need no other kinds.
fn world(objects: &[Value]) -> World {
    let is_known = |object: &&Value| object["kind"] != "BackendTLSPolicy";
    World::read(&objects.iter().filter(is_known).cloned().collect::<Vec<_>>())
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    worlds: usize,
    over_budget: usize,
    listener_sets: usize,
    /// Requests by the origin of their answer: the victim, another tenant, none.
    victim: usize,
    hostile: usize,
    nobody: usize,
    /// Requests that a backend answers without a budget.
    left_out: usize,
    /// Answers that were the same with and without the others.
    same: usize,
    certificates: usize,
    verdicts: usize,
    edits: usize,
}

/// Over budget, whoever answers is who would answer without a budget, and at its own listeners that is the victim.
fn judge_takeover(case: &AttackCase, meant: &Answers, got: &Answers, seen: &mut Seen) -> Result<(), String> {
    for (key, decided) in got {
        for (index, decided) in decided.iter().enumerate() {
            let probe = &case.probes[index];
            let error = |said: &str| format!("{key}, {probe:?}: {said}: {decided:?}");
            let answered = by(decided).map_err(|reason| error(&reason))?;
            match &answered {
                By::Namespace(namespace) if namespace == VICTIM => seen.victim += 1,
                By::Namespace(_) => seen.hostile += 1,
                By::Nobody => seen.nobody += 1,
            }
            let of_victim = By::Namespace(VICTIM.to_owned());
            let own = probe.host.as_deref().is_some_and(is_own);
            if own && answered != By::Nobody && answered != of_victim {
                return Err(error("a listener of the victim's is answered for by another"));
            }
            let meant = &meant[key][index];
            let of_rule = meant.rule.as_ref().and_then(|(route, _)| route.split_once('/'));
            let intended = of_rule.map_or(By::Nobody, |(namespace, _)| By::Namespace(namespace.to_owned()));
            seen.left_out += usize::from(intended != By::Nobody && answered == By::Nobody);
            if answered != By::Nobody && answered != intended {
                return Err(error(&format!("it is meant to be answered as {meant:?}")));
            }
        }
    }
    Ok(())
}

/// Checks that other tenants change nothing about the victim.
fn judge_difference(
    case: &AttackCase,
    (before, of_before): (&Translation, &Answers),
    (after, of_after): (&Translation, &Answers),
    seen: &mut Seen,
) -> Result<(), String> {
    for (key, decided) in of_before {
        for (index, before) in decided.iter().enumerate() {
            let (probe, after) = (&case.probes[index], &of_after[key][index]);
            if by(before)? == By::Nobody {
                continue;
            }
            let may_fail = !case.tells_apart() && by(after)? == By::Nobody;
            if before != after && !may_fail {
                return Err(format!("{key}, {probe:?}: without others {before:?}, beside them {after:?}"));
            }
            seen.same += usize::from(before == after);
        }
        let planes = [&before.data_planes[key], &after.data_planes[key]];
        for host in ["shop.victim.test", "api.victim.test", "x.victim.test"] {
            let [before, after] = planes.map(|plane| certificate_of(plane, host));
            if before != after {
                return Err(format!("{key}: {host} has another certificate because of others"));
            }
            seen.certificates += usize::from(before.is_some());
        }
    }
    if case.tells_apart() {
        let said = |translation: &Translation| {
            let verdicts = &translation.verdicts;
            let routes = verdicts.routes.iter().filter(|(key, _)| &*key.name.namespace == VICTIM);
            let routes: Vec<String> = routes.map(|(key, verdict)| format!("{key}: {verdict:?}")).collect();
            let problems =
                verdicts.problems.iter().filter(|problem| &*problem.object.name.namespace == VICTIM);
            (routes, problems.map(|problem| format!("{problem:?}")).collect::<Vec<_>>())
        };
        let (before, after) = (said(before), said(after));
        if before != after {
            return Err(format!("the victim is told {after:?} instead of {before:?}"));
        }
        seen.verdicts += before.0.len();
    }
    Ok(())
}

/// The certificate that a client sees, which is public.
fn certificate_of<'p>(plane: &'p DataPlane, host: &str) -> Option<&'p str> {
    let config: &'p Config = &plane.config;
    certificate::shown(config, host).map(|ssl| ssl.cert.as_str())
}

/// Checks that all documents fit, and that PingSIX's rules accept them. The guards of listeners may exceed a budget of
/// zero.
fn judge_documents(translation: &Translation, budget: Budget, options: &Options) -> Result<(), String> {
    for (key, plane) in &translation.data_planes {
        let fits = plane.size.bytes <= budget.bytes && plane.size.matcher_entries <= budget.matcher_entries;
        let serves = plane.provenance.values().any(|of| matches!(of, Provenance::Backend { .. }));
        if !fits && serves {
            return Err(format!("{key}: {:?} of {budget:?}", plane.size));
        }
    }
    let violations = accepted::violations(translation, options);
    if violations.is_empty() { Ok(()) } else { Err(violations.join("\n")) }
}

/// Judges the victim among these objects.
fn judge(
    case: &AttackCase,
    objects: &[Value],
    budget: Budget,
    seen: &mut Seen,
) -> Result<Translation, String> {
    let world = world(objects);
    let whole = case.intended(objects);
    let got = case.translate(objects, budget);
    judge_documents(&got, budget, &case.options)?;
    let meant = answers(&world, &whole, &case.probes)?;
    let of_got = answers(&world, &got, &case.probes)?;
    judge_takeover(case, &meant, &of_got, seen)?;
    if case.aim.younger && case.aim.apart {
        let alone: Vec<Value> = objects.iter().filter(|object| !is_hostile(object)).cloned().collect();
        let before = case.translate(&alone, budget);
        let of_before = answers(&world, &before, &case.probes)?;
        judge_difference(case, (&before, &of_before), (&got, &of_got), seen)?;
    }
    seen.worlds += 1;
    seen.over_budget += usize::from(is_over_budget(&got));
    seen.listener_sets += usize::from(!got.verdicts.listener_sets.is_empty());
    Ok(got)
}

fn is_over_budget(translation: &Translation) -> bool {
    translation.verdicts.problems.iter().any(|problem| problem.reason == Reason::BudgetExceeded)
}

fn is_hostile(object: &Value) -> bool {
    object["kind"] != "Namespace"
        && !["Service", "EndpointSlice"].iter().any(|kind| object["kind"] == *kind)
        && HOSTILE.iter().any(|namespace| object["metadata"]["namespace"] == *namespace)
}

fn aim(rng: &mut SmallRng) -> Aim {
    Aim { younger: rng.random_bool(0.6), apart: rng.random_bool(0.6), listeners: rng.random_bool(0.3) }
}

/// A case, its objects with hostile ones among them, and a budget.
fn under_attack(rng: &mut SmallRng, aim: Aim) -> (AttackCase, Vec<Value>, Budget) {
    let (case, mut objects) = AttackCase::draw(rng, aim);
    let alone = case.translate(&objects, Budget::default());
    objects.extend(attacks(rng, aim));
    let whole = case.translate(&objects, Budget::default());
    let budget = scarce(rng, &alone, &whole);
    (case, objects, budget)
}

#[test]
fn hostile_tenants_take_no_request_and_younger_ones_change_nothing() {
    let mut seen = Seen::default();
    for seed in 0..worlds() {
        let mut rng = SmallRng::seed_from_u64(seed);
        let aim = aim(&mut rng);
        let (case, objects, budget) = under_attack(&mut rng, aim);
        if let Err(error) = judge(&case, &objects, budget, &mut seen) {
            let again = |objects: &[Value]| judge(&case, objects, budget, &mut Seen::default()).err();
            report(&format!("seed {seed}, {case:?}, {budget:?}: {error}"), objects, again);
        }
    }
    println!("{seen:?}");
    let Seen { worlds, over_budget, listener_sets, .. } = seen;
    assert!(
        over_budget * 3 > worlds && listener_sets * 10 > worlds,
        "budgets or lists are too tame: {seen:?}"
    );
    assert!(
        seen.victim > worlds && seen.hostile > worlds && seen.left_out > worlds && seen.same > worlds,
        "hardly anything was judged: {seen:?}"
    );
    assert!(seen.certificates > worlds / 4 && seen.verdicts > worlds / 4, "{seen:?}");
}

/// Shows as little of the hostile objects as still does harm, and fails.
fn report(error: &str, objects: Vec<Value>, again: impl Fn(&[Value]) -> Option<String>) {
    let (hostile, others): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(is_hostile);
    let with = |hostile: &[Value]| again(&[&others, hostile].concat());
    let smallest = shrink::shrink(hostile, |hostile| with(hostile).is_some());
    for object in others.iter().chain(&smallest).filter(|object| object["kind"] != "Secret") {
        println!("{object}");
    }
    panic!("{error}\nafter shrinking: {}", with(&smallest).unwrap_or_default());
}

#[test]
fn a_translator_remembers_nothing_of_the_changes_of_hostile_tenants() {
    let mut seen = Seen::default();
    for seed in 0..worlds() / 8 {
        let mut rng = SmallRng::seed_from_u64(seed ^ 0xad_0e);
        let aim = aim(&mut rng);
        let (case, mut objects, budget) = under_attack(&mut rng, aim);
        let mut translator = Translator::new(Options { budget, ..case.options.clone() });
        for step in 0..4 {
            let got = translator.translate(&snapshot(&objects));
            let checked = judge(&case, &objects, budget, &mut seen).and_then(|fresh| {
                incremental::compare(&got, &fresh)?;
                incremental::compare_charges(&got, &fresh)
            });
            if let Err(error) = checked {
                panic!("seed {seed}, step {step}, {:?}, {:?}, {budget:?}: {error}", case.aim, case.options);
            }
            edit(&mut rng, aim, &mut objects, 100 * (step + 1));
            seen.edits += 1;
        }
    }
    println!("{seen:?}");
    assert!(seen.over_budget * 3 > seen.worlds, "{seen:?}");
}

/// Something hostile goes, comes or is replaced by something else.
fn edit(rng: &mut SmallRng, aim: Aim, objects: &mut Vec<Value>, from: usize) {
    let hostile: Vec<usize> =
        objects.iter().enumerate().filter(|(_, object)| is_hostile(object)).map(|(index, _)| index).collect();
    if let Some(&gone) = hostile.choose(rng).filter(|_| rng.random()) {
        objects.remove(gone);
    }
    if rng.random_bool(0.7) {
        let namespace = pick(rng, &HOSTILE);
        let mut more = attack(rng, aim, namespace);
        named_apart(&mut more, from);
        for object in more {
            let identity = |object: &Value| {
                let metadata = &object["metadata"];
                [&object["kind"], &metadata["namespace"], &metadata["name"]].map(ToString::to_string)
            };
            objects.retain(|held| identity(held) != identity(&object));
            objects.push(object);
        }
    }
}
